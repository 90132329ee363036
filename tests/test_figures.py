"""Figures of a run: thinned without losing spikes, drawn as SVG and by Plotly from the same chart, alarms where they belong."""
from __future__ import annotations

import json
import math
import random
import re
import xml.etree.ElementTree as ElementTree

import pytest

from traindx.core.recording import Recording, metrics_line
from traindx.core.text import Text, same
from traindx.figures import Axis, Band, Chart, Mark, Series, plotly
from traindx.figures.run import Noted, compared, readings
from traindx.figures.svg import frame_of, svg
from traindx.figures.thinning import Thinner, thinned
from traindx.runs.curves import Curves
from traindx.runs.kept import complete
from traindx.signals.alarms import alarms_of
from traindx.signals.monitors import SIX, Monitor


def chart(*curves, log=False, **more):
    series = tuple(Series(same(f"curve {at}"), [x for x, _ in points], [y for _, y in points]) for at, points in enumerate(curves))
    return Chart(Text("a chart", "一张图"), Axis(Text("step", "步")), Axis(Text("loss", "损失"), log=log), series, **more)


# -- thinning ---------------------------------------------------------------------------------------------------------

def test_a_spike_survives_thinning():
    points = [(step, 1.0) for step in range(10_000)]
    points[1234], points[5678] = (1234, 50.0), (5678, math.nan)
    thin = thinned(points, 300)
    assert (1234, 50.0) in thin and len(thin) <= 603 and [step for step, _ in thin] == sorted(step for step, _ in thin)
    assert [step for step, value in thin if value != value] == [5678]


@pytest.mark.parametrize("count", [0, 1, 7, 64, 1000, 54_321])
def test_a_stream_keeps_the_extremes_of_every_stretch(count):
    """Against the naive way: every bucket's lowest and highest value are among what was kept."""
    draw = random.Random(count)
    points = [(step, draw.gauss(0, 1)) for step in range(count)]
    thinner = Thinner(32)
    for start in range(0, count, 777):
        thinner.extend(*map(list, zip(*points[start:start + 777])))
    kept = thinner.points
    assert kept == sorted(kept) and set(kept) <= set(points) and len(kept) <= 2 * 64 + 3 and thinner.count == count
    for start in range(0, count - count % thinner._size, thinner._size):
        part = points[start:start + thinner._size]
        assert {min(part, key=lambda p: p[1]), max(part, key=lambda p: p[1])} <= set(kept)
    assert not points or (kept[0], kept[-1]) == (points[0], points[-1])


def test_a_long_file_is_read_as_a_stream(tmp_path):
    """300 000 steps with one spike, one NaN, one Inf, a broken line: the same extremes as reading all of it, in little memory."""
    with open(tmp_path / "metrics.jsonl", "w") as file:
        for step in range(1, 300_001):
            loss = {77_777: 1e6, 150_001: math.nan, 222_222: math.inf}.get(step, 1.0 + step % 7)
            file.write(metrics_line(step, {"loss": loss, "lr": 0.1}) if step != 1000 else "{broken\n")
    curves = Curves(tmp_path)
    assert curves.read(1 << 20) and curves.steps < 300_000 and 0 < curves.share < 1  # a part at a time, so that a page can be shown meanwhile
    assert curves.read() and not curves.read()
    loss = curves.series["loss"]
    assert {(77_777, 1e6), (222_222, math.inf)} <= set(loss) and curves.lost == 1 and curves.steps == 300_000
    assert [step for step, value in loss if value != value] == [150_001] and loss[0] == (1, 2.0) and len(loss) < 4000


def test_a_stream_of_a_short_file_is_the_recording(tmp_path):
    lines = [metrics_line(step, {"loss": 1 / step, "grad_norm": math.inf if step == 3 else step}) for step in range(1, 40)]
    broken = ["[]\n", "7\n", '{"loss": 1}\n', '{"step": "4"}\n', '{"step": 5, "loss": null}\n', '{"step": 6}, {"step": 7}\n']
    (tmp_path / "metrics.jsonl").write_text("".join([*lines[:20], *broken, *lines[20:]]))
    curves = Curves(tmp_path)
    curves.read()
    whole = Recording.read(tmp_path)
    assert repr(curves.series) == repr(whole.series) and curves.lost == whole.lost == 5


def test_a_running_file_is_followed(tmp_path):
    curves = Curves(tmp_path)
    assert not curves.read() and curves.series == {}
    line = metrics_line(1, {"loss": 3.0})
    for upto in (10, len(line)):
        (tmp_path / "metrics.jsonl").write_text(line[:upto])
        curves.read()
    assert curves.series == {"loss": [(1, 3.0)]} == complete(tmp_path).series
    (tmp_path / "metrics.jsonl").write_text("")  # begun anew
    curves.read()
    assert curves.series == {}


# -- drawing ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("points", [[(1, 1.0)], [(1, math.nan)], [(1, 0.0), (2, 0.0)], [(1, -1.0), (2, math.inf)], [(1, 1e-9), (5, 1e9)],
                                    [(3, 1.0), (3, 2.0)], [(1, 5e-324), (2, 1.7e308)]])
@pytest.mark.parametrize("log", [False, True])
def test_any_curve_can_be_drawn(points, log):
    drawn = chart(points, points[:1], log=log, band=Band(1e-2, 10.0, Text("usual", "正常")), marks=(Mark("x", 1, same("<rule>")), Mark("y", 1, same("y"))))
    picture = svg(drawn)
    ElementTree.fromstring(picture)
    assert "nan" not in picture and "inf" not in picture and "<rule>" not in picture
    assert all(-1 <= float(number) <= 361 for number in re.findall(r'(?:x|x1|x2|y|y1|y2|cx|cy)="(-?[\d.]+)"', picture))
    for language in ("en", "zh"):
        json.dumps(plotly(drawn, language), allow_nan=False)
    assert svg(chart()) == svg(chart([])) == ""


def test_an_axis_of_the_largest_numbers_has_a_width():
    for value in (1e308, 1.7e308):
        (one,) = readings({"loss": [(1, value), (2, -value), (3, 1.0)]})
        json.dumps(plotly(one.chart, "en"), allow_nan=False)
        assert "nan" not in svg(one.chart) and "inf" not in svg(one.chart)


def test_points_lie_where_their_values_are():
    frame = frame_of(chart([(0, 1.0), (10, 1000.0)], log=True))
    assert frame.y.at(1.0) - frame.y.at(10.0) == pytest.approx(frame.y.at(10.0) - frame.y.at(100.0)) and frame.y.at(1.0) > frame.y.at(10.0)
    assert frame.x.at(5) == pytest.approx((frame.x.at(0) + frame.x.at(10)) / 2)


def test_a_curve_breaks_where_it_is_no_number():
    picture = svg(chart([(1, 1.0), (2, 2.0), (3, math.nan), (4, 1.0), (5, 1.0), (6, math.inf), (7, 4.0)]))
    assert picture.count("<polyline") == 2 and picture.count('class="cross"') == 2 and picture.count("<circle") == 1
    assert svg(chart([(1, 1.0), (2, 0.0)], log=True)).count('class="cross"') == 1  # a logarithm has no zero


# -- the six ----------------------------------------------------------------------------------------------------------

def said(name, values):
    quantity = next(quantity for quantity in SIX if quantity.name == name)
    return [(alarm.step, alarm.what.en) for alarm in alarms_of(Monitor(quantity, list(enumerate(values, 1))))]


@pytest.mark.parametrize("name, values, alarms", [
    ("train_loss", [1 / step for step in range(1, 60)], []),
    ("train_loss", [1.0] * 59, [(59, "does not fall")]),
    ("train_loss", [1.0] * 5, []),
    ("train_loss", [1 / step for step in range(1, 40)] + [5.0] + [0.02] * 20, [(40, "jump")]),
    ("train_loss", [1.0, 0.5, math.nan], [(3, "NaN / Inf")]),
    ("val_loss", [1.0, 0.6, 0.5, 0.55, 0.6, 0.7, 0.8], [(3, "rising from here")]),
    ("val_loss", [1.0, 0.6, 0.5, 0.51, 0.5, 0.52], []),
    ("grad_norm", [1.0] * 30 + [5e3] + [1.0] * 10, [(31, "thousands")]),
    ("grad_norm", [1.0] * 10 + [0.0] * 5, [(11, "zero")]),
    ("grad_norm", [20.0] * 50, [(1, "above the band")]),
    ("activation_std", [1.0] * 30 + [1e-8] * 40, [(31, "below the band")]),
    ("activation_std", [1.0] * 60 + [1e-8] * 3, []),
    ("update_ratio", [5e-3] * 40, []),
    ("weight_norm", [1.0 + step for step in range(20)], [(11, "ten times the start")]),
])
def test_alarms(name, values, alarms):
    assert said(name, values) == alarms


def test_the_six_come_first_with_band_findings_and_alarms():
    series = {"zeta": [(1, 2.0)], "loss": [(1, 3.0), (2, math.nan)], "grad_norm": [(1, 0.5), (2, 0.6)], "empty": []}
    made = readings(series, [Noted(1, 2, "a/b"), Noted(2, 2, "c/d", "warning"), Noted(3, 9, "e/f")])
    assert [reading.name for reading in made] == ["loss", "grad_norm", "zeta"]
    loss, gradient, _ = made
    assert [(mark.at, mark.label.en, mark.role) for mark in loss.chart.marks] == [(2, "1, 2 · NaN / Inf", "bad")]
    assert loss.chart.series[0].diverged_at() == 2 and gradient.chart.band.low == 0.01 and "经验值" in gradient.chart.band.label.zh
    for reading in made:
        assert svg(reading.chart) and json.dumps(plotly(reading.chart, "zh"), allow_nan=False)


def test_runs_lie_over_each_other():
    runs = {f"run {at}": {"loss": [(1, 1.0 + at), (2, 0.5)], "own" if at else "other": [(1, 1.0)]} for at in range(8)}
    charts = compared(runs)
    assert [made.title.en for made in charts] == ["train loss", "own"]
    assert len({(series.role, series.dashed) for series in charts[0].series}) == 8
    assert svg(charts[0]).count("<polyline") == 8


def test_names_of_lines_that_stand_close_share_one_place():
    points = [(step, 1.0) for step in range(1, 1001)]
    [made] = readings({"loss": points}, [Noted(1, 500, "a/b"), Noted(2, 505, "c/d", "warning"), Noted(3, 900, "e/f")])
    assert [(mark.at, mark.label.en, mark.role) for mark in made.chart.marks] == [
        (500, "1 · 2", "bad"), (505, "", "other"), (900, "3", "bad"), (1000, "does not fall", "bad")]
    assert "<title>a/b, c/d</title>" in svg(made.chart)
    assert plotly(made.chart, "en")["layout"]["annotations"][0]["hovertext"] == "a/b, c/d"
