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
POLL_SECONDS = 0.1


@dataclass
class Outcome:
    """``status`` is the exit status as a shell would show it: 128 + the number of a signal that ended the script."""

    status: int
    seconds: float
    recording: Recording
    signal: int | None = None


def command_for(script: str | None, module: str | None, args: Sequence[str]) -> list[str]:
    return [sys.executable, *(["-m", module] if module else [str(script)]), *args]


def launch(command: Sequence[str], folder: Path, settings: dict[str, Any],
           watch: Callable[[Recording], None] = lambda recording: None, stdout: Any = None, grouped: bool = False) -> Outcome:
    """Runs ``command`` to its end.

    ``watch`` is called with the recording: once while it is empty and the script has only just begun, then about ten
    times a second when there is news.
    ``stdout`` is where the script's output goes, if not to our own. ``grouped``: whoever signals us signals our whole process group.
    """
    environment = dict(os.environ)
    environment["TRAINDX_BOOT"] = json.dumps({"folder": str(folder.resolve()), **settings})
    environment["PYTHONPATH"] = os.pathsep.join([str(BOOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    began = time.monotonic()
    child = subprocess.Popen(command, env=environment, stdout=stdout)
    with _passing_signals_to(child, grouped):
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


class _passing_signals_to:
    """A signal to us is handed on, but not the Ctrl-C that reaches the child from the terminal itself."""

    def __init__(self, child: subprocess.Popen[bytes], grouped: bool = False) -> None:
        self.child = child
        self.grouped = grouped
        self.before: dict[int, Any] = {}

    def __enter__(self) -> None:
        def hand_on(number: int, frame: Any) -> None:
            if not self.grouped:
                self.child.send_signal(number)

        def hand_on_once(number: int, frame: Any) -> None:
            if not _terminal_sends_to_us():
                hand_on(number, frame)
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
