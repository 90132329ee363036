"""Some steps under torch.profiler: started between two steps, and gone before the program's own profiler begins."""
from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch.autograd import profiler
from torch.profiler import ProfilerActivity, profile, record_function, supported_activities

from traindx.core.codec import encode
from traindx.core.text import Text
from traindx.interventions.tools.handmade import HandMade
from traindx.probes import patching
from traindx.speed.events import FETCHES, WINDOW, summary

BEGINS = ("_prepare_profiler", "_enable_profiler")  # what every profiler of torch's goes through
OTHERS = Text("the program runs a profiler of its own, and there can be only one at a time", "程序自己开着 profiler，同一时间只能有一个")
FAILED = Text("torch.profiler could not be used: {error}", "torch.profiler 用不了：{error}")
TOO_MANY = Text("a step has {count} operations, too many to record each", "每步有 {count} 个算子，太多，没法逐个记录")
NO_STEP = Text("no whole step was recorded", "没有记录到完整的一步")


class Tracing:
    """``mark`` and ``unmark`` around blocks of steps, each then told by ``timed``; the first begins the recording, ``result`` ends it.
    Nothing here raises."""

    def __init__(self, stack: ExitStack, folder: Path) -> None:
        self.file = folder / f"torch-profiler-{os.getpid()}.json"
        self.why: Text | None = None
        self._profile: Any = None
        self._mark: Any = None
        self._marks = 0
        self._best: tuple[float, int, int] | None = None  # seconds of a step, mark, steps
        self._ours = False
        for name in BEGINS:
            patching.replace(stack, profiler, name, self._begun)
        patching.replace(stack, HandMade, "give", self._fetched)
        stack.callback(self.abandon)

    def _begun(self, original: Any) -> Any:
        def begin(*args: Any, **kwargs: Any) -> Any:
            if not self._ours:
                self._give_way()
            return original(*args, **kwargs)
        return patching.dressed(begin, original)

    def _fetched(self, original: Any) -> Any:
        """A batch of the program's own lines is marked as a DataLoader marks its."""
        def give(made: HandMade, key: int, make: Callable[[], Any]) -> Any:
            if self._mark is None:
                return original(made, key, make)
            with record_function(f"{FETCHES}#by hand"):
                return original(made, key, make)
        return give

    def _give_way(self) -> None:
        """Also to one that is prepared and waits for its turn: a second beginning would take its recording from it."""
        self.why = OTHERS
        self.abandon()

    def mark(self) -> None:
        """Between two steps, on the thread that trains."""
        try:
            if self._profile is None and self.why is None:
                self._start()
            if self._profile is not None:
                self._mark = record_function(f"{WINDOW}{self._marks}")
                self._mark.__enter__()
                self._marks += 1
        except Exception as problem:
            self._failed(problem)

    def unmark(self) -> None:
        try:
            mark, self._mark = self._mark, None
            if mark is not None:
                mark.__exit__(None, None, None)
        except Exception as problem:
            self._failed(problem)

    def timed(self, seconds: list[float]) -> None:
        """Of the steps in the last mark. That one is taken whose steps were quickest: nothing else went on in it."""
        if seconds and self._profile is not None:
            found = (sum(seconds) / len(seconds), self._marks - 1, len(seconds))
            self._best = min(found, self._best or found)

    @property
    def has_some(self) -> bool:
        return self._best is not None

    def _start(self) -> None:
        if torch.autograd._profiler_enabled():
            self.why = OTHERS
            return
        wanted = {ProfilerActivity.CPU} | ({ProfilerActivity.CUDA} if torch.cuda.is_initialized() else set())
        self._ours = True
        try:
            found = profile(activities=wanted & supported_activities())
            found.start()
        finally:
            self._ours = False
        self._profile = found

    def result(self) -> dict[str, Any]:
        """The summary of the best mark; or ``why`` there is none."""
        found, best = None, self._best
        try:
            self.unmark()
            recorded, self._profile, self._best = self._profile, None, None
            if recorded is not None:
                recorded.stop()
                if best is not None:
                    recorded.export_chrome_trace(str(self.file))
                    found = summary(json.loads(self.file.read_text(encoding="utf-8", errors="replace")), *best[1:])
        except Exception as problem:
            self._failed(problem)
        self.file.unlink(missing_ok=True)
        return found if found is not None else {"why": encode(self.why or NO_STEP)}

    def abandon(self) -> None:
        """Ends the recording and forgets it."""
        self.unmark()
        recorded, self._profile, self._best = self._profile, None, None
        try:
            if recorded is not None:
                recorded.stop()
        except Exception as problem:
            self._failed(problem)

    def _failed(self, problem: Exception) -> None:
        self.why = FAILED.fill(error=f"{type(problem).__name__}: {problem}"[:200])
        self._profile = self._mark = self._best = None
