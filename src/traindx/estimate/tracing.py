"""Asks traced runs of a program from the engine, without torch here: one warm process for all questions."""
from __future__ import annotations

from typing import Any

from traindx.core.trials import Budget, Gauge, Program, Trial
from traindx.engine.local import LocalEngine
from traindx.engine.preload import wanted_by
from traindx.engine.processes import free_memory

Json = Any
SECONDS = 120.0
STEPS = 2  # the optimizer's state appears in the first
PERFORMER = "traindx.estimate.traced.perform:perform"
WARM = "traindx.estimate.traced.warm"
SHARE = 0.8  # of the free memory that a run may use


class Tracer:
    """``with Tracer(program) as tracer: tracer.trace(...)``. Answers are JSON values, see ``traced.perform`` and ``traced.ledger``."""

    def __init__(self, program: Program, seconds: float = SECONDS, network: bool = False) -> None:
        self.program, self.seconds, self.network = program, seconds, network
        self._engine = LocalEngine(1, performer=PERFORMER, preload=(*wanted_by(program), WARM))

    def __enter__(self) -> Tracer:
        return self

    def __exit__(self, *exc: object) -> None:
        self._engine.close()

    def trace(self, changes: dict[str, Json] | None = None, fake: bool = True, device: str = "cpu") -> Json:
        """One run of the program with changes (names and settings of ``traced.changes``)."""
        return self._ask({"changes": changes or {}, "fake": fake, "device": device})

    def measure(self) -> Json:
        """The program's own steps for real, by the allocator's record."""
        return self._ask({"measure": True})

    def _ask(self, question: Json) -> Json:
        free = free_memory()
        budget = Budget(STEPS, self.seconds, None if free is None else int(SHARE * free))
        trial = Trial(self.program, gauges=(Gauge("memory", question),), budget=budget, network=self.network)
        [trace] = self._engine.run([trial])
        answer = trace.facts.get("memory") or {"ended": trace.ended, "error": trace.error}
        return {**answer, "output": trace.output, "resident": trace.memory, "sandbox": trace.sandbox}
