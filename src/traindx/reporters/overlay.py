"""Several curves in one picture, as inline SVG: what an experiment compares."""
from __future__ import annotations

import math
from html import escape

from traindx.core.exams import Points
from traindx.core.text import LANGUAGES, number
from traindx.reporters.curves import BUCKETS, thinned
from traindx.reporters.exam_words import curve_name

WIDTH, HEIGHT = 620, 240
LEFT, RIGHT, TOP, BOTTOM = 56, 12, 24, 24
COLOURS = ("#1769aa", "#c4241a", "#1a7f37", "#a15c00", "#7d4cdb", "#0d8a8a")


def overlay(curves: dict[str, Points], log_x: bool = False) -> str:
    """An ``<svg>`` with a logarithmic vertical axis and a legend. Values that are not positive or not finite are drawn as
    crosses on the upper edge, so that a divergence is seen. Empty where there is nothing to draw."""
    shown = {name: points for name, points in curves.items() if points}
    drawn = [(x, y) for points in shown.values() for x, y in points if _drawable(y)]
    if not drawn:
        return ""
    scale = _Scale(drawn, log_x)
    colours = {arm: COLOURS[at % len(COLOURS)] for at, arm in enumerate(dict.fromkeys(map(_arm, shown)))}
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">', *scale.grid()]
    for name, points in shown.items():
        parts += _curve(scale, points, colours[_arm(name)])
    return "".join([*parts, *_legend(colours), "</svg>"])


def _arm(name: str) -> str:
    """Runs that differ in their seed only share a colour."""
    return name.rpartition(", seed ")[0] or name


def _legend(colours: dict[str, str]) -> list[str]:
    """Above the curves, in both languages, one of them shown."""
    step = (WIDTH - LEFT - RIGHT) / max(len(colours), 3)
    return [f'<text class="{language}" x="{LEFT + step * at:.0f}" y="12" style="fill:{colour}">'
            f'{escape(curve_name(name).say(language))}</text>'
            for at, (name, colour) in enumerate(colours.items()) for language in LANGUAGES]


def _drawable(value: float) -> bool:
    return math.isfinite(value) and value > 0


def _curve(scale: _Scale, points: Points, colour: str) -> list[str]:
    good = [(x, y) for x, y in points if _drawable(y)]
    line = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in thinned(good, BUCKETS))  # type: ignore[arg-type]
    lost = [scale.x(x) for x, y in points if not _drawable(y)][:BUCKETS]
    crosses = [f'<path class="cross" d="M{x - 3:.1f} {TOP}l6 6m0 -6l-6 6"/>' for x in lost]
    return [f'<polyline points="{line}" style="fill:none;stroke:{colour};stroke-width:1.5"/>', *crosses]


class _Scale:
    def __init__(self, points: Points, log_x: bool) -> None:
        self.log_x = log_x
        xs, ys = [self._across(x) for x, _ in points], [math.log10(y) for _, y in points]
        self.left, self.right = min(xs), max(xs)
        room = 0.05 * (max(ys) - min(ys)) or 0.1
        self.low, self.high = min(ys) - room, max(ys) + room

    def _across(self, x: float) -> float:
        return math.log10(x) if self.log_x and x > 0 else x

    def x(self, x: float) -> float:
        share = (self._across(x) - self.left) / (self.right - self.left) if self.right > self.left else 0.5
        return LEFT + (WIDTH - LEFT - RIGHT) * share

    def y(self, y: float) -> float:
        share = (math.log10(y) - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def grid(self) -> list[str]:
        rows = []
        for level in (self.low, (self.low + self.high) / 2, self.high):
            y = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (level - self.low) / (self.high - self.low)
            rows.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
                        f'<text x="{LEFT - 6}" y="{y + 3:.1f}" text-anchor="end">{escape(number(10 ** level))}</text>')
        for x, anchor in ((self.left, "start"), (self.right, "end")):
            shown = number(10 ** x if self.log_x else x)
            at = LEFT if anchor == "start" else WIDTH - RIGHT
            rows.append(f'<text x="{at}" y="{HEIGHT - 6}" text-anchor="{anchor}">{escape(shown)}</text>')
        return rows
