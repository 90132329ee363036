"""Curves of the signals as inline SVG: no script, no network, readable in both themes."""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from traindx.core.text import number
from traindx.signals.monitors import Band

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 52, 10, 12, 22
LOG_FROM = 50.0  # ratio of the largest to the smallest positive value from which the axis is logarithmic
BUCKETS = 300
Points = Sequence[tuple[int, float]]


@dataclass(frozen=True)
class Marker:
    """A finding on the time axis: its number on the page, the first step, the rule's name."""

    number: int
    step: int
    rule: str
    level: str


@dataclass(frozen=True)
class Axes:
    """Where a step and a value lie in the picture."""

    steps: tuple[int, int]
    values: tuple[float, float]
    log: bool

    def x(self, step: float) -> float:
        first, last = self.steps
        return LEFT + (WIDTH - LEFT - RIGHT) * ((step - first) / (last - first) if last > first else 0.5)

    def y(self, value: float) -> float:
        low, high = self.values
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(max(value, low))
        share = (value - low) / (high - low) if high > low else 0.5
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * min(1.0, max(0.0, share))


def figure(points: Points, band: Band | None = None, markers: Iterable[Marker] = ()) -> str:
    """An ``<svg>`` of one signal: curve, usual band, NaN and Inf as crosses on the upper edge, findings as lines."""
    finite = [(step, value) for step, value in points if math.isfinite(value)]
    axes = axes_for(points, finite, band)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">', *_band(axes, band), *_grid(axes)]
    parts += [_marker(axes, marker) for marker in markers if axes.steps[0] <= marker.step <= axes.steps[1]]
    line = " ".join(f"{axes.x(step):.1f},{axes.y(value):.1f}" for step, value in thinned(finite, BUCKETS))
    parts.append(f'<polyline class="curve" points="{line}"/>' if len(finite) > 1 else _dots(axes, finite))
    parts += [_cross(axes.x(step)) for step, value in points if not math.isfinite(value)][:BUCKETS]
    return "".join([*parts, "</svg>"])


def axes_for(points: Points, finite: Points, band: Band | None) -> Axes:
    """All values and, where they lie outside the band, its nearer edge."""
    steps = (points[0][0], points[-1][0])
    values = [value for _, value in finite] or [0.0, 1.0]
    low, high = min(values), max(values)
    if band:
        low, high = min(low, band.high), max(high, band.low)
    if low > 0 and high / low > LOG_FROM:
        return Axes(steps, (low, high), True)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return Axes(steps, (low - room, high + room), False)


def thinned(points: Points, buckets: int) -> Points:
    """At most the lowest and the highest point of each bucket: spikes stay."""
    if len(points) <= 2 * buckets:
        return points
    size = math.ceil(len(points) / buckets)
    kept: list[tuple[int, float]] = []
    for start in range(0, len(points), size):
        part = points[start:start + size]
        kept += sorted({min(part, key=_value), max(part, key=_value)})
    return kept


def _value(point: tuple[int, float]) -> float:
    return point[1]


def _grid(axes: Axes) -> Iterable[str]:
    low, high = axes.values
    middle = math.sqrt(low * high) if axes.log else (low + high) / 2
    for value in (low, middle, high):
        y = axes.y(value)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 3:.1f}" text-anchor="end">{escape(number(value))}</text>'
    first, last = axes.steps
    for step, anchor in {first: "start", last: "end" if last > first else "middle"}.items():
        yield f'<text x="{axes.x(step):.1f}" y="{HEIGHT - 6}" text-anchor="{anchor}">{step}</text>'


def _band(axes: Axes, band: Band | None) -> Iterable[str]:
    if band is None:
        return
    top, bottom = axes.y(band.high), axes.y(band.low)
    yield f'<rect class="band" x="{LEFT}" y="{top:.1f}" width="{WIDTH - LEFT - RIGHT}" height="{bottom - top:.1f}"/>'


def _marker(axes: Axes, marker: Marker) -> str:
    x = axes.x(marker.step)
    return (f'<g class="mark {escape(marker.level)}"><title>{escape(marker.rule)}</title>'
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
            f'<text x="{x + 2:.1f}" y="{TOP + 8 + 10 * ((marker.number - 1) % 4)}">{marker.number}</text></g>')


def _dots(axes: Axes, points: Points) -> str:
    return "".join(f'<circle class="dot" cx="{axes.x(step):.1f}" cy="{axes.y(value):.1f}" r="3"/>'
                   for step, value in points)


def _cross(x: float) -> str:
    return f'<path class="cross" d="M{x - 3:.1f} {TOP - 3}l6 6m0 -6l-6 6"/>'
