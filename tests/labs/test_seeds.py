"""The spread over seeds: against a plain loop, NumPy's standard deviation and SciPy's Student t."""
import math

import numpy as np
import pytest
import torch
from scipy import stats

from traindx.labs.nets import dice, mlp
from traindx.labs.seeds import BATCH, EPOCHS, GAINS, LAB, RATE, SAMPLES, STUDENT, WIDTHS, by_luck, half_width, needed, samples, train


def twin(seed):
    """One net trained plainly: losses at each epoch, accuracy in per cent."""
    points, labels = samples()
    net = torch.nn.Sequential(torch.nn.Linear(2, WIDTHS[1]), torch.nn.Tanh(), torch.nn.Linear(WIDTHS[1], 1)).double()
    with torch.no_grad():
        for parameter, start in zip(net.parameters(), mlp(WIDTHS, [dice(seed)])):
            parameter.copy_(start[0].T.reshape(parameter.shape))
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)

    def loss_of(rows):
        return torch.nn.functional.binary_cross_entropy_with_logits(net(points[rows]), (labels[rows] + 1) / 2)
    losses = [loss_of(slice(0, SAMPLES)).item()]
    for _ in range(EPOCHS):
        for start in range(0, SAMPLES, BATCH):
            optimizer.zero_grad()
            loss_of(slice(start, start + BATCH)).backward()
            optimizer.step()
        losses.append(loss_of(slice(0, SAMPLES)).item())
    with torch.no_grad():
        right = (net(points[SAMPLES:]) > 0) == (labels[SAMPLES:] > 0)
    return losses, 100 * right.double().mean().item()


@pytest.mark.parametrize("seed, place", [(0, 0), (0, 4), (2, 7)])
def test_net_k_is_the_one_of_its_seed_trained_alone(seed, place):
    losses, accuracy = twin(10 * seed + place)
    assert train(seed).losses[place] == pytest.approx(losses, rel=1e-6)
    assert train(seed).accuracies[place] == pytest.approx(accuracy, abs=1e-9)


def test_the_quantiles_are_those_of_student():
    for count, quantile in STUDENT.items():
        assert quantile == pytest.approx(stats.t.ppf(0.975, 2 * count - 2), abs=1e-3)


@pytest.mark.parametrize("count", [2, 5, 10])
def test_the_interval_is_that_of_a_t_test(count):
    """A gain of exactly the half width has p = 0.05 in a two-sample t test."""
    first = np.array(train(1).accuracies[:count])
    second = first + half_width(first.std(ddof=1), count)
    assert stats.ttest_ind(first, second).pvalue == pytest.approx(0.05, abs=1e-3)


def test_pairs_by_luck_are_counted():
    assert by_luck((1.0, 2.0, 4.0), 2.0) == pytest.approx(2 / 6)  # 1 to 4 and 2 to 4 of six ordered pairs
    assert by_luck((1.0, 1.0), 0.1) == 0


@pytest.mark.parametrize("seed", range(3))
def test_the_spread_is_large_and_small_gains_are_inside(seed):
    runs = train(seed)
    last = [losses[-1] for losses in runs.losses]
    assert max(last) / min(last) > 2 and np.std(runs.accuracies, ddof=1) > 0.5
    for gain in GAINS:
        level = LAB.compute({"count": 5, "gain": gain, "seed": seed}).level
        assert level == ("warning" if gain < half_width(np.std(runs.accuracies[:5], ddof=1), 5) else "fine")
    assert needed(1.0, 0.5) == math.ceil(2 * (1.96 / 0.5) ** 2)
