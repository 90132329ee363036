"""The figures of a run: the six monitors with bands, alarms and findings; other series; several runs over each other."""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from traindx.core.text import EMPTY, Text, number, same
from traindx.figures.charts import Axis, Band, Chart, Mark, Role, Series
from traindx.figures.thinning import thinned
from traindx.signals import monitors
from traindx.signals.alarms import Alarm, alarms_of
from traindx.signals.monitors import SIX, Monitor, Quantity

Points = Sequence[tuple[int, float]]
BUCKETS = 300
LOG_FROM = 50.0  # ratio of the largest to the smallest positive value from which the axis is logarithmic
LARGEST = 1e307  # that an axis shows: its width must be a number too
CLOSE = 0.08  # of the width: names of lines that are nearer would overlap
STEP = Text("step", "步")
BAND = Text("usual {low} .. {high} ({origin})", "正常范围 {low} .. {high}（{origin}）")
ORIGIN = {"measured": Text("measured", "实测"), "formula": Text("formula", "公式"), "rule of thumb": Text("rule of thumb", "经验值")}
LEVEL_ROLES: dict[str, Role] = {"error": "bad", "warning": "other", "note": "main"}
RUN_ROLES: tuple[Role, ...] = ("main", "other", "good", "third", "fourth", "bad")
_OF_SIX = {quantity.series: quantity for quantity in SIX}
_MADE = {"peak_memory_bytes": (Text("peak memory, MB", "内存峰值，MB"), 1e-6),
         "samples_per_second": (Text("samples a second", "每秒样本数"), 1.0),
         "lr": (Text("learning rate", "学习率"), 1.0),
         "raw_grad_norm": (Text("gradient norm before clipping", "裁剪之前的梯度范数"), 1.0),
         "activation_std_max": (Text("largest activation std of a layer", "各层激活标准差的最大值"), 1.0),
         "activation_std_min": (Text("smallest activation std of a layer", "各层激活标准差的最小值"), 1.0)}


@dataclass(frozen=True)
class Noted:
    """A finding on the time axis: its number on the page, its first step, the rule."""

    number: int
    step: int
    rule: str
    level: str = "error"


@dataclass(frozen=True)
class Reading:
    """One series of a run. ``quantity`` is None for what is none of the six; then there are no alarms."""

    name: str
    title: Text
    chart: Chart
    alarms: tuple[Alarm, ...] = ()
    quantity: Quantity | None = None


def readings(series: Mapping[str, Points], noted: Iterable[Noted] = (), buckets: int = BUCKETS) -> list[Reading]:
    """The six first, then every other series by name; empty ones are left out."""
    marks = tuple(_marks(noted))
    names = [*(name for name in _OF_SIX if series.get(name)), *sorted(name for name in series if name not in _OF_SIX and series[name])]
    return [reading(name, series[name], marks, buckets) for name in names]


def reading(name: str, points: Points, marks: tuple[Mark, ...] = (), buckets: int = BUCKETS) -> Reading:
    """One series as a chart of few points that keeps its spikes, its NaN and Inf."""
    quantity = _OF_SIX.get(name)
    title, scale = _shown(name)
    kept = _scaled(thinned(points, buckets), scale)
    alarms = tuple(alarms_of(Monitor(quantity, list(kept)))) if quantity else ()
    limits = quantity.band if quantity else None
    low, high, log = _range([value for _, value in kept], limits)
    curve = Series(title, [step for step, _ in kept], [value for _, value in kept], "main", "line" if len(kept) > 1 else "points")
    ends = (points[0][0], points[-1][0])
    drawn = (*marks, *(Mark("x", alarm.step, alarm.what, "bad") for alarm in alarms))
    chart = Chart(title, Axis(STEP, range=ends if ends[1] > ends[0] else None), Axis(EMPTY, log=log, range=(low, high)), (curve,),
                  tuple(_readable(drawn, ends)), _band(limits))
    return Reading(name, title, chart, alarms, quantity)


def _shown(name: str) -> tuple[Text, float]:
    """What a series is called, and what its values are multiplied by to be read in that unit."""
    quantity = _OF_SIX.get(name)
    return (quantity.title, 1.0) if quantity else _MADE.get(name, (same(name), 1.0))


def _scaled(points: Points, scale: float) -> Points:
    return points if scale == 1.0 else [(step, value * scale) for step, value in points]


def compared(runs: Mapping[str, Mapping[str, Points]], buckets: int = BUCKETS) -> list[Chart]:
    """One chart for each series that more than one run has, the six first; colours go by the order of ``runs``."""
    names = dict.fromkeys(name for series in runs.values() for name in series)
    shared = [name for name in names if sum(bool(series.get(name)) for series in runs.values()) > 1]
    shared.sort(key=lambda name: list(_OF_SIX).index(name) if name in _OF_SIX else len(_OF_SIX))
    return [_over_each_other(name, runs, buckets) for name in shared]


def _over_each_other(name: str, runs: Mapping[str, Mapping[str, Points]], buckets: int) -> Chart:
    quantity = _OF_SIX.get(name)
    title, scale = _shown(name)
    kept = {run: _scaled(thinned(series.get(name, ()), buckets), scale) for run, series in runs.items()}
    limits = quantity.band if quantity else None
    low, high, log = _range([value for points in kept.values() for _, value in points], limits)
    curves = tuple(Series(same(run), [step for step, _ in points], [value for _, value in points], RUN_ROLES[at % len(RUN_ROLES)],
                          "line" if len(points) > 1 else "points", dashed=at >= len(RUN_ROLES))
                   for at, (run, points) in enumerate(kept.items()) if points)
    return Chart(title, Axis(STEP), Axis(EMPTY, log=log, range=(low, high)), curves, (), _band(limits))


def _range(values: Sequence[float], band: monitors.Band | None) -> tuple[float, float, bool]:
    """All values and, where they lie outside the band, its nearer edge; whether the axis is logarithmic."""
    finite = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    if band:
        low, high = min(low, band.high), max(high, band.low)
    if low > 0 and high / low > LOG_FROM:
        return low, high, True
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return max(low - room, -LARGEST), min(high + room, LARGEST), False


def _band(band: monitors.Band | None) -> Band | None:
    if band is None:
        return None
    return Band(band.low, band.high, BAND.fill(low=number(band.low), high=number(band.high), origin=ORIGIN[band.origin]))


def _marks(noted: Iterable[Noted]) -> Iterable[Mark]:
    """Findings of the same step share a line: "1, 3"."""
    by_step: dict[int, list[Noted]] = {}
    for finding in noted:
        by_step.setdefault(finding.step, []).append(finding)
    for step, findings in sorted(by_step.items()):
        yield Mark("x", step, same(", ".join(str(finding.number) for finding in findings)), LEVEL_ROLES.get(findings[0].level, "muted"),
                   hint=", ".join(finding.rule for finding in findings))


def _readable(marks: Iterable[Mark], ends: tuple[int, int]) -> Iterable[Mark]:
    """Those within the picture; where lines stand so close that their names would overlap, the first one has all the names."""
    groups: list[list[Mark]] = []
    for mark in sorted((mark for mark in marks if ends[0] <= mark.at <= ends[1]), key=lambda mark: mark.at):
        if groups and mark.at - groups[-1][0].at < CLOSE * (ends[1] - ends[0]):
            groups[-1].append(mark)
        else:
            groups.append([mark])
    for first, *others in groups:
        names = dict.fromkeys(mark.label for mark in (first, *others))
        hints = dict.fromkeys(mark.hint for mark in (first, *others) if mark.hint)
        yield replace(first, label=reduce(lambda a, b: a + same(" · ") + b, names), hint=", ".join(hints))
        yield from (replace(mark, label=EMPTY) for mark in others if mark.at != first.at)
