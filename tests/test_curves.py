"""Curve rules on made-up series: what must speak and what must stay quiet."""
from __future__ import annotations

import math
import random

import pytest

from traindx.core.observed.program import LossCall, OptimizerMade
from traindx.core.recording import Recording
from traindx.rules.curve.diverging import rule as diverging
from traindx.rules.curve.oscillating import rule as oscillating
from traindx.rules.curve.overfitting import rule as overfitting
from traindx.rules.curve.plateau import rule as plateau
from traindx.signals.loss_curve import LossCurve, ValidationCurve, blew_up_before

CLASSES = {0: 10, 1: 10, 2: 12}


def recording(losses, validation=(), counts=None, function="cross_entropy"):
    call = {"function": function, "site": None, "made_at": None, "model_training": None, "value": 1.0, "reduction": "mean",
            "input_shape": (32, 3), "target_shape": (32,), "input_dtype": "float32", "target_dtype": "int64", "weight_in_root": 1.0,
            "target_counts": counts or CLASSES}
    made = Recording([OptimizerMade(id=1, class_name="SGD", site=None, parameters=((1,),)),
                      LossCall(call=1, grad=True, requires_grad=True, **call), LossCall(call=2, grad=False, **call)])
    made.series["loss"] = list(enumerate(losses, 1))
    made.series["val_loss"] = list(validation)
    return made


def says(rule, losses, **options):
    return list(rule.check(LossCurve.of(recording(losses, **options))))


def noisy(curve, seed=0, share=0.4):
    draw = random.Random(seed)
    return [value * (1 + share * (draw.random() - 0.5)) for value in curve]


def test_chance_is_the_entropy_of_the_classes_seen():
    curve = LossCurve.of(recording([1.0] * 10))
    assert curve.chance == pytest.approx(-sum(n / 32 * math.log(n / 32) for n in CLASSES.values()))


def test_rows_as_classes_are_contrastive_not_supervised():
    assert not LossCurve.of(_contrastive()).supervised


def _contrastive():
    made = recording([1.0] * 10, counts=dict.fromkeys(range(3), 1))
    calls = [call for call in made.of(LossCall) if call.grad]
    made.add(LossCall(**{**vars(calls[0]), "input_shape": (3, 3)}))
    return made


@pytest.mark.parametrize("losses", [
    [1.1 * 0.98 ** i for i in range(300)],
    noisy([1.1 * 0.99 ** i + 0.05 for i in range(400)], share=1.5),
    [1.1 - 0.3 * (i % 50) / 50 for i in range(400)],
    [3.0] * 3 + [0.2] * 300,
], ids=["falls", "falls with noise", "restarts", "learns at once"])
def test_sound_curves_are_left_alone(losses):
    assert not any(says(rule, losses) for rule in (diverging, oscillating, plateau))


def test_a_curve_at_chance_is_a_plateau_only_when_long_enough():
    chance = LossCurve.of(recording([1.0] * 10)).chance
    assert says(plateau, noisy([chance * 1.002] * 400, share=0.1))
    assert not says(plateau, [chance] * 60)
    assert not says(plateau, noisy([chance * 0.9] * 400, share=0.1))


def test_growth_and_creep_diverge():
    assert says(diverging, [2.0 * 3 ** i for i in range(30)])
    assert says(diverging, noisy([1 + i / 100 for i in range(400)]))
    assert not says(diverging, noisy([4e10 * 0.99 ** i for i in range(200)]))


def test_swings_beyond_the_start_oscillate():
    assert says(oscillating, [1.0] * 10 + [0.2 if i // 20 % 2 else 1.6 for i in range(400)])
    assert not says(oscillating, noisy([0.6] * 400, share=1.9))


def overfit(validation, training):
    points = [(10 * i, value) for i, value in enumerate(validation, 1)]
    losses = [training[i // 10] for i in range(10 * len(validation))]
    return list(overfitting.check(ValidationCurve.of(recording(losses, points))))


def test_overfitting_is_loud_only_where_the_harm_is_large():
    fall = [1.0 * 0.7 ** i for i in range(12)]
    turn = [1.0, 0.7, 0.6, 0.55, 0.6, 0.7, 0.8, 0.9, 1.0, 1.05, 1.1, 1.2]
    slight = [1.0, 0.5, 0.2, 0.1, 0.1, 0.11, 0.12, 0.125, 0.13, 0.13, 0.13, 0.135]
    assert [finding.level for finding in overfit(turn, fall)] == ["warning"]
    assert [finding.level for finding in overfit(slight, fall)] == ["note"]
    assert not overfit([1.0 * 0.9 ** i for i in range(12)], fall)


def test_a_divergence_before_nan_is_told_from_a_sudden_one():
    assert blew_up_before(recording([1.0, 1.0, 1.0, 1e5, 1e9, math.nan]), 6) == pytest.approx(1e9)
    assert blew_up_before(recording([1.0, 0.9, 0.8, 0.7, math.nan]), 5) is None
