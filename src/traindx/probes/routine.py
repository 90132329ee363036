"""A run that does the same from step to step is watched in full only now and then: how it repeats, and how long it may be let alone.

Watching a step in full costs about the same whatever the step, which short steps feel. Once the windows repeat, full steps
come in bursts, as many as cost :data:`SHARE` of the time; between them every event is compared with what the burst saw, and
the first that differs brings full watching back at once.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from traindx.core.observed.program import Event

BEGIN = 128  # the steps that are watched in full, whatever it costs
SHARE = 0.01  # of the time, that watching in full may cost afterwards
LONGEST = 100  # steps that are let alone in a row
MOST_KINDS = 1000  # of windows that are told apart
PERIODS = 8  # windows after which a run may repeat: several networks, a critic that steps five times
MARGIN = 2  # steps before one on which probes look closely: following gradients begins there
SMOOTH = 0.1  # weight of the latest step in running means
SMOOTH_ALONE = 0.5  # of the mean over all steps that were let alone together


def detailed_step(step: int) -> bool:
    """Steps on which probes may spend milliseconds: dense at first, then four to the doubling, at least every 500."""
    if step <= 8:
        return True
    top = 1 << (step.bit_length() - 1)
    return (step - top) * 4 % top == 0 if step < 2048 else step % 500 == 0


def scheduled(step: int) -> bool:
    """Steps on which probes look closely or report: powers of two are among them."""
    return detailed_step(step) or step & (step - 1) == 0


class Routine:
    """Knows the latest windows, what a step takes, and what of that was ours."""

    def __init__(self) -> None:
        self.period = 1
        self._windows: deque[tuple[int, Sequence[Event]]] = deque(maxlen=3 * PERIODS)
        self._numbers: dict[tuple[object, ...], int] = {}
        self._step = 0.0
        self._ours = 0.0
        self._watched = 0  # windows since the last time that the run was let alone

    def note(self, events: Sequence[Event]) -> None:
        """A window that was watched in full is over."""
        key = tuple((e.what, id(e.site), e.who, e.detail, e.count) for e in events)
        number = self._numbers.get(key, -1)
        if number < 0 and len(self._numbers) < MOST_KINDS and not any(map(_unusual, events)):
            number = self._numbers[key] = len(self._numbers)
        self._windows.append((number, events))
        self._watched += 1

    def took(self, seconds: float, ours: float) -> None:
        """What a step took that was watched in full, and what of it was ours; a pause (a checkpoint) counts little."""
        self._step = _smoothed(self._step, seconds, SMOOTH)
        self._ours = _smoothed(self._ours, ours, SMOOTH)

    def let_alone(self, windows: int, seconds: float) -> None:
        """What so many windows took that were let alone."""
        if windows:
            self._step = _smoothed(self._step, seconds / windows, SMOOTH_ALONE)

    def gap(self, step: int) -> int:
        """How many windows from this step on may be let alone; 0 where the run is new, changes, or is cheap to watch."""
        if step <= BEGIN or self._watched < 4 or self._ours <= SHARE * self._step:
            return 0
        period = self._found_period()
        burst = 3 * period + 1
        if not period or self._watched < burst:
            return 0
        self.period = period
        length = min(LONGEST, int(burst * (self._ours / (SHARE * self._step) - 1)))
        margin = MARGIN + period
        ahead = next((s for s in range(step, step + length + margin) if scheduled(s)), step + length + margin)
        return max(0, ahead - margin - step)

    def cycle(self) -> list[Sequence[Event]]:
        """The windows to come; they are let alone from here on."""
        self._watched = 0
        return [events for _, events in list(self._windows)[-self.period:]]

    def _found_period(self) -> int:
        """After how many windows the latest ones repeat; 0 where they do not."""
        numbers = [number for number, _ in self._windows]
        for period in range(1, PERIODS + 1):
            span = max(4, 3 * period)
            latest = numbers[-span:]
            if len(latest) == span and min(latest) >= 0 and latest[period:] == latest[:-period]:
                return period
        return 0


def _unusual(event: Event) -> bool:
    """Weights that come from elsewhere, losses of an evaluation: each time they may tell something."""
    return event.what == "load" or (event.what == "loss" and event.detail.endswith(" no_grad"))


def _smoothed(mean: float, value: float, weight: float) -> float:
    return mean + weight * (min(value, 3 * mean) - mean) if mean else value
