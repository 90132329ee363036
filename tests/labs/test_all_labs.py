"""What holds for every lab: real rules, both languages, pure, bounded, drawable."""
import json
import math

import pytest

from traindx.core.rules import all_rules
from traindx.core.text import Text
from traindx.figures import Chart, Grid, plotly
from traindx.labs import Slider, all_labs

LABS = list(all_labs().values())
MOST_STATES = 1500  # what an exported page can hold of one lab


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_lab_says_what_it_is(lab):
    assert all(isinstance(text, Text) and text.en and text.zh and text.en != text.zh
               for text in (lab.title, lab.about, lab.see, lab.break_it, lab.then))
    assert lab.rules and set(lab.rules) <= set(all_rules())
    assert len({knob.name for knob in lab.knobs}) == len(lab.knobs)
    assert math.prod(len(knob.values) for knob in lab.knobs) <= MOST_STATES


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_lab_is_a_pure_function_that_can_be_drawn(lab):
    outcome, again = lab.compute(lab.defaults()), lab.compute(lab.defaults())
    assert [drawn(figure) for figure in outcome.figures] == [drawn(figure) for figure in again.figures]
    assert outcome.verdict == again.verdict and outcome.figures and outcome.verdict.en != outcome.verdict.zh
    assert outcome.level in ("fine", "warning", "error")


def drawn(figure):
    if isinstance(figure, Grid):
        assert not figure.shades or [len(row) for row in figure.shades] == [len(row) for row in figure.cells]
        return figure
    assert isinstance(figure, Chart) and all(len(series.x) == len(series.y) for series in figure.series)
    return json.dumps([plotly(figure, language) for language in ("en", "zh")], allow_nan=False)


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_every_knob_matters(lab):
    """Moving a knob alone changes something, in at least one of its positions."""
    base = lab.compute(lab.defaults())
    for knob in lab.knobs:
        ends = (knob.values[0], knob.values[-1]) if isinstance(knob, Slider) else knob.values
        assert any(lab.compute({**lab.defaults(), knob.name: value}) != base for value in ends), knob.name


@pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)
def test_a_state_from_outside_becomes_a_position_of_the_knobs(lab):
    hostile = {knob.name: bad for knob, bad in zip(lab.knobs, ["<script>", float("nan"), None, "1e999", [1]] * 3)}
    assert lab.state_of({**hostile, "unknown": 1}).keys() == lab.defaults().keys()
    assert all(value in knob.values for knob, value in zip(lab.knobs, lab.state_of(hostile).values()))
    assert lab.state_of(lab.defaults()) == lab.defaults()
