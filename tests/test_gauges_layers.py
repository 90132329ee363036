"""The layer gauge against hooks and loops written out, and against networks whose spreads are known from theory."""
from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from traindx.core.trials import Gauge
from traindx.gauges.tools import weights
from trial_driver import trial


def measure(make, x, loss=lambda out: out.square().mean(), steps=(1,), lr=0.01):
    with trial(Gauge("layers", {"steps": list(steps)})) as facts:
        model = make()
        optimizer = torch.optim.SGD(model.parameters(), lr)
        for _ in range(max(steps)):
            optimizer.zero_grad()
            loss(model(x)).backward()
            optimizer.step()
    return facts["layers"]["measured"]


def deep(init, activation, depth=8, width=256):
    def make():
        torch.manual_seed(0)
        layers = []
        for _ in range(depth):
            linear = nn.Linear(width, width, bias=False)
            init(linear.weight)
            layers += [linear, activation()]
        return nn.Sequential(*layers, nn.Linear(width, 1))
    return make


X = torch.randn(64, 256, generator=torch.Generator().manual_seed(0))


def test_spreads_are_those_of_a_forward_and_backward_written_out():
    make = deep(nn.init.kaiming_normal_, nn.ReLU, 3)
    found = measure(make, X)[0]["layers"]
    model, hidden, kept = make(), X, []
    for layer in model:
        hidden = layer(hidden)
        hidden.retain_grad()
        kept.append(hidden)
    hidden.square().mean().backward()
    assert [layer["layer"] for layer in found] == [str(i) for i in range(7)]
    for layer, tensor in zip(found, kept):
        assert layer["out_std"] == pytest.approx(float(tensor.std(correction=0)), rel=1e-6)
        assert layer["grad_std"] == pytest.approx(float(tensor.grad.std(correction=0)), rel=1e-5)
        assert layer["zero"] == pytest.approx(float((tensor == 0).float().mean()))
    assert found[0]["followed_by"] == "ReLU" and found[-1]["followed_by"] is None


def test_he_keeps_relu_alive_and_glorot_lets_it_fade_by_root_two_a_layer():
    he = measure(deep(nn.init.kaiming_normal_, nn.ReLU), X)[0]
    glorot = measure(deep(nn.init.xavier_normal_, nn.ReLU), X)[0]
    assert he["forward_factor"] == pytest.approx(1, abs=0.06) and he["backward_factor"] == pytest.approx(1, abs=0.06)
    assert glorot["forward_factor"] / he["forward_factor"] == pytest.approx(1 / math.sqrt(2), rel=1e-3)
    assert glorot["backward_factor"] / he["backward_factor"] == pytest.approx(1 / math.sqrt(2), rel=1e-3)


@pytest.mark.parametrize("init, name", [
    (nn.init.kaiming_normal_, "he"), (nn.init.kaiming_uniform_, "he"), (nn.init.xavier_uniform_, "glorot"),
    (lambda w: nn.init.kaiming_uniform_(w, a=math.sqrt(5)), "torch"), (nn.init.orthogonal_, "orthogonal"),
    (lambda w: nn.init.normal_(w, std=0.02), "normal 0.02"), (nn.init.zeros_, "zeros"), (lambda w: nn.init.constant_(w, 0.1), "constant"),
    (lambda w: nn.init.normal_(w, std=1 / math.sqrt(300)), "lecun"), (lambda w: nn.init.kaiming_normal_(w, mode="fan_out"), "he fan_out"),
])
def test_a_weight_is_recognised_by_its_spread(init, name):
    torch.manual_seed(0)
    linear = nn.Linear(300, 100)
    init(linear.weight)
    found = weights.described(linear)
    assert found["looks_like"] == [name] and (found["fan_in"], found["fan_out"]) == (300, 100)


def test_layers_of_torch_look_like_torch_and_few_weights_like_nothing():
    torch.manual_seed(0)
    for module in (nn.Linear(500, 40), nn.Conv2d(16, 32, 3), nn.LSTM(30, 60), nn.Embedding(100, 50), nn.MultiheadAttention(64, 4)):
        assert "torch" in weights.described(module)["looks_like"]
    assert weights.described(nn.Linear(3, 4))["looks_like"] == [] and weights.described(nn.LayerNorm(4)) is None


def test_dead_features_are_counted_also_behind_a_functional_relu():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(256, 10), nn.Linear(10, 1)
            with torch.no_grad():
                self.a.bias[:3] = -100.0

        def forward(self, x):
            return self.b(F.relu(self.a(x)))
    found = measure(Net, X)[0]["layers"]
    assert found[1]["in_dead"] == pytest.approx(0.3) and found[0]["in_dead"] == 0


class Block(nn.Module):
    def __init__(self, width, gain):
        super().__init__()
        self.norm, self.branch, self.gain = nn.LayerNorm(width), nn.Linear(width, width), gain
        nn.init.normal_(self.branch.weight, std=gain / width ** 0.5)

    def forward(self, x):
        return x + self.branch(self.norm(x))


class Loop(nn.Module):
    """The sum is written outside the blocks, behind a ReLU."""

    def __init__(self):
        super().__init__()
        self.blocks, self.head = nn.ModuleList(nn.Linear(256, 256) for _ in range(3)), nn.Linear(256, 1)

    def forward(self, x):
        for block in self.blocks:
            x = F.relu(x + block(x))
        return self.head(x)


def test_residual_branches_and_their_growth_are_seen():
    found = measure(lambda: (torch.manual_seed(0), nn.Sequential(*(Block(256, 1.0) for _ in range(6)), nn.LayerNorm(256), nn.Linear(256, 1)))[1], X)[0]
    residual = found["residual"]
    assert [r["branch"] for r in residual] == [f"{i}.branch" for i in range(6)]
    assert residual[-1]["sum_std"] == pytest.approx(math.sqrt(7), rel=0.1)  # each branch adds variance 1 to the stream's 1
    assert residual[0]["stream_std"] == pytest.approx(float(X.std(correction=0)), rel=1e-5)
    assert [r["branch"] for r in measure(Loop, X)[0]["residual"]] == ["blocks.0", "blocks.1", "blocks.2"]


def test_a_plain_network_has_no_residual_sums():
    assert measure(deep(nn.init.kaiming_normal_, nn.ReLU), X)[0]["residual"] == []


def test_later_steps_are_measured_too_and_nothing_stays_hooked():
    models = []

    def make():
        models.append(deep(nn.init.kaiming_normal_, nn.ReLU, 2)())
        return models[0]
    found = measure(make, X, steps=(1, 3), lr=0.05)
    assert [entry["step"] for entry in found] == [1, 3] and "weight" in found[0]["layers"][0] and "weight" not in found[1]["layers"][0]
    assert found[0]["layers"][0]["out_std"] != found[1]["layers"][0]["out_std"]
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in models[0].modules())


def test_the_factor_of_a_grad_scaler_is_taken_out():
    def grads(scaler):
        torch.manual_seed(0)
        with trial(Gauge("layers", {"steps": [1]})) as facts:
            model = nn.Sequential(nn.Linear(256, 4), nn.Tanh(), nn.Linear(4, 1))
            optimizer = torch.optim.SGD(model.parameters(), 0.01)
            loss = model(X).square().mean()
            (scaler.scale(loss) if scaler else loss).backward()
            optimizer.step()
        return [layer["grad_std"] for layer in facts["layers"]["measured"][0]["layers"]]
    assert grads(torch.amp.GradScaler("cpu", init_scale=4096.0)) == pytest.approx(grads(None), rel=1e-5)
