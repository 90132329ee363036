"""A chart as inline SVG, for pages without a script: both languages in it, colours that both themes can bear."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from html import escape

from traindx.core.text import LANGUAGES, Text, number
from traindx.figures.charts import Axis, Chart, Mark, Series
from traindx.figures.drawing import COLOURS
from traindx.figures.thinning import thinned

WIDTH, HEIGHT = 360, 190
LEFT, RIGHT, TOP, BOTTOM = 52, 10, 12, 22
LEGEND = 14
BUCKETS = 300
ROOM = 0.05  # above and below a linear curve, of its span


@dataclass(frozen=True)
class Scale:
    """Where values of one axis lie between two ends of the picture."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def at(self, value: float) -> float:
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(max(value, low))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + (self.end - self.start) * min(1.0, max(0.0, share))

    @property
    def middle(self) -> float:
        return math.sqrt(self.low * self.high) if self.log else (self.low + self.high) / 2


@dataclass(frozen=True)
class Frame:
    """The two scales of one picture."""

    x: Scale
    y: Scale
    width: int
    height: int

    @property
    def top(self) -> float:
        return self.y.end


def svg(chart: Chart, width: int = WIDTH, height: int = HEIGHT) -> str:
    """An ``<svg>``: curves, usual band, marks; NaN and Inf as crosses on the upper edge, what a logarithmic axis cannot show on the
    lower one. Empty where no curve has a point."""
    if not any(len(series.x) for series in chart.series):
        return ""
    frame = frame_of(chart, width, height)
    parts = [f'<svg viewBox="0 0 {width} {height}" role="img">', _title(chart.title), *_band(chart, frame), *_grid(frame),
             *_steps(chart.x, frame)]
    parts += [part for mark in chart.marks for part in _mark(mark, frame)]
    parts += [part for series in chart.series for part in _curve(series, frame)]
    return "".join([*parts, *_legend(chart, width), "</svg>"])


def frame_of(chart: Chart, width: int = WIDTH, height: int = HEIGHT) -> Frame:
    """Axes as the chart says, else around all that is drawn."""
    top = TOP + (LEGEND if len(_names(chart)) > 1 else 0)
    xs = [x for series in chart.series for x in series.x]
    ys = [y for series in chart.series for y in series.y]
    left, right = _ends(chart.x, xs, 0.0)
    low, high = _ends(chart.y, ys, ROOM)
    return Frame(Scale(left, right, LEFT, width - RIGHT, chart.x.log), Scale(low, high, height - BOTTOM, top, chart.y.log), width, height)


def _ends(axis: Axis, values: list[float], room: float) -> tuple[float, float]:
    if axis.range:
        return axis.range
    seen = [value for value in values if _drawable(value, axis.log)] or [1.0]
    low, high = min(seen), max(seen)
    if axis.log:
        return (low, high) if high > low else (low / 2, high * 2)
    more = room * (high - low) or (room * abs(high) or room)
    return low - more, high + more


def _drawable(value: float, log: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not log)


def _curve(series: Series, frame: Frame) -> Iterator[str]:
    """Pieces between the gaps; a piece of one point is a dot."""
    colour = COLOURS[series.role]
    points = thinned(list(zip(series.x, series.y)), BUCKETS)
    if series.kind == "bars":
        yield from (_bar(frame, x, y, colour, len(points)) for x, y in points if math.isfinite(y))
        return
    for piece in _pieces(points, lambda y: _drawable(y, frame.y.log)):
        if len(piece) > 1 and series.kind != "points":
            yield _line(frame, piece, colour, series.dashed)
        if len(piece) == 1 or series.kind != "line":
            yield from (f'<circle class="dot" cx="{frame.x.at(x):.1f}" cy="{frame.y.at(y):.1f}" r="3" style="fill:{colour}"/>' for x, y in piece)
    lost = [(x, y) for x, y in points if not _drawable(y, frame.y.log)]
    yield from (_cross(frame.x.at(x), frame.y.start if math.isfinite(y) else frame.top) for x, y in lost[:BUCKETS])


def _pieces(points: Iterable[tuple[float, float]], drawable: Callable[[float], bool]) -> Iterator[list[tuple[float, float]]]:
    piece: list[tuple[float, float]] = []
    for point in points:
        if drawable(point[1]):
            piece.append(point)
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _line(frame: Frame, piece: list[tuple[float, float]], colour: str, dashed: bool) -> str:
    at = " ".join(f"{frame.x.at(x):.1f},{frame.y.at(y):.1f}" for x, y in piece)
    dash = ";stroke-dasharray:5 4" if dashed else ""
    return f'<polyline points="{at}" style="fill:none;stroke:{colour};stroke-width:1.6;stroke-linejoin:round{dash}"/>'


def _bar(frame: Frame, x: float, y: float, colour: str, count: int) -> str:
    wide = 0.7 * (frame.x.end - frame.x.start) / max(count, 2)
    top, foot = sorted((frame.y.at(y), frame.y.at(0.0) if not frame.y.log else frame.y.start))
    return f'<rect x="{frame.x.at(x) - wide / 2:.1f}" y="{top:.1f}" width="{wide:.1f}" height="{foot - top:.1f}" style="fill:{colour}"/>'


def _cross(x: float, y: float) -> str:
    return f'<path class="cross" d="M{x - 3:.1f} {y - 3:.1f}l6 6m0 -6l-6 6" stroke="{COLOURS["bad"]}" stroke-width="1.5" fill="none"/>'


def _band(chart: Chart, frame: Frame) -> Iterator[str]:
    if chart.band is not None:
        top, foot = frame.y.at(chart.band.high), frame.y.at(chart.band.low)
        yield (f'<rect class="band" x="{LEFT}" y="{top:.1f}" width="{frame.x.end - LEFT:.1f}" height="{foot - top:.1f}" '
               f'style="fill:{COLOURS["good"]};fill-opacity:.12"/>')


def _grid(frame: Frame) -> Iterator[str]:
    for value in (frame.y.low, frame.y.middle, frame.y.high):
        y = frame.y.at(value)
        yield f'<line class="grid" x1="{LEFT}" x2="{frame.x.end}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 3:.1f}" text-anchor="end">{tick(value)}</text>'


def tick(value: float) -> str:
    """A number at an axis, as short as it may be: 8.02e3, 6e-8."""
    return number(value).replace("e+0", "e").replace("e+", "e").replace("e-0", "e-")


def _steps(axis: Axis, frame: Frame) -> Iterator[str]:
    """The names along the x axis, or its two ends."""
    for at, name in enumerate(axis.names, 1):
        yield _words(name, frame.x.at(at), frame.height - 6, "currentColor", "middle")
    first, last = frame.x.low, frame.x.high
    if axis.names:
        return
    for step, anchor in {first: "start", last: "end" if last > first else "middle"}.items():
        yield f'<text x="{frame.x.at(step):.1f}" y="{frame.height - 6}" text-anchor="{anchor}">{tick(step)}</text>'


def _mark(mark: Mark, frame: Frame) -> Iterator[str]:
    """A dotted line with its name; marks outside of the picture are left out."""
    scale = frame.x if mark.axis == "x" else frame.y
    if not scale.low <= mark.at <= scale.high:
        return
    if mark.hint:
        yield f"<g><title>{escape(mark.hint)}</title>"
    yield from _line_and_name(mark, scale.at(mark.at), frame)
    if mark.hint:
        yield "</g>"


def _line_and_name(mark: Mark, at: float, frame: Frame) -> Iterator[str]:
    style = f"stroke:{COLOURS[mark.role]};stroke-dasharray:3 3"
    if mark.axis == "x":
        yield f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{frame.top}" y2="{frame.y.start}" style="{style}"/>'
        late = at > (frame.x.start + frame.x.end) / 2
        yield _words(mark.label, at + (-3 if late else 3), frame.top + 9, COLOURS[mark.role], "end" if late else "start")
    else:
        yield f'<line x1="{LEFT}" x2="{frame.x.end}" y1="{at:.1f}" y2="{at:.1f}" style="{style}"/>'
        yield _words(mark.label, frame.x.end, at - 3, COLOURS[mark.role], "end")


def _names(chart: Chart) -> dict[Text, Series]:
    """One entry for curves of the same name: runs that differ in their seed only."""
    named: dict[Text, Series] = {}
    for series in chart.series:
        if len(series.x):
            named.setdefault(series.name, series)
    return named


def _legend(chart: Chart, width: int) -> Iterator[str]:
    names = _names(chart)
    if len(names) > 1:
        step = (width - LEFT - RIGHT) / max(len(names), 3)
        for at, (name, series) in enumerate(names.items()):
            yield _words(name, LEFT + step * at, 12, COLOURS[series.role])


def _words(text: Text, x: float, y: float, colour: str, anchor: str = "start") -> str:
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="fill:{colour}"'
    if text.en == text.zh:
        return f"<text {where}>{escape(text.en)}</text>" if text.en else ""
    return "".join(f'<text class="{language}" {where}>{escape(text.say(language))}</text>' for language in LANGUAGES)


def _title(text: Text) -> str:
    said = text.en if text.en == text.zh else f"{text.en} / {text.zh}"
    return f"<title>{escape(said)}</title>" if said else ""
