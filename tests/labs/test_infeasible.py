"""Infeasible rates against theory: a rate flies off if and only if lr times the largest curvature is above 2."""
import math

import pytest

from traindx.labs.infeasible import CONDITIONS, COUNT, DIRECTIONS, LAB, LINE, STEPS, curvatures, final_losses, rates, share_lost


@pytest.mark.parametrize("state", LAB.states(), ids=str)
def test_a_rate_flies_off_when_it_is_above_two_over_the_curvature(state):
    losses = final_losses(state["highest"], state["condition"], state["normalised"])
    steepest = 1.0 if state["normalised"] else state["condition"]
    assert [not loss <= 1 for loss in losses] == [rate * steepest > 2 for rate in rates(state["highest"])]
    assert LAB.compute(state).level == ("error" if share_lost(losses) > LINE else "fine")


def test_the_loss_is_that_of_the_closed_form():
    bends = curvatures(100.0, False)
    assert len(bends) == DIRECTIONS and bends[0] == 1 and bends[-1] == 100
    for rate, loss in zip(rates(1.0), final_losses(1.0, 100.0, False)):
        wanted = sum(h * (1 - rate * h) ** (2 * STEPS) for h in bends) / sum(bends)
        assert math.isclose(loss, wanted, rel_tol=1e-9)


def test_more_ill_conditioned_never_means_fewer():
    shares = [share_lost(final_losses(1.0, condition, False)) for condition in CONDITIONS]
    assert shares == sorted(shares) and shares[0] == 0 and shares[-1] > 0.8 and len(rates(1.0)) == COUNT
