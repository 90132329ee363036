"""Broadcasting as NumPy does it; the wrong loss stops at the variance of the targets."""
import numpy
import pytest
import torch

from traindx.labs.broadcasting import LAB, SHAPES, added, compute, losses, meant, values


@pytest.mark.parametrize("a", SHAPES)
@pytest.mark.parametrize("b", SHAPES)
def test_the_sum_is_numpys(a, b):
    try:
        expected = values(SHAPES[a], 10).numpy() + values(SHAPES[b], 1).numpy()
    except ValueError:
        expected = None
    found = added(a, b)
    assert isinstance(found, str) if expected is None else numpy.array_equal(found.numpy(), expected)
    outcome = compute({"a": a, "b": b})
    assert len(outcome.figures) == (3 if expected is None else 4) and (outcome.level == "error") == (
        expected is not None and meant(a, b) is not None and expected.size > numpy.prod(meant(a, b)))


def test_a_column_and_a_row_make_a_table():
    assert added("4,1", "1,4").tolist() == [[10 * i + j for j in range(1, 5)] for i in range(1, 5)]
    assert "16 numbers where you meant 4" in compute(LAB.defaults()).verdict.en
    assert compute({"a": "3", "b": "4"}).level == "fine"  # it says something
    assert compute({"a": "4,1", "b": "4,1"}).level == "fine" and compute({"a": "4,1", "b": "4"}).level == "error"


def test_the_wrong_loss_learns_the_mean_and_the_right_one_the_line():
    """mean_ij (p_i - y_j)² = mean_i (p_i - mean y)² + Var y: least at p = mean y, where it is Var y."""
    wrong, variance, flat = losses(False)
    right, _, slope = losses(True)
    assert wrong[-1] == pytest.approx(variance, rel=1e-3) and abs(flat) < 0.02
    x = torch.linspace(-1, 1, 32, dtype=torch.float64)
    best = torch.linalg.lstsq(torch.stack([x, torch.ones_like(x)], 1), (2 * x + 0.5 * torch.sin(9 * x))[:, None])
    assert slope == pytest.approx(best.solution[0, 0].item(), abs=0.02) and right[-1] < 0.2 * variance
    assert wrong[0] > 1.5 * wrong[-1]  # it falls like a loss that is right
