"""Windows: the events from one optimizer step to the next. Those that are alike are one pattern, counted."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from traindx.core.observed import Observation, Site
from traindx.core.observed.program import Event, Window

WINDOW_LIMIT = 200  # events kept of one window
MOST_PATTERNS = 500  # of windows


@dataclass
class Pattern:
    number: int
    events: tuple[Event, ...]
    first: int
    last: int
    count: int = 0
    said: int = 0


class Windows:
    """The window that is open, and the patterns of those that are closed."""

    def __init__(self, emit: Callable[[Observation], None]) -> None:
        self._emit = emit
        self.events: list[Event] = []
        self._made_events: dict[tuple[Any, ...], Event] = {}  # those of the next step are the same: made once
        self._patterns: dict[tuple[Any, ...], Pattern] = {}

    def append(self, what: str, site: Site | None, who: int, detail: str) -> Event | None:
        """The event where it is another than the last."""
        events = self.events
        if events:
            last = events[-1]
            if last.what == what and last.site is site and last.who == who and last.detail == detail:
                events[-1] = Event(what, site, who, detail, last.count + 1)
                return None
        if len(events) >= WINDOW_LIMIT:
            return None
        key = (what, id(site), who, detail)
        event = self._made_events.get(key)
        if event is None:
            event = Event(what, site, who, detail)
            if len(self._made_events) < 1000:
                self._made_events[key] = event
        events.append(event)
        return event

    def close(self) -> list[Event]:
        """The events of the window that is over."""
        events, self.events = self.events, []
        return events

    def count(self, pattern: Pattern, step: int) -> None:
        """One more, at this step; said at once where it is the first."""
        pattern.count += 1
        pattern.last = step
        if pattern.said == 0:
            self.say(pattern)

    def pattern(self, events: Sequence[Event], step: int) -> Pattern | None:
        """Windows that are alike; None where there are too many kinds."""
        events = fold_loops(events)
        # sites are interned, so their ids are their identity; counts of repeats do not make another pattern
        key = tuple((e.what, id(e.site), e.who, e.detail, e.count > 1) for e in events)
        pattern = self._patterns.get(key)
        if pattern is None and len(self._patterns) < MOST_PATTERNS:
            pattern = self._patterns[key] = Pattern(len(self._patterns), tuple(events), step, step)
        return pattern

    def say_all(self) -> None:
        for pattern in self._patterns.values():
            if pattern.said != pattern.count:
                self.say(pattern)

    def say(self, pattern: Pattern) -> None:
        pattern.said = pattern.count
        self._emit(Window(step=pattern.first, key=f"window-{pattern.number}", events=pattern.events,
                         count=pattern.count, last_step=pattern.last))


def fold_loops(events: Sequence[Event]) -> Sequence[Event]:
    """A loop inside a window (forward, loss, forward, loss ...) once, its events counted."""
    if len(events) < 8:
        return events
    folded: list[Event] = []
    for event in events:
        folded.append(event)
        for period in range(1, min(8, len(folded) // 2) + 1):
            if all(_alike(a, b) for a, b in zip(folded[-period:], folded[-2 * period:-period])):
                for i, repeat in enumerate(folded[-period:]):
                    old = folded[-2 * period + i]
                    folded[-2 * period + i] = Event(old.what, old.site, old.who, old.detail, old.count + repeat.count)
                del folded[-period:]
                break
    return folded


def _alike(a: Event, b: Event) -> bool:
    return a.what == b.what and a.site is b.site and a.who == b.who and a.detail == b.detail
