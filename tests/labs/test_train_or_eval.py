"""Inverted dropout keeps the expectation; BatchNorm's two behaviours, against the formulas and nn's own layers."""
import math

import pytest
import torch
from torch import nn

from traindx.labs.nets import dice
from traindx.labs.train_or_eval import ACTIVATIONS, DEVIATION, MEAN, SAMPLE, WEIGHTS, compute, dropped, many, normalised, six, trained_norm

STATE = {"mode": "train", "p": 0.5, "batch": 4.0, "seed": 0}


@pytest.mark.parametrize("p", [0.2, 0.5, 0.8])
def test_inverted_dropout_keeps_the_expectation(p):
    true = (ACTIVATIONS @ WEIGHTS).item()
    deviation = math.sqrt((p / (1 - p) * (ACTIVATIONS * WEIGHTS).square().sum()).item() / 4000)  # of the mean of 4000
    assert abs(many(p, 0) - true) < 4 * deviation


@pytest.mark.parametrize("p", [0.2, 0.5, 0.8])
def test_it_drops_and_scales_as_torch_does(p):
    """The values that occur and how often, against nn.Dropout."""
    ours = dropped(ACTIVATIONS, p, 4000, dice(3))
    with torch.random.fork_rng():
        torch.manual_seed(3)
        theirs = nn.Dropout(p)(ACTIVATIONS.repeat(4000, 1))
    assert torch.allclose(ours.abs().max(0).values, theirs.abs().max(0).values)
    share = math.sqrt(p * (1 - p) / 32000)
    assert abs((ours == 0).double().mean() - p) < 4 * share and abs((theirs == 0).double().mean() - p) < 4 * share


def test_six_forwards_differ_while_training_and_agree_while_evaluating():
    for seeded in range(3):
        assert six(0.5, seeded, True)[1].unique().numel() > 3 and six(0.5, seeded, False)[1].unique().numel() == 1
    assert compute(STATE).level == "warning" and compute({**STATE, "mode": "eval"}).level == "fine"
    assert torch.get_rng_state().equal(torch.get_rng_state())


def test_batchnorm_uses_the_batch_or_the_running_statistics():
    mean, variance = trained_norm(0)
    assert mean == pytest.approx(MEAN, abs=0.5) and variance == pytest.approx(DEVIATION**2, rel=0.3)
    expected = (SAMPLE - mean) / math.sqrt(variance + 1e-5)
    for batch in (1, 4, 32):
        assert normalised(0, batch, False).tolist() == pytest.approx([expected] * 6)
    assert normalised(0, 4, True).unique().numel() == 6
    assert normalised(0, 32, True).std() < normalised(0, 4, True).std()  # the more neighbours, the less they matter


def test_two_samples_can_only_be_plus_or_minus_one_and_one_is_refused():
    assert normalised(0, 2, True).abs().tolist() == pytest.approx([1.0] * 6, abs=0.02)  # eps
    assert isinstance(normalised(0, 1, True), str) and "more than 1 value" in compute({**STATE, "batch": 1.0}).verdict.en


def test_nothing_else_is_thrown_dice_for():
    before = torch.get_rng_state()
    compute(STATE)
    assert torch.equal(before, torch.get_rng_state())
