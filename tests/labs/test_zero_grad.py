"""Forgotten zero_grad: what torch.optim does, the sum of the gradients, and momentum with factor 1."""
import pytest
import torch

from traindx.labs.nets import dice, mlp, normal
from traindx.labs.zero_grad import LAB, SAMPLES, STEPS, runs


def problem(seed):
    chance = dice(seed)
    inputs = normal(chance, SAMPLES, 4)
    targets = torch.sin(inputs @ normal(chance, 4, 1))
    net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).double()
    with torch.no_grad():
        for parameter, start in zip(net.parameters(), mlp((4, 16, 1), [chance])):
            parameter.copy_(start[0].T.reshape(parameter.shape))
    return net, lambda: torch.nn.functional.mse_loss(net(inputs), targets)


def twin(seed, make, forgets):
    """A plain loop with torch.optim: losses, norms of .grad, norms of the sum of all gradients of the loss so far."""
    net, loss_of = problem(seed)
    optimizer = make(net.parameters())
    losses, held, sums = [], [], []
    total = [torch.zeros_like(parameter) for parameter in net.parameters()]
    for _ in range(STEPS):
        if not forgets:
            optimizer.zero_grad()
        loss = loss_of()
        own = torch.autograd.grad(loss_of(), list(net.parameters()))
        total = [each + gradient for each, gradient in zip(total, own)]
        loss.backward()
        losses.append(loss.item())
        held.append(torch.nn.utils.get_total_norm([parameter.grad for parameter in net.parameters()]).item())
        sums.append(torch.nn.utils.get_total_norm(total).item())
        optimizer.step()
    return losses, held, sums


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("name, make", [("sgd", lambda p: torch.optim.SGD(p, lr=0.03)), ("adam", lambda p: torch.optim.Adam(p, lr=0.03))])
def test_a_run_is_what_torch_optim_gives(name, make, forgets):
    losses, held, sums = twin(1, make, forgets)
    run = runs(1)[0.03, name, forgets]
    assert run.losses == pytest.approx(losses, rel=1e-6) and run.held == pytest.approx(held, rel=1e-6)
    if forgets:
        assert run.held == pytest.approx(sums, rel=1e-6)
    else:
        assert run.held == pytest.approx(run.true, rel=1e-12)


def test_forgetting_is_momentum_with_factor_one():
    losses, _, _ = twin(0, lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=1.0), False)
    assert runs(0)[0.01, "sgd", True].losses == pytest.approx(losses, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_first_step_is_the_same_and_then_they_part(seed):
    found = runs(seed)
    kept, lost = found[0.01, "sgd", False], found[0.01, "sgd", True]
    assert kept.losses[:2] == lost.losses[:2] and kept.held[0] == lost.held[0]
    assert lost.held[1] > 1.5 * kept.held[1] and max(lost.held) > 3 * max(kept.held)


@pytest.mark.parametrize("seed", range(3))
def test_adam_climbs_above_its_start(seed):
    run = runs(seed)[0.1, "adam", True]
    assert run.losses[-1] > 10 * run.losses[0]
    assert LAB.compute({"rate": 0.1, "optimizer": "adam", "seed": seed}).level == "error"
