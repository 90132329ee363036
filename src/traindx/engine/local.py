"""Trials on this machine: children of a warm server, as many at once as cores and memory allow."""
from __future__ import annotations

import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from traindx.core.text import Text
from traindx.core.trials import Program, Trace, Trial, ending, to_json
from traindx.engine import processes
from traindx.engine.preload import ours, wanted_by
from traindx.engine.quiet import environment
from traindx.errors import UsageError

OnDone = Callable[[int, Trace], None]
OnMessage = Callable[[int, dict[str, Any]], None]

PERFORMER = "traindx.perform:perform"
MARGIN = 1.2  # a trial is started where this many times the measured peak is free
STOP_SECONDS = 10.0
LONGEST_BASE = 44  # characters
GONE = Text("the process that ran the trial is gone{words}", "运行这次试验的进程已经消失{words}")
_START = "import sys; sys.path[:1] = []; sys.path.append(sys.argv.pop(1)); from traindx.engine.server import main; main()"

NO_FORK = Text("re-runs need a system that can fork processes (Linux, macOS); this is {system}. `traindx run` works here.",
               "重跑需要能 fork 进程的系统（Linux、macOS）；这里是 {system}。`traindx run` 可以用。")


class Engine(Protocol):
    """Where trials run. A context manager; on leaving, nothing is left running."""

    def run(self, trials: Sequence[Trial], on_done: OnDone | None = None, on_message: OnMessage | None = None) -> list[Trace]:
        """One trace per trial, in their order. ``on_message`` gets each message of a child as it comes, ``on_done``
        each trace as it is ended, with the trial's index.

        A trial that cannot be run has a trace that says so. Raises Interrupted on Ctrl-C, with what was done.
        """

    def close(self) -> None: ...
    def __enter__(self) -> Engine: ...
    def __exit__(self, *exc: object) -> None: ...


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; nothing runs any more. ``traces``: of the trials that were done, by index."""

    def __init__(self, traces: dict[int, Trace]) -> None:
        super().__init__()
        self.traces = traces


@dataclass
class _Warm:
    """A running server, seen from here."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    log: Path

    def ask(self, trial: Trial, folder: Path) -> socket.socket:
        """A new trial; its messages come by the socket that is returned."""
        ours, theirs = socket.socketpair()
        line = json.dumps({"trial": to_json(trial), "folder": str(folder)}).encode() + b"\n"
        with theirs, suppress(OSError):  # a server that is gone shows as the end of our socket
            sent = socket.send_fds(self.channel, [line], [theirs.fileno()])
            self.channel.sendall(line[sent:])
        return ours

    def close(self) -> None:
        with suppress(OSError):
            self.channel.sendall(b'{"bye": true}\n')
        self.channel.close()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def is_dead(self) -> bool:
        """A process that ends closes its sockets a moment before it is gone."""
        try:
            self.process.wait(1.0)
            return True
        except subprocess.TimeoutExpired:
            return False

    def last_words(self) -> str:
        with suppress(OSError):
            lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""


@dataclass
class _Running:
    """One trial that was started. ``alone``: the server that was made for it."""

    index: int
    trial: Trial
    channel: socket.socket
    server: _Warm
    alone: bool
    trace: Trace = field(default_factory=Trace)
    rest: bytes = b""
    memory: int = 0
    ended: bool = False
    unsafe: str = ""

    def receive(self) -> list[dict[str, Any]] | None:
        """Messages that have come; None when there will be no more."""
        try:
            data = self.channel.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            return None
        *lines, self.rest = (self.rest + data).split(b"\n")
        messages = [json.loads(line) for line in lines]
        for message in messages:
            self.trace.take(message)
            self.memory = message.get("memory", self.memory)
            self.unsafe = message.get("unsafe", self.unsafe)
            self.ended = self.ended or "end" in message
        return messages


class Sweep(Protocol):
    """Trials on their way. ``done`` are the traces so far, by index."""

    done: dict[int, Trace]

    def go(self) -> None: ...
    def stop(self) -> None: ...


def finished(sweep: Sweep, count: int) -> list[Trace]:
    """The traces of a sweep, run to its end. Raises Interrupted; whatever is raised, nothing is left running."""
    try:
        sweep.go()
    except KeyboardInterrupt:
        sweep.stop()
        raise Interrupted(sweep.done) from None
    except BaseException:
        sweep.stop()
        raise
    return [sweep.done[index] for index in range(count)]


class LocalEngine:
    """``jobs``: at most this many at once (default: one per core). ``isolate``: a new interpreter for each trial;
    slower, with the same results. ``sandbox``: overlay, copy or guard, instead of the first that works here.
    ``threads`` of each trial (more than one needs new interpreters). ``folder``: where recordings are kept; else they
    are gone after ``close``. Raises UsageError where processes cannot be forked.
    """

    def __init__(self, jobs: int | None = None, *, isolate: bool = False, sandbox: str | None = None, threads: int = 1,
                 folder: Path | None = None, performer: str = PERFORMER, preload: Sequence[str] | None = None) -> None:
        if not hasattr(os, "fork"):
            raise UsageError(NO_FORK.fill(system=sys.platform))
        self.jobs = jobs or max(1, processes.cores() // threads)
        self.sandbox, self.threads, self.performer, self.preload = sandbox, threads, performer, preload
        self.keep = folder.absolute() if folder else None
        self.folder = scratch_folder()
        self.why_isolated = "asked for" if isolate else "more than one thread" if threads > 1 else ""
        self.level = 2 if isolate or threads > 1 or sys.platform != "linux" else 0  # of caution: 1 loads torch only
        self.peak: int | None = None
        self._servers: dict[bool, _Warm] = {}
        self._count = 0

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends what runs and removes what is not to be kept."""
        for server in self._servers.values():
            server.close()
        self._servers.clear()
        from traindx.engine.sandbox import remove_tree
        remove_tree(str(self.folder))

    def run(self, trials: Sequence[Trial], on_done: OnDone | None = None, on_message: OnMessage | None = None) -> list[Trace]:
        sweep = _Sweep(self, list(enumerate(trials)), on_done or ignore, on_message or ignore)
        return finished(sweep, len(trials))

    # -- servers ------------------------------------------------------------------------------------------------------

    def start(self, index: int, trial: Trial) -> _Running:
        self._count += 1
        folder = self.folder / f"trial{self._count}"
        alone = self.level == 2
        if alone:
            server = self._serve(trial, ())
        else:
            server = self._servers.get(trial.network) or self._serve(trial, self._to_load(trial.program))
            self._servers[trial.network] = server
        return _Running(index, trial, server.ask(trial, folder), server, alone)

    def kept(self, trace: Trace) -> None:
        """Brings a recording to where it is to stay."""
        if self.keep is not None and trace.recording is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            place = Path(tempfile.mkdtemp(prefix="trial-", dir=self.keep))
            shutil.copytree(trace.recording, place, dirs_exist_ok=True)
            trace.recording = str(place)

    def _to_load(self, program: Program) -> tuple[str, ...]:
        wanted = wanted_by(program) if self.preload is None else tuple(self.preload)
        performing = ours() if self.performer == PERFORMER else (self.performer.partition(":")[0],)
        return (*(wanted if self.level == 0 else wanted[:1]), *performing)

    def _serve(self, trial: Trial, preload: Sequence[str]) -> _Warm:
        ours, theirs = socket.socketpair()
        log = self.folder / "server.log"
        settings = {"descriptor": theirs.fileno(), "folder": str(self.folder), "performer": self.performer,
                    "preload": list(preload), "only": self.sandbox}
        source = str(Path(__file__).resolve().parents[2])
        with theirs, log.open("ab") as words:
            process = subprocess.Popen(
                [sys.executable, "-c", _START, source, json.dumps(settings)], env=environment(trial.network, self.threads),
                stdin=subprocess.DEVNULL, stdout=words, stderr=words, pass_fds=[theirs.fileno()],
                cwd=trial.program.cwd, start_new_session=True)
        return _Warm(process, ours, log)

    def more_caution(self, why: str) -> None:
        """The server could not fork safely, or died: with less in it, then without one."""
        self.level = min(2, self.level + 1)
        self.why_isolated = why
        for server in self._servers.values():
            server.close()
        self._servers.clear()


def scratch_folder() -> Path:
    """A new one with a short name: the path of a socket has 108 bytes at most, and workers of a DataLoader that cannot
    make theirs wait for ever."""
    base = tempfile.gettempdir()
    short = base if len(base) <= LONGEST_BASE or not os.access("/tmp", os.W_OK) else "/tmp"
    return Path(tempfile.mkdtemp(prefix="traindx-", dir=short)).absolute()


def ignore(*_: object) -> None:
    pass


@dataclass
class _Sweep:
    """One call of ``run``."""

    engine: LocalEngine
    waiting: list[tuple[int, Trial]]
    on_done: OnDone
    on_message: OnMessage
    running: list[_Running] = field(default_factory=list)
    done: dict[int, Trace] = field(default_factory=dict)
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def go(self) -> None:
        while self.waiting or self.running:
            while self.waiting and self._fits():
                self._start(*self.waiting.pop(0))
            for key, _ in self.selector.select(timeout=0.5):
                self._read(key.data)

    def _fits(self) -> bool:
        """One always; a second when the first has shown what memory a step takes."""
        if not self.running:
            return True
        if len(self.running) >= self.engine.jobs:
            return False
        peaks = [one.memory for one in self.running if one.trace.steps] + [self.engine.peak or 0]
        free = processes.free_memory()
        if not max(peaks):
            return False
        still_to_come = sum(max(0, max(peaks) - one.memory) for one in self.running)
        return free is None or free - still_to_come > MARGIN * max(peaks)

    def _start(self, index: int, trial: Trial) -> None:
        try:
            one = self.engine.start(index, trial)
        except OSError as problem:
            self._finish(index, Trace(ended="refused", error=f"{type(problem).__name__}: {problem}"))
            return
        self.running.append(one)
        self.selector.register(one.channel, selectors.EVENT_READ, one)

    def _read(self, one: _Running) -> None:
        messages = one.receive()
        if messages is None:
            self._end(one)
            return
        for message in messages:
            if "unsafe" not in message:
                self.on_message(one.index, message)

    def _end(self, one: _Running) -> None:
        self._forget(one)
        if not one.ended and self._again(one):
            self.waiting.insert(0, (one.index, one.trial))
            return
        if not one.ended:
            words = one.server.last_words()
            one.trace.take({"end": ending("lost", GONE.fill(words=f": {words}" if words else ""))})
        self.engine.kept(one.trace)
        self.engine.peak = max(self.engine.peak or 0, one.trace.memory)
        self._finish(one.index, one.trace)

    def _again(self, one: _Running) -> bool:
        """Whether a trial that did not get so far as to begin is tried in a more careful way."""
        if one.alone or not (one.unsafe or (not one.trace.steps and one.server.is_dead())):
            return False
        if self.engine.level < 2 and one.server in self.engine._servers.values():
            self.engine.more_caution(one.unsafe or one.server.last_words() or "the server died")
        return True

    def _finish(self, index: int, trace: Trace) -> None:
        self.done[index] = trace
        self.on_done(index, trace)

    def _forget(self, one: _Running) -> None:
        self.running.remove(one)
        self.selector.unregister(one.channel)
        one.channel.close()
        if one.alone:
            one.server.close()

    def stop(self) -> None:
        """Ends what runs, and waits until it is gone."""
        for one in self.running:
            with suppress(OSError):
                one.channel.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + STOP_SECONDS
        for one in list(self.running):
            one.channel.settimeout(max(0.01, deadline - time.monotonic()))
            while one.receive() is not None:
                pass
            self._forget(one)
