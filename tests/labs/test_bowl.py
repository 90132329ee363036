"""The bowl against theory: |1 - lr h| per step."""
import math

import pytest

from traindx.labs.bowl import LAB, STEPS, compute, descend


@pytest.mark.parametrize("rate, curvature", [(0.1, 1.0), (1.5, 1.0), (0.7, 4.0), (2.0, 1.0), (0.01, 0.25)])
def test_each_step_multiplies_the_distance_by_one_minus_lr_h(rate, curvature):
    positions = descend(rate, curvature)
    for step, x in enumerate(positions):
        assert math.isclose(x, (1 - rate * curvature) ** step, rel_tol=1e-9, abs_tol=1e-300)
    assert len(positions) == STEPS + 1


@pytest.mark.parametrize("rate, level", [(0.01, "warning"), (0.5, "fine"), (1.5, "warning"), (2.5, "error")])
def test_the_verdict_follows_the_multiplier(rate, level):
    assert compute({"rate": rate, "curvature": 1.0}).level == level


def test_two_over_h_is_the_limit_for_every_curvature():
    for knobs in LAB.states():
        product = knobs["rate"] * knobs["curvature"]
        assert (compute(knobs).level == "error") == (product > 2 + 1e-9)
