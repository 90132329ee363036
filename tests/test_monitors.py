"""The numbers of the monitors against naive twins, and their price."""
from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from torch import nn

from traindx.probes import monitors
from traindx.probes.attach import attach
from traindx.probes.session import Budget


@pytest.fixture
def session():
    session = attach(None)
    yield session
    session.close()


def series(session, name):
    return [value for _, value in session.recorder.memory.series.get(name, [])]


def net(*sizes):
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Linear(a, b) for a, b in pairwise(sizes)))


def flat(values):
    return torch.cat([value.detach().reshape(-1) for value in values])


def train(model, optimizer, steps, width, after=lambda before, gradients: None):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(16, width)).square().mean().backward()
        before, gradients = flat(model.parameters()).clone(), flat([p.grad for p in model.parameters()]).clone()
        optimizer.step()
        after(before, gradients)


def test_norms_and_the_update_ratio_of_a_small_net_are_exact(session):
    model = net(6, 12, 4)  # every parameter has at most 256 elements: all are looked at
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    expected = {"grad_norm": [], "weight_norm": [], "update_ratio": []}

    def note(before, gradients):
        after = flat(model.parameters())
        expected["grad_norm"].append(float(gradients.norm()))
        expected["weight_norm"].append(float(after.norm()))
        expected["update_ratio"].append(float((after - before).norm() / before.norm()))
    train(model, optimizer, 5, 6, note)
    for name, values in expected.items():
        assert series(session, name) == pytest.approx(values, rel=1e-5), name


def test_a_large_nets_update_ratio_is_estimated_from_samples(session):
    model = net(128, 300, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    expected = []
    train(model, optimizer, 4, 128, lambda before, _: expected.append(float((flat(model.parameters()) - before).norm() / before.norm())))
    assert series(session, "update_ratio") == pytest.approx(expected, rel=0.35)


@pytest.mark.parametrize("shape", [(1,), (256,), (257,), (7, 1000), (64, 64, 3, 3)])
@pytest.mark.parametrize("layout", [lambda t: t, lambda t: t.transpose(0, -1)])
def test_sampled_elements_are_the_same_ones_each_time(shape, layout):
    values = [layout(torch.randn(shape)), torch.randn(3)]
    taken = monitors.elements_of(values)
    assert len(taken) == sum(monitors.sampled(v.numel()) for v in values) <= 257 + 3
    assert torch.equal(taken, monitors.elements_of(values))
    assert torch.equal(taken[-3:], values[1])


def test_activation_std_is_the_layers_middle_value(session):
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, x):
            self.seen = [self.a(x), self.b(10 * x), self.c(0.01 * x)]
            return sum(y.mean() for y in self.seen)
    torch.manual_seed(0)
    model = Scaled()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    x = torch.randn(512, 64)
    model(x).backward()
    stds = sorted(float(y.std()) for y in model.seen)
    optimizer.step()
    names = ("activation_std_min", "activation_std", "activation_std_max")
    assert [series(session, name)[0] for name in names] == pytest.approx(stds, rel=0.1)


def test_a_scalers_factor_is_taken_out(session):
    model = net(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    loss = model(torch.randn(8, 4)).square().mean()
    scaler.scale(loss).backward()
    true = float(flat([p.grad for p in model.parameters()]).norm()) / 1024
    scaler.step(optimizer)
    scaler.update()
    assert series(session, "grad_norm") == pytest.approx([true], rel=1e-5)


def test_a_fused_step_that_unscales_itself_is_measured_before(session):
    class Fused(torch.optim.SGD):
        def step(self, closure=None):
            for p in self.param_groups[0]["params"]:
                p.grad.div_(self.grad_scale)
    model = net(4, 4)
    optimizer = Fused(model.parameters(), lr=0.1)
    optimizer.grad_scale = torch.tensor(8.0)
    (model(torch.ones(1, 4)).sum() * 8).backward()
    true = float(flat([p.grad for p in model.parameters()]).norm()) / 8
    optimizer.step()
    assert series(session, "grad_norm") == pytest.approx([true], rel=1e-5)


def test_gradients_of_a_closure_are_those_of_its_own_step(session):
    model = net(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    norms = []

    def closure():
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        norms.append(float(flat([p.grad for p in model.parameters()]).norm()))
        return loss
    for _ in range(3):
        optimizer.step(closure)
    assert series(session, "grad_norm") == pytest.approx(norms, rel=1e-5)


def test_halves_do_not_overflow_and_nan_is_seen(session):
    weight = torch.full((300,), 3e4, dtype=torch.float16, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    weight.grad = torch.full_like(weight, 6e4)
    optimizer.step()
    assert series(session, "grad_norm")[0] == pytest.approx(6e4 * math.sqrt(300), rel=1e-2)
    weight.grad = torch.full_like(weight, math.nan)
    optimizer.step()
    assert math.isnan(series(session, "grad_norm")[1])


def test_all_zero_parameters_have_no_ratio(session):
    weight = torch.zeros(4, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    weight.grad = torch.ones(4)
    optimizer.step()
    assert series(session, "update_ratio") == [] and series(session, "weight_norm") == [2.0]
    optimizer.step()
    assert series(session, "update_ratio") == [1.0]


def test_updates_by_hand_have_a_gradient_norm(session):
    session.optimizers = 0  # other tests' optimizers may still be alive
    model = net(3, 2)
    model(torch.randn(4, 3)).square().mean().backward()
    assert series(session, "grad_norm") == pytest.approx([float(flat([p.grad for p in model.parameters()]).norm())])


def test_odd_parameters_are_passed_over(session):
    sparse = nn.Embedding(5, 2, sparse=True)
    empty = torch.zeros(0, requires_grad=True)
    dense = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([*sparse.parameters(), empty, dense], lr=0.1)
    (sparse(torch.tensor([1])).sum() + dense.sum()).backward()
    optimizer.step()
    assert series(session, "grad_norm") == pytest.approx([math.sqrt(2)]) and session.recorder.memory.steps == 1


def test_measuring_stops_when_it_costs_too_much(session, monkeypatch):
    monkeypatch.setattr(Budget, "allows", lambda self: False)
    model = net(4, 4)
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), 3, 4)
    assert series(session, "grad_norm") == series(session, "activation_std") == [] and len(series(session, "loss")) == 3


def test_numbers_from_a_device_are_written_under_their_own_step_when_they_arrive(session):
    class Event:
        arrived = False

        def query(self):
            return self.arrived

        def synchronize(self):
            self.arrived = True
    later = monitors.Later(session)
    event = Event()
    later._pending.append((7, ("grad_norm", "std 0", "std 1"), torch.tensor([1.5, 1.0, 3.0]), event))
    later.collect()
    assert series(session, "grad_norm") == []
    later.collect(wait=True)
    assert session.recorder.memory.series["grad_norm"] == [(7, 1.5)]
    assert session.recorder.memory.series["activation_std"] == [(7, 2.0)]
