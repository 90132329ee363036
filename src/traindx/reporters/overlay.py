"""Several curves in one picture, as inline SVG: what an experiment compares."""
from __future__ import annotations

import itertools
import math

from traindx.core.exams import Points
from traindx.core.text import EMPTY
from traindx.figures import Axis, Chart, Series
from traindx.figures.run import RUN_ROLES, STEP
from traindx.figures.svg import svg
from traindx.reporters.exam_words import curve_name

WIDTH, HEIGHT = 620, 240


def overlay(curves: dict[str, Points], log_x: bool = False) -> str:
    """An ``<svg>`` with a logarithmic vertical axis and a legend; NaN and Inf are crosses, so that a divergence is seen. Empty where
    there is nothing to draw."""
    shown = {name: points for name, points in curves.items() if points}
    if not any(math.isfinite(y) and y > 0 for points in shown.values() for _, y in points):
        return ""
    return svg(chart_of(shown, log_x), WIDTH, HEIGHT)


def chart_of(curves: dict[str, Points], log_x: bool = False) -> Chart:
    """Runs that differ in their seed only share name and colour."""
    roles = dict(zip(dict.fromkeys(map(_arm, curves)), itertools.cycle(RUN_ROLES)))
    series = tuple(Series(curve_name(_arm(name)), [x for x, _ in points], [y for _, y in points], roles[_arm(name)])
                   for name, points in curves.items())
    return Chart(EMPTY, Axis(STEP, log=log_x), Axis(EMPTY, log=True), series)


def _arm(name: str) -> str:
    return name.rpartition(", seed ")[0] or name
