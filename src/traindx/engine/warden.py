"""Watches one trial: forks the child, hands its messages on, holds it to its budget, and leaves nothing running."""
from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from traindx.core.codec import decode, encode
from traindx.core.text import EMPTY, Text, same
from traindx.core.trials import Ended, Trial, ending
from traindx.engine import child, linux, processes
from traindx.engine.places import places_of
from traindx.engine.sandbox import OUTPUT, OWN, Sandbox, Way

START_SECONDS = 180.0  # to import torch, where it was not imported before; not part of the budget
LOOK_SECONDS = 0.1  # between looks at memory
_NO_WRITING = ("PermissionError", "Permission denied", "Read-only file system")
_NO_NETWORK = ("gaierror", "Network is unreachable", "ConnectionError", "ConnectionRefusedError", "ConnectTimeout", "MaxRetryError",
               "NewConnectionError", "OfflineModeIsEnabled", "LocalEntryNotFoundError", "URLError", "ConnectError", "a re-run has no network")
SHOWN = 4000  # characters of what the program printed

USED = Text("used {used:.0f} MiB, more than the {limit:.0f} MiB of its budget", "用了 {used:.0f} MiB，超过限额 {limit:.0f} MiB")
RUNNING = Text("still running after {seconds:.3g} s{waits}", "过了 {seconds:.3g} 秒仍在运行{waits}")
WAITS = Text(", and has waited without using the processor for {idle:.0f} s", "，其中有 {idle:.0f} 秒在等待，没有占用处理器")
SIGNALLED = Text("ended by {name}{more}", "被 {name} 终止{more}")
NO_MEMORY = Text(" (memory may have run out)", "（可能是内存耗尽）")
STATUS = Text("exit status {code}", "退出状态为 {code}")
KEEPS_NOTHING = Text("; a re-run can write only in the project, HOME and the temporary folders, and keeps nothing of it",
                     "；重跑只能写入项目、HOME 和临时文件夹，而且不会保留写入的内容")
NO_NETWORK = Text("; a re-run has no network unless it is given one (--network)", "；重跑默认不能联网，除非加上 --network")


class Stopped(Exception):
    """Nobody waits for the trial any more."""


def guard(trial: Trial, way: Way, folder: str, performer: str, client: socket.socket, server: int) -> NoReturn:
    """The whole life of a warden, in a process of its own; ``client`` takes the messages, and says by a byte or by
    its end that the trial is to be stopped."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _stop)
    linux.die_with_parent(signal.SIGTERM, server)
    linux.adopt_orphans()
    sandbox = Sandbox(way, places_of(trial.program), folder, trial.network)
    status = 0
    try:
        _run(trial, sandbox, performer, client)
    except Stopped:
        pass
    except BaseException as problem:
        with suppress(OSError):
            _tell(client, {"end": {"ended": "refused", "error": f"{type(problem).__name__}: {problem}"}})
        status = 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        processes.end_all_below(os.getpid())
        with suppress(OSError):
            sandbox.clean()
    os._exit(status)


def _stop(number: int, frame: Any) -> None:
    raise Stopped


def _tell(client: socket.socket, message: dict[str, Any]) -> None:
    client.sendall(json.dumps(message).encode() + b"\n")


def _run(trial: Trial, sandbox: Sandbox, performer: str, client: socket.socket) -> None:
    os.makedirs(sandbox.folder, exist_ok=True)
    sandbox.prepare()
    ours, childs = socket.socketpair()
    watch = _Watch(trial, sandbox, client, ours, time.monotonic())
    warden = os.getpid()
    process = os.fork()
    if process == 0:
        try:
            os.setsid()
            linux.die_with_parent(signal.SIGKILL, warden)
            ours.close()
            client.close()
            child.begin(trial, sandbox, performer, childs)
        finally:
            os._exit(1)
    childs.close()
    watch.process = process
    watch.to_the_end()
    _tell(client, {"end": watch.ending()})


@dataclass
class _Watch:
    """Of one child. ``end`` is what it said itself; ``over`` what we ended it for."""

    trial: Trial
    sandbox: Sandbox
    client: socket.socket
    messages: socket.socket
    began: float  # of the budget: again when the program itself begins
    process: int = 0
    running: bool = False  # the program itself, after the imports
    rest: bytes = b""
    end: dict[str, Any] = field(default_factory=dict)
    over: dict[str, Any] | None = None
    status: int | None = None
    cpu: float = 0.0
    peak: int = 0
    told: int = 0
    seconds: float = 0.0
    last_look: float = 0.0
    last_busy: tuple[float, float] = (0.0, 0.0)  # when it last used the processor, and how much it had used by then

    def to_the_end(self) -> None:
        self.last_busy = (time.monotonic(), 0.0)
        with _descriptor_of(self.process) as ended:
            poll = select.poll()
            for one in (self.messages.fileno(), self.client.fileno(), *([ended] if ended is not None else ())):
                poll.register(one, select.POLLIN)
            while self.status is None and self.over is None:
                ready = dict(poll.poll(1000 * (LOOK_SECONDS if ended is not None else 0.01)))
                if self.client.fileno() in ready:
                    raise Stopped
                if self.messages.fileno() in ready and not self._receive():
                    poll.unregister(self.messages.fileno())
                self._look()
                self._reap()
        self._kill()

    def _receive(self) -> bool:
        """Hands on what has come; False when there will be no more."""
        data, descriptors, _, _ = socket.recv_fds(self.messages, 1 << 16, 64)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self._message(line, descriptors)
        return bool(data)

    def _message(self, line: bytes, descriptors: list[int]) -> None:
        message = json.loads(line)
        if "layers" in message:
            self.sandbox.layers += zip(message["layers"], descriptors)
        elif "began" in message:
            self.running, self.began = True, time.monotonic()
        elif "end" in message:
            self.end = message["end"] | self.end  # the first that is said of the end counts
        else:
            self.client.sendall(self.sandbox.outside(line.decode()).encode() + b"\n")

    def _look(self) -> None:
        """At the budget, ten times a second."""
        now = time.monotonic()
        if now - self.last_look < LOOK_SECONDS:
            return
        self.last_look = now
        group = [self.process, *processes.below(self.process)]
        used = processes.resident(group)
        limit = self.trial.budget.memory
        if limit is not None and used > limit:
            used = processes.resident_shared_once(group) or used
        self.peak = max(self.peak, used)
        if self.peak > 1.1 * self.told:  # so that the client knows how many fit at once
            self.told = self.peak
            _tell(self.client, {"memory": self.peak})
        busy = processes.cpu_seconds(group)
        if busy > self.last_busy[1] + 0.02:
            self.last_busy = (now, busy)
        seconds = self.trial.budget.seconds if self.running else START_SECONDS
        if limit is not None and used > limit:
            self._over("memory", USED.fill(used=used / 2**20, limit=limit / 2**20))
        elif now - self.began > seconds and self._reap() is None:
            self._over("seconds", self._late(now, seconds))

    def _late(self, now: float, seconds: float) -> Text:
        idle = now - self.last_busy[0]
        return RUNNING.fill(seconds=seconds, waits=WAITS.fill(idle=idle) if idle > max(1.0, seconds / 2) else EMPTY)

    def _over(self, ended: Ended, why: Text) -> None:
        self.over = ending(ended, why + same(self._where()))

    def _where(self) -> str:
        """The user's line that the child is at, asked for by a signal that is answered without Python's help."""
        path = Path(self.sandbox.folder) / child.STACKS
        with suppress(OSError):
            os.kill(self.process, child.STACKS_SIGNAL)
            for _ in range(20):
                time.sleep(0.01)
                if path.stat().st_size:
                    break
        return self._line_in_stacks()

    def _line_in_stacks(self) -> str:
        """faulthandler also writes there when the process crashes."""
        with suppress(OSError):
            words = (Path(self.sandbox.folder) / child.STACKS).read_text(errors="replace")
            return child.users_line(child.stack_frames(words), self.sandbox)
        return ""

    def _reap(self) -> int | None:
        if self.status is None:
            done, status, usage = os.wait4(self.process, os.WNOHANG)
            if done:
                self.status = status
                self.cpu = usage.ru_utime + usage.ru_stime
                scale = 1024 if sys.platform == "linux" else 1
                self.peak = max(self.peak, usage.ru_maxrss * scale)
        return self.status

    def _kill(self) -> None:
        if self.status is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process, signal.SIGKILL)
            deadline = time.monotonic() + 5
            while self._reap() is None and time.monotonic() < deadline:
                time.sleep(0.002)
        self.seconds = time.monotonic() - self.began
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process, signal.SIGKILL)
        processes.end_all_below(os.getpid())
        self.messages.setblocking(False)
        with suppress(OSError):
            while self._receive():
                pass

    def ending(self) -> dict[str, Any]:
        """The last message: what the child measured itself, where it knows better, and what only we know."""
        found = {"seconds": self.seconds, "recording": self._recording()} | {k: v for k, v in self.end.items() if v is not None} | self._how()
        found |= {"cpu_seconds": max(self.cpu, found.get("cpu_seconds", 0.0)), "memory": max(self.peak, found.get("memory", 0)),
                  "sandbox": self.sandbox.way.mode, "would_write": self.sandbox.written(), "output": self._output()}
        if error := found.get("error"):
            found |= self._explained(error, found.get("said"), found["output"])
        return found

    def _explained(self, error: str, said: Any, output: str) -> dict[str, Any]:
        """The error as it is outside of the sandbox, and what that may have to do with it."""
        hint, why = _hint(error, output, self.trial.network), decode(Text, said) or same(error)
        outside = Text(self.sandbox.outside(why.en), self.sandbox.outside(why.zh)) + hint
        return {"error": outside.en, "said": encode(outside) if said or hint != EMPTY else None}

    def _recording(self) -> str | None:
        own = os.path.join(self.sandbox.folder, OWN)
        return own if self.trial.observe and os.listdir(own) else None

    def _how(self) -> dict[str, Any]:
        """What the child said, if it said it before we had to end it; else its status."""
        if "ended" in self.end:
            return {name: self.end[name] for name in ("ended", "error", "said") if name in self.end}
        if self.over is not None:
            return self.over
        code = os.waitstatus_to_exitcode(self.status) if self.status is not None else -signal.SIGKILL
        if code < 0:
            name = signal.Signals(-code).name
            more = NO_MEMORY if -code == signal.SIGKILL else same(self._line_in_stacks())
            return ending("killed", SIGNALLED.fill(name=name, more=more))
        if code > 0:
            return ending("raised", STATUS.fill(code=code))
        return {"ended": "script"}

    def _output(self) -> str:
        with suppress(OSError), open(os.path.join(self.sandbox.folder, OUTPUT), "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 4 * SHOWN))
            return self.sandbox.outside(file.read().decode("utf-8", "replace"))[-SHOWN:]
        return ""


def _hint(error: str, output: str, network: bool) -> Text:
    """What the sandbox may have to do with an error."""
    said = error + output[output.rfind("Traceback"):] if "Traceback" in output else error
    if any(words in said for words in _NO_WRITING):
        return KEEPS_NOTHING
    if not network and any(words in said for words in _NO_NETWORK):
        return NO_NETWORK
    return EMPTY


class _descriptor_of:
    """One that becomes readable when a process ends; None where the system has no such thing."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.descriptor: int | None = None

    def __enter__(self) -> int | None:
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):
                self.descriptor = os.pidfd_open(self.process)
        return self.descriptor

    def __exit__(self, *exc: object) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)

