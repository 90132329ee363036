"""The sweep against a net trained one rate at a time with torch.nn and torch.optim, and against theory."""
import math

import pytest
import torch

from traindx.labs.lr_sweep import BATCH, FALLS, FLAT, JUMPS, LAB, RATES, RUNS, SAMPLES, STEPS, WIDTHS, interval, shape_of, steepest, sweep
from traindx.labs.nets import dice, mlp, normal


def twin(seed, rate):
    """The same training, plainly."""
    chance = dice(seed)
    inputs = normal(chance, SAMPLES, WIDTHS[0])
    targets = torch.sin(inputs @ normal(chance, WIDTHS[0], 1))
    net = torch.nn.Sequential(torch.nn.Linear(4, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).double()
    weights = mlp(WIDTHS, [chance])
    with torch.no_grad():
        for parameter, start in zip(net.parameters(), weights):
            parameter.copy_(start[0].T.reshape(parameter.shape))
    optimizer = torch.optim.SGD(net.parameters(), lr=rate)
    losses = []
    for step in range(STEPS + 1):
        losses.append(torch.nn.functional.mse_loss(net(inputs), targets).item())
        rows = torch.arange(BATCH * step, BATCH * (step + 1)) % SAMPLES
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(net(inputs[rows]), targets[rows]).backward()
        optimizer.step()
    return losses


@pytest.mark.parametrize("place", [0, 12, 19])
def test_each_copy_is_trained_as_it_would_be_alone(place):
    assert sweep(1)[place] == pytest.approx(twin(1, RATES[place]), rel=1e-6)


def test_training_draws_nothing_from_the_global_generator():
    before = torch.random.get_rng_state()
    sweep.__wrapped__(4)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("seed", range(3))
def test_a_tiny_rate_lowers_the_loss_in_proportion(seed):
    """First-order: the fall is lr times the squared gradient, so four rates further on it is ten times as large."""
    fall = [losses[0] - losses[-1] for losses in sweep(seed)]
    assert fall[4] / fall[0] == pytest.approx(10, rel=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_all_four_shapes_are_there_in_their_order(seed):
    order = [FLAT, FALLS, JUMPS, RUNS]
    places = [order.index(shape_of(losses)) for losses in sweep(seed)]
    assert places == sorted(places) and set(places) == {0, 1, 2, 3}


@pytest.mark.parametrize("seed", range(3))
def test_the_advised_rates_fall_steadily(seed):
    last = [losses[-1] for losses in sweep(seed)]
    low, high = interval(last)
    assert high / low == pytest.approx(10 / 3) and low * 10 == pytest.approx(steepest(last))
    inside = [losses for rate, losses in zip(RATES, sweep(seed)) if low <= rate <= high]
    assert inside and all(shape_of(losses) is FALLS for losses in inside)


def test_a_rate_that_diverges_says_at_which_step():
    outcome = LAB.compute({"rate": RATES[-1], "seed": 0})
    losses = sweep(0)[-1]
    assert outcome.level == "error" and f"step {losses.index(math.inf)}" in outcome.verdict.en
