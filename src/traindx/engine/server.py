"""A warm process that forks trials: torch and the libraries that the program imports are loaded once.

It has one thread and never touches a GPU: a fork would inherit locks that nobody holds any more, and a device that it
may not use. It asks itself before each fork, and refuses where that does not hold.
"""
from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from traindx.core.text import Text
from traindx.core.trials import Trial, ending, trial_from
from traindx.engine import processes, warden
from traindx.engine.places import Places, places_of
from traindx.engine.sandbox import Mode, Way, remove_tree, way_for

NO_SANDBOX = Text("the sandbox {sandbox} does not work on this system", "沙盒 {sandbox} 在这个系统上不可用")

GRACE_SECONDS = 10.0  # for wardens to end what they guard, when the client is gone


@dataclass
class Server:
    """``preload``: modules, or ``module:name`` where a name is loaded lazily. ``only``: a way that must be taken."""

    client: socket.socket
    folder: str
    performer: str
    preload: tuple[str, ...] = ()
    only: Mode | None = None
    ways: dict[Places, Way | None] = field(default_factory=dict)
    waiting: list[socket.socket] = field(default_factory=list)  # of requests whose line is not whole yet
    wardens: set[int] = field(default_factory=set)
    dismissed: bool = False

    def serve(self) -> None:
        """Until the client closes its end, or is gone."""
        processes_signals()
        for name in self.preload:
            load(name)
        self.client.settimeout(0.2)  # between looks at wardens that have ended
        rest = b""
        while True:
            self._reap()
            try:
                data, descriptors, _, _ = socket.recv_fds(self.client, 1 << 16, 8)
            except TimeoutError:
                continue
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            self.waiting += [socket.socket(fileno=descriptor) for descriptor in descriptors]
            for line in lines:
                request = json.loads(line)
                if "bye" in request:
                    self.dismissed = True
                else:
                    self._fork(request, self.waiting.pop(0))
        self._leave()

    def _fork(self, request: dict[str, Any], channel: socket.socket) -> None:
        with channel:
            unsafe = self._unsafe()
            if unsafe:
                _say(channel, {"unsafe": unsafe})
                return
            trial = trial_from(request["trial"])
            way = self._way(trial)
            if way is None:
                _say(channel, {"end": ending("refused", NO_SANDBOX.fill(sandbox=repr(self.only)))})
                return
            server = os.getpid()
            process = os.fork()
            if process == 0:
                try:
                    self.client.close()
                    warden.guard(trial, way, request["folder"], self.performer, channel, server)
                finally:
                    os._exit(1)
            self.wardens.add(process)

    def _unsafe(self) -> str:
        """Why a fork could end in a deadlock; empty where it is safe."""
        count = processes.threads()
        if count is None and self.preload:
            return "the threads of this process cannot be counted on this system"
        if count is not None and count > 1:
            return f"the server has {count} threads after loading {', '.join(self.preload[:20]) or 'nothing'}"
        gc.collect()
        gc.freeze()  # the collector of a child leaves these pages alone, so that they stay shared
        return ""

    def _way(self, trial: Trial) -> Way | None:
        places = places_of(trial.program)
        if places not in self.ways:
            self.ways[places] = way_for(trial.program, self.folder, self.only)
        return self.ways[places]

    def _reap(self) -> bool:
        """Collects what has ended; True while a warden has not. What a killed warden leaves is ended here."""
        with suppress(ChildProcessError):
            while True:
                process, status = os.waitpid(-1, os.WNOHANG)
                if not process:
                    break
                if process in self.wardens and status:
                    time.sleep(0.01)  # for the children that die with it
                    self.wardens.discard(process)
                    self._end_orphans()
                self.wardens.discard(process)
        return bool(self.wardens)

    def _end_orphans(self) -> None:
        for orphan in set(processes.children(os.getpid())) - self.wardens:
            for process in (*processes.below(orphan), orphan):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)

    def _leave(self) -> None:
        deadline = time.monotonic() + GRACE_SECONDS
        while self._reap() and time.monotonic() < deadline:
            time.sleep(0.01)
        processes.end_all_below(os.getpid())
        if not self.dismissed:  # the client was killed, and cannot do it
            remove_tree(self.folder)


def processes_signals() -> None:
    """Ctrl-C is the client's; what a killed warden leaves becomes ours."""
    from traindx.engine.linux import adopt_orphans
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    adopt_orphans()


def load(name: str) -> None:
    """What cannot be loaded here is left to the program, which then says so itself."""
    module, _, attribute = name.partition(":")
    with suppress(Exception, SystemExit):
        loaded = importlib.import_module(module)
        if attribute:
            getattr(loaded, attribute)


def _say(channel: socket.socket, message: dict[str, Any]) -> None:
    with suppress(OSError):
        channel.sendall(json.dumps(message).encode() + b"\n")


def main(arguments: Iterable[str] | None = None) -> None:
    settings = json.loads(next(iter(arguments if arguments is not None else sys.argv[1:])))
    client = socket.socket(fileno=settings.pop("descriptor"))
    Server(client, settings["folder"], settings["performer"], tuple(settings["preload"]), settings["only"]).serve()


if __name__ == "__main__":
    main()
