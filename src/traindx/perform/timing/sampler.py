"""Looks at the training thread's stack some hundred times a second: which of the user's lines it is at, and what that line is calling."""
from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from types import FrameType

from traindx.core.observed import Site
from traindx.perform.timing.clock import HOST, Clock
from traindx.probes import sites

SECONDS = 0.002  # between looks
# seconds that a look waits for the interpreter: else it comes only where the program lets go of it, and sees those lines too often
SWITCH = 1e-5
DEEPEST = 200
FILLING = "filling"


class Sampler:
    """``with Sampler(clock, thread):`` samples while the block runs. ``counts``: (phase, line, what it calls) -> samples.

    ``filling``: lines (file, first, last) that fill a batch in place. What the program does there, in no phase of its own, is ``FILLING``.
    """

    def __init__(self, clock: Clock, thread: int, filling: Sequence[tuple[str, int, int]] = ()) -> None:
        self.clock, self.thread, self.filling = clock, thread, filling
        self.counts: Counter[tuple[str, Site | None, str]] = Counter()
        self._stop = threading.Event()
        self._looker = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Sampler:
        self._before = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH)
        self._looker.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._looker.join(1.0)
        sys.setswitchinterval(self._before)

    def _look(self) -> None:
        while not self._stop.is_set():
            time.sleep(SECONDS)
            phase = self.clock.phase
            frame = sys._current_frames().get(self.thread)
            if frame is not None and self.clock.running:
                site, calls = where(frame)
                phase = FILLING if phase == HOST and self.filling and runs_in(frame, self.filling) else phase
                self.counts[phase, site, calls] += 1


def runs_in(frame: FrameType | None, lines: Sequence[tuple[str, int, int]]) -> bool:
    """Whether one of these lines is running, or something that it called."""
    deep = 0
    while frame is not None and deep < DEEPEST:
        name, at = frame.f_code.co_filename, frame.f_lineno
        if any(file == name and first <= at <= last for file, first, last in lines):
            return True
        frame, deep = frame.f_back, deep + 1
    return False


def where(frame: FrameType | None) -> tuple[Site | None, str]:
    """The innermost line of the user's, and the function below it (``package.name``; "" where the line runs itself)."""
    below, deep = "", 0
    while frame is not None and deep < DEEPEST:
        code = frame.f_code
        if sites.is_user(code.co_filename):
            return sites.at(code.co_filename, frame.f_lineno, code.co_name), below
        if not sites.is_ours(code.co_filename):
            below = f"{str(frame.f_globals.get('__name__', '')).partition('.')[0]}.{code.co_name}"
        frame, deep = frame.f_back, deep + 1
    return None, below
