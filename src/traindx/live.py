"""While the script runs: an error that is already sure is said at once, in one line, once."""
from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection

from traindx import messages
from traindx.core.findings import Judged
from traindx.core.recording import Recording
from traindx.core.rules import all_rules
from traindx.core.text import EMPTY, Language
from traindx.diagnosis import diagnose

LOOKS = (1, 2, 3, 5)  # steps; then 10, 30, 100, 300 ...
SECONDS = 20.0  # a look at least this often while there is news
REST = 10.0  # after a look, ten times its cost without another


class Live:
    """Called with the growing recording; says what must be said, and remembers it in ``said``.

    A finding is said when it stands in two looks one after the other: what only seemed so at a half-done step is not.
    """

    def __init__(self, rules: Collection[str] | None, language: Language, out: Callable[[str], None] | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.rules = rules
        self.language = language
        self.said: list[str] = []
        self._out = out or on_own_line
        self._clock = clock
        self._next = LOOKS[0]
        self._looked = clock()
        self._rest_until = 0.0
        self._before: set[str] = set()

    def __call__(self, recording: Recording) -> None:
        now, step = self._clock(), recording.steps
        if recording.empty:
            self._get_ready()
            return
        if now < self._rest_until or (step < self._next and now - self._looked < SECONDS):
            return
        self._next = next_look(step)
        self._look(recording, step)
        self._looked = self._clock()
        self._rest_until = self._looked + min(SECONDS, REST * (self._looked - now))

    @staticmethod
    def _get_ready() -> None:
        """Executes the rules while the script still starts: the first look is then a quick one."""
        for rule in all_rules().values():
            _ = rule.needs

    def _look(self, recording: Recording, step: int) -> None:
        sure = {judged.rule: judged for judged in diagnose(recording, self.rules).findings if _is_sure(judged)}
        for rule, judged in sure.items():
            if rule in self._before and rule not in self.said:
                self.said.append(rule)
                self._out(self._line(judged, step))
        self._before = set(sure)

    def _line(self, judged: Judged, step: int) -> str:
        where = judged.finding.where
        place = messages.LIVE_PLACE.fill(place=f"{where.file}:{where.line}") if where else EMPTY
        return messages.LIVE.fill(step=step, level=messages.LEVEL[judged.level], rule=judged.rule, title=judged.title,
                                  place=place).say(self.language)


def _is_sure(judged: Judged) -> bool:
    return judged.level == "error" and judged.explained_by is None and judged.finding.confidence != "suspected"


def next_look(step: int) -> int:
    """The first of 1, 2, 3, 5, 10, 30, 100, 300 ... that is above ``step``."""
    for look in LOOKS:
        if look > step:
            return look
    ten = 10
    while True:
        for look in (ten, 3 * ten):
            if look > step:
                return look
        ten *= 10


def on_own_line(line: str) -> None:
    """One write to stderr. On a terminal it begins a fresh line: the script may have left the cursor within its own."""
    fresh = "\n" if sys.stderr.isatty() else ""
    try:
        os.write(2, f"{fresh}{line}\n".encode("utf-8", "replace"))
    except OSError:
        pass  # nobody reads stderr any more
