"""Runs one trial in this process: the program under its conditions, traced; messages go out while it runs.

The process is a throw-away child: forked, sandboxed and limited by the engine.
"""
from __future__ import annotations

import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from traindx.core.codec import encode
from traindx.core.trials import ConditionState, Ended, Trial
from traindx.errors import UsageError
from traindx.interventions import build
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Part, Send, Stage
from traindx.perform import interruption, randomness, running
from traindx.perform.program import ProgramSeen
from traindx.perform.tracer import Tracer
from traindx.probes import sites


def perform(trial: Trial, send: Send, folder: Path, leave: Callable[[int], Any] = os._exit) -> None:
    """Runs ``trial`` and sends its messages (``Trace.take``), ``end`` last. ``folder`` is for the recording of ``observe``.

    After the budget's steps the process ends by ``leave`` in the middle of the program, so that none of its ``finally``
    or ``atexit`` runs; else the function returns, whatever the program raised.
    """
    for file in trial.without:
        interruption.remove(file)
    if trial.after is not None:
        trial = interruption.before(trial, send, lambda first, say, saves: Performance(first, say, folder, os._exit, saves).run())
    Performance(trial, send, folder, leave).play()


class Performance:
    """One trial. ``saves``: its program is only run to be broken off, and these are noted. Subclasses put other watchers on the stage."""

    def __init__(self, trial: Trial, send: Send, folder: Path, leave: Callable[[int], Any], saves: interruption.Saves | None = None) -> None:
        self.saves = saves
        self.trial, self.send, self.folder, self.leave = trial, send, folder, leave
        self.began = time.perf_counter()
        self.session: Any = None
        self.ended = False
        self.problem: BaseException | None = None  # that ended the program
        self.interventions: list[Intervention] = []
        self.stage = Stage(send, trial.budget.steps, self.stop)

    def play(self) -> None:
        """Runs it; what cannot be run is told as the trial's end."""
        try:
            self.run()
        except UsageError as problem:
            self.finish("refused", problem.text.en)

    def run(self) -> None:
        if (file := running.main_file(self.trial.program)) is not None:
            sites.main_script(file)
        with ExitStack() as stack:
            self._set_up(stack)
            ended, error = self._run_program()
            self.finish(ended, error)

    def _set_up(self, stack: ExitStack) -> None:
        """Seeds first, then probes and the stage, then who takes part: interventions before those who only look."""
        self.interventions = [build(condition, self.stage) for condition in self.trial.conditions]
        seeds = randomness.install(stack, self.trial.reseed)
        if self.trial.observe:
            from traindx.probes.install import install
            from traindx.probes.recorder import Recorder
            self.session = install(Recorder(self.folder))
            stack.callback(self.session.close)
        stack.enter_context(self.stage)
        for intervention in self.interventions:
            stack.enter_context(intervention)
        if self.saves is not None and self.trial.after is not None:
            self._break_off(stack, self.saves, self.trial.after.steps)
        self.watch(stack, seeds)

    def watch(self, stack: ExitStack, seeds: randomness.Reseeded) -> None:
        """Puts those on the stage who only look."""
        tracer = Tracer(self.stage)
        self.stage.add(tracer)
        self.stage.add(ProgramSeen(self.stage, tracer, seeds))
        if self.trial.gauges:
            self._add_gauges(stack)
        self.stage.add(_States(self.interventions, self.send))

    def _break_off(self, stack: ExitStack, saves: interruption.Saves, steps: int) -> None:
        from traindx.gauges.tools.saving import on_save
        on_save(stack, lambda saved, path: saves.note(self.stage.steps, saved, path))
        self.stage.add(interruption.BreaksOff(self.stage, steps, self.stop))

    def _add_gauges(self, stack: ExitStack) -> None:
        from traindx.perform.gauging import Gauging
        self.stage.add(Gauging(self.trial.gauges, self.stage, stack))

    def _run_program(self) -> tuple[Ended, str]:
        try:
            running.run(self.trial.program)
        except SystemExit as stop:
            return "script", "" if stop.code in (None, 0) else f"SystemExit: {stop.code}"
        except BaseException as problem:
            traceback.print_exc()
            self.problem = problem
            return "raised", running.told(problem)
        return "script", ""

    def stop(self) -> None:
        """From within a step: everything is said first, then the process is gone."""
        self.finish("steps", "")
        self.leave(0)

    def finish(self, ended: Ended, error: str) -> None:
        if self.ended:
            return
        self.ended = True
        if self.session is not None:
            self.session.end({"steps": "max-steps", "raised": "raised"}.get(ended, "finished"), error or None, self.problem)
        self.stage.end()
        _flush()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.send({"end": {
            "ended": ended, "error": error, "seconds": time.perf_counter() - self.began,
            "cpu_seconds": usage.ru_utime + usage.ru_stime, "memory": usage.ru_maxrss * _MAXRSS_UNIT,
            "recording": str(self.folder) if self.session is not None else None}})


_MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes


class _States(Part):
    """Reports what became of each condition, whenever that changes."""

    def __init__(self, interventions: list[Intervention], send: Send) -> None:
        self.interventions, self.send = interventions, send
        self._said: dict[int, ConditionState] = {}

    def on_tick(self, step: int) -> None:
        for number, intervention in enumerate(self.interventions):
            state = intervention.state()
            if self._said.get(number) != state:
                self._said[number] = state
                self.send({"condition": encode(state)})

    def at_end(self) -> None:
        self.on_tick(0)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # the program may have closed it
