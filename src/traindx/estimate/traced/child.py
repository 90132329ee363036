"""``python -m traindx.estimate.traced.child``: imports torch once, then forks for every job that it is given.

A job is one line of JSON on stdin, its answer one line on stdout. The program of a job runs in the fork, with its own output in a
file, and is left by ``os._exit`` after its last step, so that nothing of what comes after it happens.
"""
from __future__ import annotations

import contextlib
import json
import os
import resource
import runpy
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from traindx.estimate.traced import elsewhere
from traindx.estimate.traced.changes import Changes, NotApplicable, change_named
from traindx.estimate.traced.faking import Faker
from traindx.estimate.traced.ledger import account
from traindx.estimate.traced.measured import Measure
from traindx.estimate.traced.watch import Watch
from traindx.probes import sites

Json = Any
TAIL = 2000  # characters of what the program printed


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    _warm()
    for line in sys.stdin:
        job = json.loads(line)
        answers.write(json.dumps(_forked(job)) + "\n")
        answers.flush()


def _warm() -> None:
    """Tensors without data load much of torch at their first use: once, before the forks."""
    with ExitStack() as stack:
        faker = Faker()
        faker.install(stack)
        Watch(faker, lambda: None, steps=9).install(stack)
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.LayerNorm(2), torch.nn.Dropout(0.1))
        optimizer = torch.optim.AdamW(model.parameters())
        torch.nn.functional.cross_entropy(model(torch.zeros(2, 2)), torch.zeros(2, dtype=torch.long)).backward()
        optimizer.step()


def _forked(job: Json) -> Json:
    """What the fork wrote; where it wrote nothing, how it ended."""
    with tempfile.TemporaryDirectory(prefix="traindx-memory-") as folder:
        child = os.fork()
        if child == 0:
            _in_child(job, Path(folder))
        status = _wait(child, job["seconds"])
        result = Path(folder, "result.json")
        answer = json.loads(result.read_text()) if result.exists() else {"ended": _how(status), "error": ""}
        output = Path(folder, "output")
        answer["output"] = output.read_text(errors="replace")[-TAIL:] if output.exists() else ""
        return answer


def _wait(child: int, seconds: float) -> int | None:
    """The status; None where time ran out and the child was ended."""
    until = time.monotonic() + seconds
    status = None
    while time.monotonic() < until:
        done, code = os.waitpid(child, os.WNOHANG)
        if done:
            status = code
            break
        time.sleep(0.005)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)  # with whatever it started
    if status is None:
        os.waitpid(child, 0)
    return status


def _how(status: int | None) -> str:
    if status is None:
        return "seconds"
    return "memory" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL else "lost"


def _in_child(job: Json, folder: Path) -> None:
    """Never returns."""
    os.setsid()
    output = os.open(folder / "output", os.O_CREAT | os.O_WRONLY)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for here, there in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(here, there)
    if job.get("memory"):
        resource.setrlimit(resource.RLIMIT_DATA, (job["memory"], job["memory"]))

    def leave(answer: Json) -> None:
        unfinished = folder / "unfinished"
        unfinished.write_text(json.dumps(answer))
        unfinished.rename(folder / "result.json")
        sys.stdout.flush()
        os._exit(0)
    try:
        os.chdir(job["cwd"])
        run = _measured if job.get("measure") else _traced
        run(job, leave)
    except BaseException as problem:
        leave({"ended": "refused", "error": f"{type(problem).__name__}: {problem}"})


def _traced(job: Json, leave: Callable[[Json], None]) -> None:
    for_cpu = job.get("device", "cpu") == "cpu"
    faker = Faker(for_cpu) if job.get("fake", True) else None
    changes = Changes([change_named(name, settings) for name, settings in job.get("changes", {}).items()])

    def told(ended: str, error: str = "", where: Json = None) -> None:
        answer = _told(watch, changes, ended)
        leave({**answer, "ended": ended, "error": error, "raised_at": where, "on_cpu_instead": on_cpu.asked})
    watch = Watch(faker, lambda: told("steps"), job.get("steps", 2), workspaces=for_cpu)
    with ExitStack() as stack:
        on_cpu = elsewhere.install(stack)
        if faker is not None:
            faker.install(stack)
        watch.install(stack)
        changes.install(stack)  # around the watch, which then sees what comes of them
        _run(job, told)


def _told(watch: Watch, changes: Changes, ended: str) -> Json:
    answer = account(watch.ledger)
    reads = watch.faker.reads if watch.faker is not None else {}
    answer.update({
        "steps": watch.steps, "batch": watch.batch, "shapes": watch.shapes, "parameter_count": watch.walked(),
        "faked": watch.faker is not None, "read": [[site.short if site else "", count] for site, count in reads.items()],
        "optimizers": [type(made).__name__ for ref in watch.optimizers if (made := ref()) is not None]})
    if ended == "steps":
        try:
            changes.verify(watch.batch)
        except NotApplicable as problem:
            answer["not_applicable"] = str(problem)
    return answer


def _measured(job: Json, leave: Callable[[Json], None]) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook
    measure, steps = Measure(), [0]

    def told(ended: str, error: str = "", where: Json = None) -> None:
        leave({**measure.result(), "ended": ended, "error": error, "raised_at": where, "steps": steps[0]})

    def stepped(*_: Any) -> None:
        steps[0] += 1
        if steps[0] >= job.get("steps", 2):
            told("steps")
    with ExitStack() as stack:
        elsewhere.install(stack)
        measure.install(stack)
        stack.callback(register_optimizer_step_post_hook(stepped).remove)
        _run(job, told)


def _run(job: Json, told: Callable[..., None]) -> None:
    """The program as ``python`` would run it."""
    script, module = job.get("script"), job.get("module")
    sys.argv = [script or module, *job.get("args", ())]
    sys.path[0] = os.path.dirname(os.path.abspath(script)) if script else os.getcwd()
    if script:
        sites.main_script(script)
    try:
        if script:
            runpy.run_path(script, run_name="__main__")
        else:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
    except NotApplicable as problem:
        told("not-applicable", str(problem))
    except SystemExit as problem:
        told("script", "" if not problem.code else f"SystemExit: {problem.code}")
    except BaseException as problem:
        traceback.print_exc()
        told("raised", f"{type(problem).__name__}: {problem}"[:600], _users_line(problem))
    told("script")


def _users_line(problem: BaseException) -> Json:
    """The innermost line of the traceback that is the user's."""
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if sites.is_user(frame.filename):
            return {"file": frame.filename, "line": frame.lineno, "function": frame.name, "code": frame.line or ""}
    return None


if __name__ == "__main__":
    main()
