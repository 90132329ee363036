"""Several curves in one picture, as inline SVG: what an experiment compares."""
from __future__ import annotations

import itertools
import math

from traindx.core.exams import Points
from traindx.core.text import EMPTY, Text
from traindx.figures import Axis, Chart, Series
from traindx.figures.run import RUN_ROLES, STEP
from traindx.figures.svg import svg
from traindx.reporters.exam_words import curve_name

WIDTH, HEIGHT = 620, 240
OVER_TIME = Axis(STEP)


def overlay(curves: dict[str, Points], log_x: bool = False) -> str:
    """An ``<svg>`` with a legend and, where no value forbids it, a logarithmic vertical axis; NaN and Inf are crosses, so that a
    divergence is seen. Empty where there is nothing to draw."""
    chart = chart_of(curves, Axis(STEP, log=log_x))
    return svg(chart, WIDTH, HEIGHT) if chart is not None else ""


def chart_of(curves: dict[str, Points], x: Axis = OVER_TIME, title: Text = EMPTY) -> Chart | None:
    """Runs that differ in their seed only share name and colour. None where no value is finite."""
    curves = {name: points for name, points in curves.items() if points}
    values = [y for points in curves.values() for _, y in points if math.isfinite(y)]
    if not values:
        return None
    roles = dict(zip(dict.fromkeys(map(_arm, curves)), itertools.cycle(RUN_ROLES)))
    series = tuple(Series(curve_name(_arm(name)), [at for at, _ in points], [y for _, y in points], roles[_arm(name)])
                   for name, points in curves.items())
    return Chart(title, x, Axis(EMPTY, log=min(values) > 0), series)


def _arm(name: str) -> str:
    return name.rpartition(", seed ")[0] or name
