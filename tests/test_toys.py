"""The leaves' toys: the rules' own programs, trained, drawn and told."""
from __future__ import annotations

import json
import math
import os
import sys

import pytest

from traindx.core.rules import all_rules
from traindx.core.text import same
from traindx.figures import plotly
from traindx.toys import Toy, Toys, Trained, compact_all, draw, leaf_curve
from traindx.toys.drawing import alike, said_of
from traindx.toys.training import POINTS, Cancelled, key, trained
from traindx.tree import all_leaves

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="re-runs need fork")
LEAVES = [leaf.rule for leaf in all_leaves()]


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    with Toys(tmp_path_factory.mktemp("cache"), jobs=1) as made:
        yield made


def test_a_fault_that_the_loss_shows(toys):
    toy = toys.toy("optim/lr-too-high")
    drawing = draw(toy)
    good, bad = drawing.chart.series
    assert (good.role, bad.role) == ("good", "bad") and drawing.chart.y.log
    assert bad.y[-1] > 3 * good.y[-1] and bad.y[0] == good.y[0]
    assert "ends at" in drawing.said.en and "lr 3" in drawing.cause.en and "line 9" in drawing.place.en and "expect" not in drawing.place.en
    assert drawing.evidence.rows


def test_a_fault_that_the_loss_does_not_show_brings_its_evidence(toys):
    drawing = draw(toys.toy("mode/eval-missing"))
    assert "does not show this fault" in drawing.said.en and drawing.evidence is not None
    assert sum(series.dashed for series in drawing.chart.series) == 2  # validation of both


def test_a_program_that_never_steps_leaves_the_finite_numbers_at_once(toys):
    drawing = draw(toys.toy("numeric/fp16-overflow"))
    assert "Diverged at step 1" in drawing.said.en and "65504" in drawing.cause.en
    for language in ("en", "zh"):
        json.dumps(plotly(drawing.chart, language), allow_nan=False)


def test_a_program_that_breaks_off_is_told_with_its_error(toys):
    drawing = draw(toys.toy("memory/out-of-memory"))
    assert "RuntimeError" in drawing.said.en and drawing.evidence is not None


def test_the_loss_is_the_one_that_the_program_computes(toys, tmp_path):
    """Against the same program run by plain python, its loss printed."""
    source = all_rules()["optim/lr-too-high"].source_of("good").replace("loss.backward()", "loss.backward(); print(loss.item())")
    script = tmp_path / "plain.py"
    script.write_text(source)
    import subprocess
    said = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    losses = [float(line) for line in said.stdout.split()]
    curve = leaf_curve("optim/lr-too-high", 0, "good", toys)
    shown = dict(zip(curve.x, curve.y))
    assert len(shown) >= 40 and all(math.isclose(losses[int(step) - 1], loss, rel_tol=1e-4) for step, loss in shown.items())


def test_another_seed_is_another_curve_and_a_kept_one_is_not_trained_again(toys, monkeypatch):
    first, second = toys.toy("optim/lr-too-high", 0), toys.toy("optim/lr-too-high", 3)
    assert first.good.loss != second.good.loss
    monkeypatch.setattr(Toys, "_train", lambda *_: pytest.fail("trained again"))
    assert toys.toy("optim/lr-too-high", 3) == second == toys.known("optim/lr-too-high", 3)
    assert toys.known("optim/lr-too-high", 4) is None


def test_a_broken_file_in_the_cache_is_no_toy(tmp_path):
    with Toys(tmp_path) as toys:
        for text in ("", "{", "[]", '{"rule": 1}', '{"bad": 3}'):
            (tmp_path / f"{key('loss/constant', 0)}.json").write_text(text)
            assert toys.known("loss/constant") is None


def test_nobody_waits_any_more(tmp_path):
    with Toys(tmp_path, jobs=1) as toys, pytest.raises(Cancelled):
        toys.toy("loss/constant", 1, cancelled=lambda: True)
    assert not list(tmp_path.iterdir())


def test_what_is_said_follows_the_numbers():
    def said(bad, good, **more):
        curve = {name: tuple((float(at), value) for at, value in enumerate(values)) for name, values in (("bad", bad), ("good", good))}
        return said_of(Toy("loss/constant", 0, Trained(curve["bad"], steps=len(bad), **more), Trained(curve["good"], steps=len(good)))).en
    assert "ends at 2" in said([2.0] * 20, [1.0] * 20) and "lower" in said([1.0] * 20, [2.0] * 20)
    assert "does not show" in said([1.1] * 20, [1.0] * 20) and "step 2" in said([1.0, 2.0, math.inf], [1.0] * 3)
    assert "no training loss" in said([], [1.0]) and "KeyError" in said([], [], error=same("KeyError: 3"))
    assert "one loss" in said([3.0], [1.0, 0.5]) and "no loss that could be drawn" in said([3.0, 2.0], [])
    assert alike(0.0, 0.0) and alike(-1.0, -1.1) and not alike(0.0, 1.0)


def test_spikes_stay_in_few_points():
    from traindx.core.trials import Step, Trace
    steps = [Step(at, 1.0 if at != 777 else 99.0) for at in range(1, 2001)]
    loss = trained(Trace(steps=steps)).loss
    assert (777.0, 99.0) in loss and len(loss) <= POINTS


def test_the_export_holds_the_same_in_few_bytes(toys):
    rules = ["optim/lr-too-high", "numeric/fp16-overflow"]
    found = compact_all(toys, rules)
    assert list(found) == rules and len(json.dumps(found, allow_nan=False, ensure_ascii=False)) < 6000
    good, bad = found[rules[0]]["curves"]
    assert bad["role"] == "bad" and bad["y"] == list(draw(toys.toy(rules[0])).chart.series[1].y) and bad["name"][1] == "带病的程序"
    assert found[rules[1]]["curves"][1]["y"] == [None] and good["x"][0] == 1


@pytest.mark.parametrize("rule", LEAVES)
def test_every_leaf_has_programs_that_train(rule):
    """Each computes a loss and goes backward, so that it has a curve; what it shows instead, where it has none, is tested above."""
    for which in ("bad", "good"):
        source = all_rules()[rule].source_of(which)
        compile(source, which, "exec")
        assert ".backward(" in source, f"{rule}: {which}.py trains nothing"
    assert draw(Toy(rule, 0, Trained(), Trained())).see.zh  # the page's own words, whatever became of the programs
