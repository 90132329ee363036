"""One batch: against plain torch.nn training, and each shape with the knob that makes it."""
import pytest
import torch

from traindx.labs.nets import dice, mlp
from traindx.labs.one_batch import (
    EXPLODES,
    FLAT,
    JUMPS,
    LAB,
    LABELS,
    LEARNS,
    POINTS,
    STEPS,
    STUCK,
    UP,
    runs,
    shape_of,
)


def twin(seed, rate, wrong, decay):
    net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
    with torch.no_grad():
        for parameter, start in zip(net.parameters(), mlp((2, 16, 1), [dice(seed)])):
            parameter.copy_(start[0].T.reshape(parameter.shape))
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, weight_decay=decay)
    losses = []
    for _ in range(STEPS + 1):
        loss = torch.nn.functional.mse_loss(net(POINTS), LABELS)
        losses.append(loss.item())
        optimizer.zero_grad()
        (-loss if wrong else loss).backward()
        optimizer.step()
    return losses


@pytest.mark.parametrize("setting", [(0.1, False, 0.0), (1e-3, True, 0.1), (0.03, False, 1.0)])
def test_a_run_is_what_a_plain_loop_gives(setting):
    assert runs(0)[setting].losses == pytest.approx(twin(0, *setting), rel=1e-6)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("setting, shape", [((0.1, False, 0.0), LEARNS), ((1e-4, True, 0.0), UP), ((1e-5, True, 0.0), UP),
                                            ((0.2, False, 0.0), JUMPS), ((1.0, False, 0.0), EXPLODES), ((10.0, True, 1.0), EXPLODES),
                                            ((1e-5, False, 0.0), FLAT), ((0.1, False, 1.0), STUCK)])
def test_each_knob_makes_its_shape(seed, setting, shape):
    assert shape_of(runs(seed)[setting]) is shape


def test_with_the_sign_reversed_no_rate_falls():
    for (_, wrong, _), run in runs(1).items():
        if wrong:
            assert run.losses[-1] > run.losses[0]


def test_the_verdict_counts_the_points_that_are_right():
    assert "8 of 8 points" in LAB.compute(LAB.defaults()).verdict.en
