"""Runs a script in a child python under observation, and follows its recording. Imports no torch."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traindx.core.recording import Recording

BOOT = Path(__file__).parent / "boot"
BOOT_SETTINGS = "TRAINDX_BOOT"
POLL_SECONDS = 0.1
Wrap = Callable[[dict[str, str]], Sequence[str]]  # the boot variables, which the command sets itself -> the command


@dataclass
class Outcome:
    """``status`` is the exit status as a shell would show it: 128 + the number of a signal that ended the script."""

    status: int
    seconds: float
    recording: Recording
    signal: int | None = None


def command_for(script: str | None, module: str | None, args: Sequence[str]) -> list[str]:
    return [sys.executable, *(["-m", module] if module else [str(script)]), *args]


def boot_variables(folder: Path, settings: dict[str, Any]) -> dict[str, str]:
    """What makes a python watch itself."""
    return {BOOT_SETTINGS: json.dumps({"folder": str(folder.resolve()), **settings}),
            "PYTHONPATH": os.pathsep.join([str(BOOT), *filter(None, [os.environ.get("PYTHONPATH")])])}


def launch(command: Sequence[str] | Wrap, folder: Path, settings: dict[str, Any],
           watch: Callable[[Recording], None] = lambda recording: None, stdout: Any = None, grouped: bool = False) -> Outcome:
    """Runs ``command`` to its end; a function of the boot variables makes one that starts a python with them further down.

    ``watch`` is called with the recording: once while it is empty and the script has only just begun, then about ten
    times a second when there is news.
    ``stdout`` is where the script's output goes, if not to our own. ``grouped``: whoever signals us signals our whole process group.
    """
    variables = boot_variables(folder, settings)
    began = time.monotonic()
    if callable(command):
        child = subprocess.Popen(command(variables), stdout=stdout)
    else:
        child = subprocess.Popen(command, env={**os.environ, **variables}, stdout=stdout)
    with passing_signals_to(child.pid, grouped):
        from traindx.core.recording import Recording, Tail  # what we need ourselves is made ready while the script starts
        recording = Recording()
        tail = Tail(folder, recording)
        watch(recording)
        for _ in _while_running(child):
            if tail.read():
                watch(recording)
    tail.read()
    tail.finish()
    returned = child.wait()
    killed_by = -returned if returned < 0 else None
    return Outcome(128 + killed_by if killed_by else returned, time.monotonic() - began, recording, killed_by)


def _while_running(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Again and again until the child has ended, which is known at once."""
    waiting = threading.Thread(target=child.wait, daemon=True)
    waiting.start()
    while waiting.is_alive():
        waiting.join(POLL_SECONDS)
        yield


class passing_signals_to:
    """A signal to us is handed on to a process, but not the Ctrl-C that reaches it from the terminal itself."""

    def __init__(self, process: int, grouped: bool = False) -> None:
        self.process = process
        self.grouped = grouped
        self.before: dict[int, Any] = {}

    def __enter__(self) -> None:
        def hand_on(number: int, frame: Any) -> None:
            self._send(number, 0 if self.grouped else number)

        def hand_on_once(number: int, frame: Any) -> None:
            self._send(number, 0 if self.grouped or _terminal_sends_to_us() else number)
        handlers: dict[int, Any] = {signal.SIGINT: hand_on_once, signal.SIGTERM: hand_on}
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = hand_on
        for number, handler in handlers.items():
            if signal.getsignal(number) is signal.SIG_IGN:  # under nohup, or in the background: as for the child
                continue
            try:
                self.before[number] = signal.signal(number, handler)
            except ValueError:  # not in the main thread
                return

    def _send(self, number: int, handed: int) -> None:
        """``handed`` 0 only asks whether the process lives; once it has ended, the signal is for us."""
        try:
            os.kill(self.process, handed)
        except ProcessLookupError:
            signal.signal(number, self.before.get(number, signal.SIG_DFL))
            os.kill(os.getpid(), number)

    def __exit__(self, *exc: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


def _terminal_sends_to_us() -> bool:
    """Whether we are in the foreground of a terminal: its Ctrl-C goes to the whole group, the child included."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
