"""What is read off graphs and values, against naive twins: the weight of a batch mean, a scaler's mark, cleared gradients, courses."""
from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from traindx.probes.gradient_lives import fingerprint, is_zero
from traindx.probes.roots import batch_mean_weight, carries
from traindx.rules.optim.accumulation_not_averaged.rule import falls_well
from traindx.rules.optim.plateau_mode_wrong.rule import agreement, counted, is_score, rises_at_once

X, Y = torch.randn(12, 5), torch.randint(0, 3, (12,))
W = torch.randn(5, 3, requires_grad=True)


def cross_entropy(**options):
    return F.cross_entropy(X @ W, Y, **options)


def squares():
    return (X @ W) ** 2


@pytest.mark.parametrize(("loss", "weight"), [
    (cross_entropy, 1.0),
    (lambda: cross_entropy() / 4, 0.25),
    (lambda: 0.5 * cross_entropy() / 4, 0.125),
    (lambda: cross_entropy() + 0.1 * W.pow(2).mean(), 1.0),
    (lambda: -squares().mean(), 1.0),
    (lambda: squares().mean().sqrt(), 1.0),
    (lambda: squares().mean(1).mean() / 8, 0.125),
    (lambda: squares().sum() / len(X), 1.0),
    (lambda: squares().sum() / squares().numel(), 1.0),
    (lambda: cross_entropy(reduction="sum") / len(X), 1.0),
    (lambda: cross_entropy(reduction="sum"), None),
    (lambda: squares().sum(), None),
    (lambda: cross_entropy() * W.abs().mean(), None),
    (lambda: (cross_entropy() / 4) * torch.tensor(1024.0), 256.0),
])
def test_the_weight_of_a_batch_mean_is_read_off_the_graph(loss, weight):
    found = batch_mean_weight(loss())
    assert found == weight if weight is None else math.isclose(found, weight, rel_tol=1e-6)


def test_the_weight_is_the_gradient_of_the_root_by_the_loss():
    loss = cross_entropy()
    loss.retain_grad()
    root = -3 * loss / 7 + 2
    weight = batch_mean_weight(root)
    root.backward()
    assert math.isclose(weight, abs(loss.grad.item()), rel_tol=1e-6)
    assert batch_mean_weight(root) is None  # the graph is spent, and says so without an error


def test_a_scaled_root_carries_the_scale():
    scale = torch.tensor(65536.0)
    assert carries(cross_entropy() * scale, 65536.0)
    assert carries(cross_entropy() * scale + squares().mean() * scale, 65536.0)
    assert not carries(cross_entropy(), 65536.0)
    assert not carries(cross_entropy() * 2, 65536.0)


def test_only_gradients_of_zeros_are_zero():
    sparse = torch.zeros(300_000)
    assert is_zero(sparse) is True
    sparse[1] = 1e-30
    assert is_zero(sparse) is False
    assert is_zero(torch.zeros(2_000_000)) is None and is_zero(torch.zeros(2_000_000), trusted=True) is True
    assert is_zero(torch.tensor([float("nan")])) is False


def test_a_change_that_sums_to_zero_changes_the_fingerprint():
    bias = torch.zeros(8)
    before = fingerprint(bias)
    bias += torch.tensor([0.1, -0.1] * 4)
    assert fingerprint(bias) != before


def test_counts_are_told_from_other_numbers():
    generator = torch.Generator().manual_seed(0)
    for n in (20, 64, 160, 1000, 2560):
        assert counted([k / n for k in (n // 3, n // 2, n // 2 + 1, n - 3, n - 1)])
    drawn = [torch.rand(6, generator=generator).tolist() for _ in range(300)]
    assert sum(map(counted, drawn)) <= 1
    assert counted([50.0, 62.5, 75.0, 81.25, 87.5])


def test_agreement_is_the_rank_correlation():
    assert agreement([1, 2, 3, 4], [10, 20, 30, 400]) == 1
    assert agreement([1, 2, 3, 4], [4, 3, 2, 1]) == -1
    assert agreement([3, 2, 1], [9, 9.1, 5, 5.1, 1, 1.1]) == 1


def test_an_accuracy_is_a_score_and_a_validation_loss_is_none():
    accuracy, loss = [0.5, 0.61, 0.7, 0.72, 0.75], [0.9, 0.7, 0.6, 0.55, 0.52]
    assert rises_at_once(accuracy) and is_score(accuracy, loss)
    overfitting = [0.41, 0.433, 0.4712, 0.5093, 0.5531]
    assert rises_at_once(overfitting) and not is_score(overfitting, [0.42, 0.44, 0.46, 0.5, 0.56])


def test_a_loss_that_falls_well():
    assert falls_well([math.exp(-i / 10) for i in range(40)])
    assert not falls_well([1.0] * 40) and not falls_well([1.0, math.nan] * 10)
    assert not falls_well([math.exp(-i / 10) for i in range(30)] + [5.0] + [0.01] * 9)
