"""One traced run in a child of the engine: the program for two optimizer steps, its storages counted; the account is sent as a fact.

The process is a throw-away: sandboxed by the engine, and left after the last step, so that nothing of what comes after it happens.
"""
from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from traindx.core.trials import Trial
from traindx.estimate.traced import elsewhere
from traindx.estimate.traced.changes import Changes, NotApplicable, change_named
from traindx.estimate.traced.faking import Faker
from traindx.estimate.traced.ledger import account
from traindx.estimate.traced.measured import Measure
from traindx.estimate.traced.watch import Watch
from traindx.perform import running
from traindx.probes import sites

Json = Any
Send = Callable[[dict[str, Any]], None]
FACT = "memory"


def perform(trial: Trial, send: Send, folder: Path) -> None:
    """``trial.gauges[0].settings``: ``fake`` (without data), ``device`` (cpu or cuda), ``changes``, or ``measure`` (for real)."""
    job = trial.gauges[0].settings
    if (file := running.main_file(trial.program)) is not None:
        sites.main_script(file)
    with ExitStack() as stack:
        run = (_Measured if job.get("measure") else _Traced)(job, stack, trial.budget.steps, send)
        ended, error, where = _ending(trial)
        run.tell(ended, error, where)


def _ending(trial: Trial) -> tuple[str, str, Json]:
    """Runs the program: how it ended, by what, at which line of the user's."""
    try:
        running.run(trial.program)
    except NotApplicable as problem:
        return "not-applicable", str(problem), None
    except SystemExit as problem:
        return "script", "" if not problem.code else f"SystemExit: {problem.code}", None
    except BaseException as problem:
        traceback.print_exc()
        return "raised", f"{type(problem).__name__}: {problem}"[:600], _users_line(problem)
    return "script", "", None


def _users_line(problem: BaseException) -> Json:
    """The innermost line of the traceback that is the user's."""
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if sites.is_user(frame.filename) and not sites.is_ours(frame.filename):
            return {"file": sites.at(frame.filename, frame.lineno or 0).file, "line": frame.lineno, "code": frame.line or ""}
    return None


class _Run:
    """A run that tells its answer once."""

    def __init__(self, send: Send) -> None:
        self.send = send
        self.told = False

    def tell(self, ended: str, error: str = "", where: Json = None) -> None:
        if self.told:
            return
        self.told = True
        self.send({"fact": [FACT, {**self.answer(ended), "ended": ended, "error": error, "raised_at": where}]})

    def stop(self) -> None:
        """From within the last step: everything is said first, then the process is gone."""
        self.tell("steps")
        sys.stdout.flush()
        self.send({"end": {"ended": "steps"}})
        os._exit(0)

    def answer(self, ended: str) -> Json:
        raise NotImplementedError


class _Traced(_Run):
    def __init__(self, job: Json, stack: ExitStack, steps: int, send: Send) -> None:
        super().__init__(send)
        for_cpu = job.get("device", "cpu") == "cpu"
        self.faker = Faker(for_cpu) if job.get("fake", True) else None
        self.changes = Changes([change_named(name, settings) for name, settings in job.get("changes", {}).items()])
        self.watch = Watch(self.faker, self.stop, steps, workspaces=for_cpu)
        self.on_cpu = elsewhere.install(stack)
        if self.faker is not None:
            self.faker.install(stack)
        self.watch.install(stack)
        self.changes.install(stack)  # around the watch, which then sees what comes of them

    def answer(self, ended: str) -> Json:
        watch, reads = self.watch, self.faker.reads if self.faker is not None else {}
        found = account(watch.ledger)
        found.update({
            "steps": watch.steps, "batch": watch.batch, "shapes": watch.shapes, "parameter_count": watch.parameter_count(),
            "backwards": watch.backwards, "faked": self.faker is not None, "on_cpu_instead": self.on_cpu.asked,
            "read": [[site.short if site else "", count] for site, count in reads.items()],
            "optimizers": [type(made).__name__ for ref in watch.optimizers if (made := ref()) is not None]})
        try:
            self.changes.verify(watch.batch)
        except NotApplicable as problem:
            found["not_applicable"] = {"en": problem.why.en, "zh": problem.why.zh}
        return found


class _Measured(_Run):
    def __init__(self, job: Json, stack: ExitStack, steps: int, send: Send) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook
        super().__init__(send)
        self.wanted, self.steps = steps, 0
        elsewhere.install(stack)
        self.measure = Measure()
        self.measure.install(stack)
        stack.callback(register_optimizer_step_post_hook(self._stepped).remove)

    def _stepped(self, *_: Any) -> None:
        self.steps += 1
        if self.steps >= self.wanted:
            self.stop()

    def answer(self, ended: str) -> Json:
        return {**self.measure.result(), "steps": self.steps}
