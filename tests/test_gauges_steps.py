"""Gauges of a step against arithmetic written out: sharpness against whole Hessians, descent against signs put in on purpose."""
from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from traindx.core.trials import Gauge
from traindx.gauges import sharpness
from trial_driver import trial


def quadratic(curvatures, optimizer, steps=3, gauges=()):
    """Minimises sum(c x²) / 2; the Hessian is diag(c)."""
    x = nn.Parameter(torch.ones(len(curvatures)))
    optimizer, c = optimizer([x]), torch.tensor(curvatures)
    with trial(*gauges) as facts:
        for _ in range(steps):
            optimizer.zero_grad()
            ((c * x * x).sum() / 2).backward()
            optimizer.step()
    return x.detach(), facts


def sharp(curvatures, optimizer, **settings):
    return quadratic(curvatures, optimizer, gauges=(Gauge("sharpness", settings),))[1]["sharpness"]


def test_the_curvature_of_a_bowl_and_its_step_limit():
    found = sharp([1.0, 40.0, 3.0], lambda p: torch.optim.SGD(p, lr=0.01))
    assert found["value"] == pytest.approx(40, rel=1e-3) and found["limit"] == pytest.approx(0.05, rel=1e-3)
    assert found["multiplier"] == pytest.approx(0.6, rel=1e-3) and found["converged"] and found["residual"] <= 0.04
    assert abs(found["value"] - 40) <= found["residual"] + 1e-5


def test_the_most_negative_direction_is_not_taken_for_the_sharpest():
    found = sharp([-50.0, 7.0, 1.0], lambda p: torch.optim.SGD(p, lr=0.01))
    assert found["value"] == pytest.approx(7, rel=1e-2) and found["lowest"] == pytest.approx(-50, rel=1e-2)
    assert sharp([-5.0, -1.0], lambda p: torch.optim.SGD(p, lr=0.01))["limit"] is None


@pytest.mark.parametrize("settings", [{"momentum": 0.9}, {"momentum": 0.5, "nesterov": True}, {"momentum": 0.9, "dampening": 0.9},
                                      {"weight_decay": 10.0}])
def test_just_below_the_limit_the_error_shrinks_and_just_above_it_grows(settings):
    found = sharp([20.0], lambda p: torch.optim.SGD(p, lr=1e-3, **settings))
    limit = found.get("limit_with_momentum", found["limit"])
    below, _ = quadratic([20.0], lambda p: torch.optim.SGD(p, lr=0.95 * limit, **settings), 400)
    above, _ = quadratic([20.0], lambda p: torch.optim.SGD(p, lr=1.05 * limit, **settings), 400)
    assert abs(float(below)) < 1e-2 and not abs(float(above)) < 1e2


def test_adam_is_judged_in_its_own_metric():
    c, betas, eps = [4.0, 0.5], (0.9, 0.999), 1e-8
    found = sharp(c, lambda p: torch.optim.Adam(p, lr=0.01, betas=betas), at=3)
    x, _ = quadratic(c, lambda p: torch.optim.Adam(p, lr=0.01, betas=betas), 2)
    second, y = torch.zeros(2), torch.ones(2)
    first, lr = torch.zeros(2), 0.01
    for t in (1, 2):  # Adam written out
        g = torch.tensor(c) * y
        first, second = 0.9 * first + 0.1 * g, 0.999 * second + 0.001 * g * g
        y = y - lr * (first / (1 - 0.9 ** t)) / ((second / (1 - 0.999 ** t)).sqrt() + eps)
    assert torch.allclose(x, y)
    expected = (torch.tensor(c) / ((second / (1 - 0.999 ** 2)).sqrt() + eps)).max()
    inner = found["preconditioned"]
    assert inner["value"] == pytest.approx(float(expected), rel=1e-2) and inner["bound"] == pytest.approx(38)
    assert inner["limit"] == pytest.approx(38 / float(expected), rel=1e-2) and found["value"] == pytest.approx(4, rel=1e-3)
    assert "preconditioned" not in sharp(c, lambda p: torch.optim.Adam(p, lr=0.01), at=1)


def net(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.3), nn.BatchNorm1d(6), nn.Linear(6, 3))


def classes(out, y):
    return F.cross_entropy(out, y)


def fit(model, x, y, loss=classes, optimizer=None, steps=2, backwards=1):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.05)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        for _ in range(backwards):
            value = loss(model(x), y) / backwards
            value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
    return losses


def test_sharpness_of_a_network_is_the_top_of_its_whole_hessian():
    model, x, y = net(), torch.randn(8, 4), torch.randint(3, (8,))
    model[2].p = 0.0
    parameters = dict(model.named_parameters())

    def loss(*values):
        return F.cross_entropy(torch.func.functional_call(model, dict(zip(parameters, values)), (x,)), y)
    sizes = [p.numel() for p in parameters.values()]
    blocks = torch.autograd.functional.hessian(loss, tuple(p.detach() for p in parameters.values()))
    hessian = torch.cat([torch.cat([b.reshape(sizes[i], sizes[j]) for j, b in enumerate(row)], 1) for i, row in enumerate(blocks)])
    expected = float(torch.linalg.eigvalsh((hessian + hessian.T) / 2).max())
    with trial(Gauge("sharpness", {"iterations": 200})) as facts:
        fit(model, x, y)
    assert facts["sharpness"]["value"] == pytest.approx(expected, rel=1e-3)
    assert facts["sharpness"]["parameters"] == sum(sizes)


def test_accumulation_counts_every_backward_and_a_loss_scale_is_taken_out():
    model, x, y = nn.Linear(4, 3), torch.randn(8, 4), torch.randint(3, (8,))
    with trial(Gauge("sharpness")) as facts:
        fit(model, x, y)
    plain = facts["sharpness"]["value"]
    torch.manual_seed(0)
    with trial(Gauge("sharpness")) as facts:
        model.reset_parameters()
        state = {k: v.clone() for k, v in model.state_dict().items()}
        fit(model, x, y, backwards=4)
    four = facts["sharpness"]
    model.load_state_dict(state)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    with trial(Gauge("sharpness")) as facts:
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        scaler.scale(F.cross_entropy(model(x), y)).backward()
        scaler.step(optimizer)
    assert four["backwards"] == 4 and four["value"] == pytest.approx(facts["sharpness"]["value"], rel=2e-3)
    assert plain > 0


def test_attention_can_be_measured_although_its_fused_kernel_cannot():
    torch.manual_seed(0)
    model, x, y = nn.Linear(8, 8), torch.randn(3, 2, 5, 8), torch.randn(3, 2, 5, 8)
    with trial(Gauge("sharpness", {"iterations": 300})) as facts:
        fit(model, x, y, lambda out, y: F.mse_loss(F.scaled_dot_product_attention(out, out, out), y))
    assert facts["sharpness"]["value"] > 0


def test_what_cannot_be_differentiated_twice_is_said():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * 2
    model = nn.Linear(2, 1)
    with trial(Gauge("sharpness")) as facts:
        fit(model, torch.randn(4, 2), torch.randn(4, 1), lambda out, y: F.mse_loss(Once.apply(out), y))
    assert "twice" in facts["sharpness"]["not_measured"]["en"]
    with trial(Gauge("sharpness", {"at": 9})) as facts:
        fit(model, torch.randn(4, 2), torch.randn(4, 1), nn.MSELoss())
    assert "before step 9" in facts["sharpness"]["not_measured"]["en"]
    with trial(Gauge("sharpness")) as facts:
        fit(model, torch.randn(4, 2), torch.randn(4, 1), lambda out, y: out.sum())
    assert "curvature is 0" in facts["sharpness"]["not_measured"]["en"]


def test_gauges_do_not_move_the_training():
    gauges = [Gauge(name) for name in ("initial_loss", "label_floor", "descends", "sharpness")]
    x, y = torch.randn(8, 4), torch.randint(3, (8,))
    plain = fit(net(), x, y, steps=5)
    with trial(*gauges) as facts:
        measured = fit(net(), x, y, steps=5)
    assert measured == plain and not any("not_measured" in value for value in facts.values())


def descent(loss=classes, optimizer=lambda p: torch.optim.SGD(p, 0.1), hook=None):
    torch.manual_seed(0)
    model, x, y = nn.Linear(4, 3), torch.randn(8, 4), torch.randint(3, (8,))
    if hook:
        model.weight.register_post_accumulate_grad_hook(hook)
        model.bias.register_post_accumulate_grad_hook(hook)
    with trial(Gauge("descends")) as facts:
        fit(model, x, y, loss, optimizer(model.parameters()))
    return facts["descends"]


def test_a_sound_step_goes_down_along_every_link():
    found = descent()
    assert found["outputs"][0]["slope"] < -0.3 and found["outputs"][0]["rising"] == 0
    assert [found[k] for k in ("gradient_kept", "step_against_gradient", "descent")] == pytest.approx([1, 1, 1], abs=1e-6)
    assert descent(optimizer=lambda p: torch.optim.Adam(p, 1e-3))["descent"] > 0.3


def flip(parameter):
    parameter.grad.neg_()


@pytest.mark.parametrize("changes, signs", [
    ({"loss": lambda out, y: -F.cross_entropy(out, y)}, (1, 1, 1, 1)),
    ({"hook": flip}, (-1, -1, 1, -1)),
    ({"optimizer": lambda p: torch.optim.SGD(p, 0.1, maximize=True)}, (-1, 1, -1, -1)),
])
def test_a_wrong_sign_is_found_at_its_link(changes, signs):
    found = descent(**changes)
    told = found["outputs"][0]["slope"], found["gradient_kept"], found["step_against_gradient"], found["descent"]
    assert tuple(1 if value > 0 else -1 for value in told) == signs
    assert found["maximize"] == ("optimizer" in changes)


@pytest.mark.parametrize("function, target", [
    ("nll_loss", torch.tensor([0, 2, 1])), ("cross_entropy", torch.tensor([0, -100, 1])), ("mse_loss", torch.randn(3, 4)),
    ("l1_loss", torch.randn(3, 4)), ("mse_loss", torch.randn(3)), ("binary_cross_entropy_with_logits", torch.rand(3, 4).round()),
])
def test_every_loss_falls_towards_its_label(function, target):
    def loss(out, y):
        return getattr(F, function)(out.log_softmax(1) if function == "nll_loss" else out, y)
    model = nn.Linear(5, 4) if target.dim() > 1 or not target.is_floating_point() else nn.Sequential(nn.Linear(5, 1), nn.Flatten(0))
    with trial(Gauge("descends")) as facts:
        fit(model, torch.randn(3, 5), target, loss)
    assert facts["descends"]["outputs"][0]["slope"] < 0 and facts["descends"]["outputs"][0]["rising"] == 0


def test_steps_of_length_nothing_are_passed_over():
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    with trial(Gauge("descends")) as facts:
        fit(model, torch.randn(4, 2), torch.randint(2, (4,)), optimizer=optimizer, steps=3)
        optimizer.param_groups[0]["lr"] = 0.1
        fit(model, torch.randn(4, 2), torch.randint(2, (4,)), optimizer=optimizer, steps=1)
    assert facts["descends"]["step"] == 4 and facts["descends"]["descent"] == pytest.approx(1, abs=1e-6)


def test_updates_by_hand_are_measured_as_far_as_they_go():
    torch.manual_seed(0)
    model, x, y = nn.Linear(4, 1), torch.randn(8, 4), torch.randn(8, 1)
    with trial(Gauge("descends"), Gauge("sharpness"), Gauge("layers")) as facts:
        for _ in range(2):
            F.mse_loss(model(x), y).backward()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad
                    p.grad = None
    design = torch.cat([x, torch.ones(8, 1)], 1).double()
    assert facts["sharpness"]["value"] == pytest.approx(float(torch.linalg.eigvalsh(2 * design.T @ design / 8).max()), rel=1e-3)
    assert facts["sharpness"]["lr"] is None and facts["descends"]["outputs"][0]["slope"] < 0 and facts["descends"]["descent"] is None
    assert facts["layers"]["measured"][0]["layers"][0]["type"] == "Linear"


def test_lanczos_finds_the_top_of_known_matrices_and_stops_honestly():
    torch.manual_seed(0)
    for spectrum in ([3.0, 2.9, -1.0], [-50.0, 7.0, 7.0, 0.0], [0.0, 0.0, 0.0], [-3.0, -2.0]):
        rotation = torch.linalg.qr(torch.randn(len(spectrum), len(spectrum), dtype=torch.float64))[0]
        matrix = rotation @ torch.diag(torch.tensor(spectrum, dtype=torch.float64)) @ rotation.T
        top = sharpness.top_eigenvalue(lambda v, m=matrix: [m @ v[0]], [torch.randn(len(spectrum), dtype=torch.float64)], 50, 1e-6)
        assert top.value == pytest.approx(max(spectrum), abs=1e-5) and top.converged
    big = torch.randn(300, 300, dtype=torch.float64)
    matrix = big + big.T
    start = [torch.randn(300, dtype=torch.float64)]
    expected = float(torch.linalg.eigvalsh(matrix).max())
    done = sharpness.top_eigenvalue(lambda v: [matrix @ v[0]], start, 200, 1e-4)
    assert done.converged and abs(done.value - expected) <= done.residual + 1e-9
    rough = sharpness.top_eigenvalue(lambda v: [matrix @ v[0]], start, 4, 1e-4)
    assert not rough.converged and rough.value <= expected and rough.iterations == 4
