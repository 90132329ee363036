"""A run that is broken off, before the one that is measured: what a killed training leaves on disk, its successor finds."""
from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from traindx.core.trials import Budget, Trial
from traindx.interventions.tools.stage import Backward, Part, RootCall, Send, Stage
from traindx.probes.checkpoints import contents

CHECKPOINT = "{checkpoint}"
KINDS = (".ckpt", ".pt", ".pth", ".pkl", ".bin", ".tar", ".safetensors")
MOST_FILES = 20_000  # that are looked at
Perform = Callable[[Trial, Send, "Saves"], None]


@dataclass
class Saves:
    """The files that a run wrote, by step, with what each holds at its top level."""

    began: float
    made: list[tuple[int, str | None, frozenset[str]]] = field(default_factory=list)

    def note(self, step: int, saved: Any, path: str | None) -> None:
        self.made.append((step, path, frozenset(contents(saved).values())))


class BreaksOff(Part):
    """Ends the process where the first step after ``steps`` would begin, as a kill would: no ``finally``, no ``atexit``."""

    def __init__(self, stage: Stage, steps: int, end: Callable[[], None]) -> None:
        self.stage, self.steps, self.end = stage, steps, end

    def on_root_call(self, call: RootCall) -> None:
        if call.grad and call.has_parameters and self.stage.steps >= self.steps:
            self.end()

    def before_backward(self, run: Backward) -> None:
        if run.trains and self.stage.steps >= self.steps:  # a program without modules
            self.end()


def before(trial: Trial, send: Send, perform: Perform) -> Trial:
    """Runs what comes before ``trial`` in a fork, tells of it as the fact ``interrupted``: {ended, steps, checkpoint}; the
    trial itself, with the checkpoint's path among its arguments."""
    assert trial.after is not None
    handle, told = tempfile.mkstemp()
    os.close(handle)
    process = os.fork()
    if process == 0:
        _run(trial, perform, Path(told))
    _, status = os.waitpid(process, 0)
    found = _read(Path(told)) or {"ended": "killed", "error": f"status {os.waitstatus_to_exitcode(status)}"}
    send({"fact": ["interrupted", found]})
    checkpoint = found.get("checkpoint")
    args = tuple(word.replace(CHECKPOINT, checkpoint) if checkpoint else word for word in trial.program.args)
    return replace(trial, program=replace(trial.program, args=args))


def _run(trial: Trial, perform: Perform, told: Path) -> None:
    """Never returns."""
    saves = Saves(time.time())
    last: dict[str, Any] = {}

    def send(message: dict[str, Any]) -> None:
        if "step" in message:
            last["steps"] = message["step"]["step"]
        elif "end" in message:
            last.update({key: message["end"].get(key) for key in ("ended", "error")})
            told.write_text(json.dumps({**last, "checkpoint": checkpoint_of(saves, trial.program.cwd)}))
    assert trial.after is not None
    first = replace(trial, program=trial.after.program, conditions=(), gauges=(), observe=False, after=trial.after, without=(),
                    budget=Budget(trial.after.steps + 1, trial.budget.seconds))
    try:
        perform(first, send, saves)
    finally:
        os._exit(0)


def _read(file: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found: dict[str, Any] = json.loads(file.read_text())
        return found
    return {}


def remove(path: str) -> None:
    """A file, or the folder of a checkpoint. Only ever called where writes are thrown away."""
    from traindx.engine.sandbox import remove_tree
    remove_tree(path)


# -- which file, or folder, is the checkpoint -----------------------------------------------------------------------------

def checkpoint_of(saves: Saves, cwd: str) -> str | None:
    """Of the last step that saved: the file that holds an optimizer and a model; the folder, where several files are one
    checkpoint; the last file; what a file written in memory or renamed afterwards became."""
    if not saves.made:
        return None
    last = saves.made[-1][0]
    latest = [(path, holds) for step, path, holds in saves.made if step == last]
    whole = [path for path, holds in latest if path and {"model", "optimizer"} <= holds]
    paths = [path for path, _ in latest if path]
    if whole:
        usual = [path for path in whole if "best" not in os.path.basename(path).lower()]
        paths = (usual or whole)[-1:]
    folders = {os.path.dirname(path) for path in paths}
    if len(paths) > 1 and len(folders) == 1 and folders != {os.path.realpath(cwd)}:
        return folders.pop()
    if paths:
        return paths[-1] if os.path.exists(paths[-1]) else _renamed(paths[-1], saves.began)
    return _newest(_files_below(cwd), saves.began)


def _renamed(path: str, began: float) -> str | None:
    """``last.partial`` that became ``last.pt``: the name is alike, else the newest in the folder."""
    folder = Path(path).parent
    files = [file for file in folder.iterdir() if file.is_file()] if folder.is_dir() else []
    alike = [file for file in files if file.name.split(".")[0] == Path(path).name.lstrip(".").split(".")[0]]
    return _newest(alike, began) or _newest(files, began)


def _newest(files: Iterable[Path], began: float) -> str | None:
    known = [(file.stat().st_mtime, str(file)) for file in files if file.suffix in KINDS]
    return max(((when, file) for when, file in known if when >= began - 1), default=(0, None))[1]


def _files_below(folder: str) -> list[Path]:
    found: list[Path] = []
    for here, _, names in os.walk(folder):
        found += [path for name in names if (path := Path(here, name)).is_file()]
        if len(found) > MOST_FILES:
            break
    return found
