"""Asks timed runs of a program from the engine; a program that is over too soon is run again."""
from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from traindx.core.speed import Load
from traindx.core.trials import Budget, Condition, Gauge, Program, Trace, Trial
from traindx.engine import processes
from traindx.engine.local import LocalEngine
from traindx.engine.preload import ours, wanted_by
from traindx.speed.load import Watch

Json = Any
PERFORMER = "traindx.perform.timing:perform"
TIMING = "traindx.perform.timing"
WARM = tuple(f"{TIMING}.{name}" for name in ("clock", "conductor", "facts", "operations", "plans", "profile", "sampler", "taps", "tracing"))
STEPS = 10**9
SHARE = 0.8  # of the free memory that a run may use
AGAIN = 3  # runs of a program that ends before all is timed
FIRST = 5  # steps whose losses are compared
MARGIN = 60.0  # seconds for the imports of the program and its data, above those of the timing


@dataclass
class Answer:
    """``facts`` by name, as :mod:`traindx.perform.timing` sends them."""

    facts: dict[str, Json] = field(default_factory=dict)
    load: Load | None = None
    ended: str = ""
    error: str = ""
    memory: int = 0
    seconds: float = 0.0

    @property
    def blocks(self) -> list[dict[str, float]]:
        return self.facts.get("blocks") or []

    def state(self, name: str) -> dict[str, Any]:
        return (self.facts.get("states") or {}).get(name) or {}


class Asker:
    """``with Asker(program) as asker: asker.ask({...}, {"held": Condition("hold_batch")})``."""

    def __init__(self, program: Program, seconds: float, network: bool = False, average: float | None = None) -> None:
        self.program, self.seconds, self.network, self.average = program, seconds, network, average
        self.threads = threads()
        self.runs = 0
        self._engine = LocalEngine(1, performer=PERFORMER, threads=self.threads, preload=(*wanted_by(program), *ours(), *WARM))

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *exc: object) -> None:
        self._engine.close()

    def ask(self, job: dict[str, Json], variants: dict[str, Condition]) -> Answer:
        """One question; the rounds that were timed of several runs are joined, where the program ends before all are."""
        answer = self._once(job, variants)
        wanted = job.get("rounds", 0) if answer.blocks else 0
        for _ in range(AGAIN - 1):
            missing = wanted - len(answer.blocks)
            if missing <= 0 or answer.ended != "script" or answer.seconds > self.seconds:
                break
            again = self._once({**job, "kind": "pairs", "rounds": missing, "groups": _groups_in(answer.blocks)}, variants)
            answer.facts["blocks"] = [*answer.blocks, *again.blocks]
            answer.seconds += again.seconds
            if not again.blocks:
                break
        return answer

    def _once(self, job: dict[str, Json], variants: dict[str, Condition]) -> Answer:
        settings = {"first": FIRST, "seconds": self.seconds, **job, "variants": list(variants)}
        free = processes.free_memory()
        budget = Budget(STEPS, 2 * self.seconds + MARGIN, None if free is None else int(SHARE * free))
        trial = Trial(self.program, tuple(variants.values()), (Gauge("timing", settings),), budget, network=self.network)
        self.runs += 1
        with Watch(self.average) as watch:
            [trace] = self._engine.run([trial])
        return _answer(trace, watch.load)


def _groups_in(blocks: Sequence[dict[str, float]]) -> list[list[str]]:
    """The groups of variants that were timed together, each once."""
    return [list(group) for group in dict.fromkeys(tuple(sorted(block)) for block in blocks)]


def _answer(trace: Trace, load: Load) -> Answer:
    return Answer(trace.facts, load, trace.ended, trace.error, trace.memory, trace.seconds)


def threads() -> int:
    """As many as the program would have: OMP_NUM_THREADS, else one for each core."""
    words = os.environ.get("OMP_NUM_THREADS", "")
    return int(words) if words.isdigit() and int(words) else processes.cores()
