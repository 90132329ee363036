"""The process in which a program runs again: made quiet and harmless, then handed to the performer."""
from __future__ import annotations

import faulthandler
import gc
import importlib
import io
import json
import os
import random
import re
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from traindx.core.codec import encode
from traindx.core.trials import Trial
from traindx.engine.places import beneath
from traindx.engine.sandbox import OUTPUT, OWN, Sandbox

STACKS = "stacks.txt"
STACKS_SIGNAL = getattr(signal, "SIGRTMAX", signal.SIGUSR2) - 1 if hasattr(signal, "SIGRTMAX") else signal.SIGUSR2
Send = Callable[[dict[str, Any]], None]
Perform = Callable[[Trial, Send, Path], None]


def begin(trial: Trial, sandbox: Sandbox, performer: str, channel: socket.socket) -> NoReturn:
    """Never returns: performs the trial and ends the process. ``channel`` takes one JSON message per line."""
    send = _sender(channel)
    try:
        _settle(sandbox.folder)
        layers = sandbox.enter()
        line = json.dumps({"layers": [place for place, _ in layers]}).encode() + b"\n"
        socket.send_fds(channel, [line], [descriptor for _, descriptor in layers])
        for _, descriptor in layers:
            os.close(descriptor)
        if "MLFLOW_TRACKING_URI" not in os.environ or not trial.network:
            os.environ["MLFLOW_TRACKING_URI"] = f"sqlite:///{os.environ['TMPDIR']}/mlflow.db"
        perform = _performer(performer)  # it imports torch: before the budget of time begins
    except BaseException as problem:
        send({"end": {"ended": "refused", "error": f"{type(problem).__name__}: {problem}"}})
        os._exit(1)
    send({"began": True})
    _perform(trial, sandbox, perform, send)


def _perform(trial: Trial, sandbox: Sandbox, perform: Perform, send: Send) -> NoReturn:
    """What the performer says of the end comes first, and counts."""
    status, end = 0, {"ended": "script"}
    try:
        perform(_inside(trial, sandbox), send, Path(sandbox.folder) / OWN)
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            status, end = 1, {"ended": "raised", "error": f"SystemExit: {leaving.code}"}
    except BaseException as problem:
        traceback.print_exc()
        status, end = 1, {"ended": "raised", "error": describe(problem, sandbox)}
    with suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    send({"end": end})
    os._exit(status)


def _inside(trial: Trial, sandbox: Sandbox) -> Trial:
    after = trial.after and replace(trial.after, program=sandbox.program(trial.after.program))
    return replace(trial, program=sandbox.program(trial.program), after=after, without=tuple(map(sandbox.inside, trial.without)))


def _performer(name: str) -> Perform:
    module, _, function = name.partition(":")
    found: Perform = getattr(importlib.import_module(module), function)
    return found


def _sender(channel: socket.socket) -> Send:
    """Sends from this process only: a worker that the program forks has it too."""
    ours = os.getpid()

    def send(message: dict[str, Any]) -> None:
        if os.getpid() == ours:
            channel.sendall(json.dumps(encode(message)).encode() + b"\n")
    return send


# -- what surrounds the program ---------------------------------------------------------------------------------------

def _settle(folder: str) -> None:
    """Streams, limits, and what a fork would share with its twins."""
    _streams(folder)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # if memory runs out, the kernel ends a re-run before the user's own work
        Path("/proc/self/oom_score_adj").write_text("1000")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN if number == signal.SIGPIPE else signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    stacks = open(os.path.join(folder, STACKS), "w")  # noqa: SIM115  as long as the process lives
    faulthandler.enable(stacks)
    faulthandler.register(STACKS_SIGNAL, file=stacks, all_threads=True)
    _seed_as_new()
    gc.enable()


def _seed_as_new() -> None:
    """What a new interpreter seeds from the system, twins of one fork would have in common."""
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()


def _streams(folder: str) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(os.path.join(folder, OUTPUT), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for ours, standard in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(ours, standard)
    for descriptor in {nothing, output} - {0, 1, 2}:
        os.close(descriptor)
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)  # noqa: SIM115
    sys.stdin = NoInput()  # type: ignore[assignment]


class NoInput(io.TextIOBase):
    """Standard input of a program that nobody can answer."""

    def read(self, *_: object) -> str:
        raise EOFError("the program reads its standard input; a re-run has none")

    readline = readlines = __next__ = read  # type: ignore[assignment]

    @property
    def buffer(self) -> NoInput:
        return self

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 0

    def isatty(self) -> bool:
        return False


# -- errors -----------------------------------------------------------------------------------------------------------

def describe(problem: BaseException, sandbox: Sandbox) -> str:
    """``ValueError: words (train.py:31)``, with the user's line."""
    words = str(problem).strip().splitlines()
    said = f"{type(problem).__name__}: {words[0][:500]}" if words else type(problem).__name__
    frames = [(frame.filename, frame.lineno or 0) for frame in traceback.extract_tb(problem.__traceback__)]
    if isinstance(problem, SyntaxError) and problem.filename:
        frames.append((problem.filename, problem.lineno or 0))
    return sandbox.outside(said) + users_line(frames, sandbox)


def users_line(frames: list[tuple[str, int]], sandbox: Sandbox) -> str:
    """`` (train.py:31)``: the last of ``frames`` in the user's own code, the last one being where it happened."""
    for file, line in reversed(frames):
        path = os.path.realpath(os.path.join(sandbox.places.cwd, sandbox.outside(file)))
        if any(beneath(path, project) for project in sandbox.places.projects) and _is_own(path):
            return f" ({sandbox.places.shown(path)}:{line})"
    return ""


_OURS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def _is_own(path: str) -> bool:
    return not beneath(path, _OURS) and not re.search(r"[/\\](site|dist)-packages[/\\]|[/\\]lib[/\\]python3", path)


def stack_frames(words: str) -> list[tuple[str, int]]:
    """(file, line) of what faulthandler wrote about the thread that was current, innermost last."""
    current = re.search(r"^(?:Current thread|Thread).*?$(.*?)(?=^(?:Current thread|Thread)|\Z)", words[words.find("Current"):], re.M | re.S)
    found = re.findall(r'^\s*File "(.+?)", line (\d+)', current.group(1) if current else words, re.M)
    return [(file, int(line)) for file, line in reversed(found)]


