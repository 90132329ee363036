"""Double softmax against theory: the floor ln(1 + (C-1)/e), the ceiling e/(e+C-1), p-1; and torch's own loss."""
import math

import pytest
import torch

from traindx.labs.double_softmax import CLASSES, EVERY, FINE, LAB, RATE, STEPS, blobs, cross_entropy, floor, pressed, train
from traindx.labs.nets import dice, mlp, normal


@pytest.mark.parametrize("classes, wanted", [(2, 0.3133), (3, 0.5514), (10, 1.4612), (100, 3.6222)])
def test_the_floor_is_what_a_sure_and_right_answer_costs(classes, wanted):
    sure = torch.zeros(1, classes, dtype=torch.float64)
    sure[0, 0] = 1
    assert floor(classes) == pytest.approx(torch.nn.functional.cross_entropy(sure, torch.tensor([0])).item())
    assert floor(classes) == pytest.approx(wanted, abs=5e-5)


@pytest.mark.parametrize("classes", CLASSES)
def test_one_logit_against_the_formulas(classes):
    rest = classes - 1
    for logit in FINE:
        once, twice, slope_once, slope_twice = pressed(int(classes), logit)
        p = math.exp(logit) / (math.exp(logit) + rest)
        q = math.exp(p) / (math.exp(p) + rest * math.exp((1 - p) / rest))
        assert once == pytest.approx(p) and twice == pytest.approx(q) and slope_once == pytest.approx(1 - p)
        chain = (1 - q) * p * (1 - p) * (1 + 1 / rest)  # d ln q / dp is (1 - q)(1 + 1/(C-1)), dp/dlogit is p(1-p)
        assert slope_twice == pytest.approx(chain, rel=1e-6) and slope_twice < slope_once
        assert twice < math.e / (math.e + rest)


def test_the_loss_is_that_of_torch():
    logits, labels = normal(dice(0), 2, 20, 5), torch.arange(20) % 5
    for mine, copy in zip(cross_entropy(logits, labels), logits):
        assert mine.item() == pytest.approx(torch.nn.functional.cross_entropy(copy, labels).item())


def twin(classes, seed, twice):
    chance = dice(seed)
    inputs, labels = blobs(classes, chance)
    net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, classes)).double()
    with torch.no_grad():
        for parameter, start in zip(net.parameters(), mlp((2, 16, classes), [chance])):
            parameter.copy_(start[0].T.reshape(parameter.shape))
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    losses = []
    for _ in range(STEPS + 1):
        outputs = net(inputs)
        loss = torch.nn.functional.cross_entropy(outputs.softmax(-1) if twice else outputs, labels)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses[::EVERY]


def test_both_trainings_are_what_a_plain_loop_gives():
    runs = train(3, 1)
    assert runs.once == pytest.approx(twin(3, 1, False), rel=1e-6) and runs.twice == pytest.approx(twin(3, 1, True), rel=1e-6)


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("seed", range(2))
def test_the_two_curves_part_and_the_second_stays_above_its_floor(classes, seed):
    runs = train(int(classes), seed)
    assert min(runs.twice) > floor(int(classes)) and runs.once[-1] < runs.twice[-1] and runs.once[-1] < floor(int(classes))
    assert runs.once[0] == pytest.approx(math.log(classes), abs=1.5) and LAB.compute({**LAB.defaults(), "classes": classes}).level == "error"
