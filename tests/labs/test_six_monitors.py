"""The six monitors: against torch.nn and torch.optim, and each fault by the monitors that it should set off."""
import math
from itertools import pairwise

import pytest
import torch

from traindx.labs.nets import dice, mlp
from traindx.labs.six_monitors import LAB
from traindx.labs.six_monitors.alarms import alarms
from traindx.labs.six_monitors.runs import BAD, BATCH, FAULTS, HE, LAYERS, STEPS, WIDTHS, _data, watch
from traindx.signals.monitors import SIX

# who must speak, and who must not
SPEAK = {"none": (set(), {quantity.name for quantity in SIX}),
         "rate_high": ({"update_ratio", "grad_norm", "weight_norm"}, set()),
         "rate_low": ({"update_ratio", "train_loss"}, {"grad_norm", "activation_std", "weight_norm"}),
         "dead": ({"activation_std", "train_loss"}, {"weight_norm"}),
         "vanishing": ({"activation_std", "train_loss"}, {"weight_norm"}),
         "exploding": ({"activation_std", "update_ratio"}, set()),
         "zero_grad": ({"update_ratio", "weight_norm", "activation_std"}, set()),
         "bad_batch": ({"grad_norm", "update_ratio", "activation_std"}, set()),
         "overfit": ({"val_loss"}, {"train_loss", "grad_norm", "activation_std", "update_ratio"})}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_sets_off_its_monitors(name, seed):
    found = {alarm.quantity.name for alarm in alarms(watch(name, seed))}
    must, must_not = SPEAK[name]
    assert must <= found and not found & must_not


@pytest.mark.parametrize("forgets", [False, True])
def test_the_monitors_are_those_of_a_plain_loop(forgets):
    fault, chance = FAULTS["zero_grad" if forgets else "none"], dice(1)
    inputs, labels = _data(fault, chance)
    layers = [torch.nn.Linear(a, b) for a, b in pairwise(WIDTHS)]
    net = torch.nn.Sequential(*[each for layer in layers for each in (layer, torch.nn.ReLU())][:-1]).double()
    with torch.no_grad():
        for parameter, start in zip(net.parameters(), mlp(WIDTHS, [chance], HE)):
            parameter.copy_(start[0].T.reshape(parameter.shape))
    optimizer, curves = torch.optim.SGD(net.parameters(), lr=fault.rate), watch("zero_grad" if forgets else "none", 1)
    for step in range(12):
        rows = slice(step * BATCH % fault.samples, step * BATCH % fault.samples + BATCH)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(net(inputs[rows]), (labels[rows] + 1) / 2)
        if not forgets:
            optimizer.zero_grad()
        loss.backward()
        assert curves["train_loss"][0][step] == pytest.approx(loss.item())
        assert curves["grad_norm"][0][step] == pytest.approx(
            torch.nn.utils.get_total_norm([parameter.grad for parameter in net.parameters()]).item())
        first = torch.relu(layers[0](inputs[rows])).std(0).mean().item()
        assert curves["activation_std"][0][step] == pytest.approx(first)
        before = torch.nn.utils.parameters_to_vector(net.parameters()).detach().clone()
        optimizer.step()
        after = torch.nn.utils.parameters_to_vector(net.parameters()).detach()
        assert curves["update_ratio"][0][step] == pytest.approx(((after - before).norm() / before.norm()).item())
        assert curves["weight_norm"][LAYERS - 1][step] == pytest.approx(layers[-1].weight.norm().item())


def test_the_bad_batch_is_seen_at_its_step_and_not_before():
    norms = watch("bad_batch", 0)["grad_norm"][0]
    assert norms[:BAD] == watch("none", 0)["grad_norm"][0][:BAD] and norms[BAD] > 20 * max(norms[:BAD])


@pytest.mark.parametrize("seed", range(3))
def test_vanishing_shrinks_each_layer_by_the_gain(seed):
    """A tanh near 0 is linear: a layer whose weights have std gain / sqrt(fan_in) multiplies the signal by the gain."""
    lines = watch("vanishing", seed)["activation_std"]
    for before, after in pairwise(lines[:-1]):
        assert after[0] / before[0] == pytest.approx(0.1, rel=0.4)


def test_the_verdict_counts_who_speaks():
    assert LAB.compute(LAB.defaults()).level == "fine" and str(STEPS) in LAB.compute(LAB.defaults()).verdict.en
    broken = LAB.compute({"fault": "overfit", "seed": 1})
    assert broken.level == "error" and "validation loss" in broken.verdict.en and len(broken.figures) == 6
    assert math.isclose(SIX[2].band.low, 1e-2)
