"""Gauges of the loss against arithmetic written out: first values, floors, Gaussian logits."""
from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from traindx.core.trials import Gauge
from traindx.gauges import Watchers, build, label_floor, names
from traindx.gauges.tools import losscalls
from traindx.gauges.tools.gaussian import expected_binary_excess, expected_excess, implied_std
from traindx.gauges.tools.losscalls import LossCall
from traindx.probes.losses import terms_of
from trial_driver import trial

torch.manual_seed(0)
LOGITS, LABELS = torch.randn(6, 4), torch.tensor([0, 1, 2, 2, 3, 1])
WEIGHT = torch.tensor([1.0, 2.0, 0.5, 3.0])


def call(function, input, target, **kwargs):
    return LossCall(function, input, target, getattr(F, function)(input, target, **kwargs), kwargs, None)


@pytest.mark.parametrize("classes, std", [(2, 0.3), (2, 4.0), (10, 1.0), (10, 8.0), (500, 2.0)])
def test_the_cost_of_gaussian_logits_is_what_monte_carlo_says(classes, std):
    torch.manual_seed(1)
    logits = std * torch.randn(200_000 // max(classes // 10, 1), classes, dtype=torch.float64)
    costs = logits.logsumexp(1) - logits[:, 0] - math.log(classes)
    error = float(costs.std()) / len(costs) ** 0.5
    assert abs(expected_excess(std, classes) - float(costs.mean())) < 4 * error
    assert implied_std(expected_excess(std, classes), classes) == pytest.approx(std, rel=1e-4)


def test_small_spreads_cost_half_their_square_less_one_class():
    assert expected_excess(0.01, 10) == pytest.approx(0.9 * 0.01 ** 2 / 2, rel=1e-3)
    assert expected_excess(0.5, 2) == pytest.approx(expected_binary_excess(0.5 * 2 ** 0.5), rel=1e-6)  # two logits are one difference
    assert implied_std(-0.1, 10) is None and implied_std(1e9, 10) is None
    assert implied_std(0.0, 10) == pytest.approx(0.0, abs=1e-6)


def test_chance_is_ln_c_and_follows_weights_smoothing_ignored_labels_and_reduction():
    assert call("cross_entropy", LOGITS, LABELS).chance() == pytest.approx(math.log(4))
    weights = WEIGHT[LABELS]
    expected = float((0.9 * weights + 0.1 / 4 * WEIGHT.sum()).sum() / weights.sum()) * math.log(4)
    assert call("cross_entropy", LOGITS, LABELS, weight=WEIGHT, label_smoothing=0.1).chance() == pytest.approx(expected, rel=1e-6)
    ignored = LABELS.clone()
    ignored[:2] = -100
    assert call("cross_entropy", LOGITS, ignored, ignore_index=-100).chance() == pytest.approx(math.log(4))
    assert call("cross_entropy", LOGITS, LABELS, reduction="sum").chance() == pytest.approx(6 * math.log(4))
    assert call("nll_loss", LOGITS.log_softmax(1), LABELS).chance() == pytest.approx(math.log(4))
    assert call("binary_cross_entropy_with_logits", LOGITS[:, 0], torch.ones(6)).chance() == pytest.approx(math.log(2))
    assert call("mse_loss", LOGITS, LOGITS + 1).chance() == pytest.approx(float((LOGITS + 1).square().mean()), rel=1e-6)


def test_the_best_constant_is_the_entropy_of_the_labels_or_the_variance_of_the_target():
    share = torch.tensor([1, 2, 2, 1.0]) / 6
    assert call("cross_entropy", LOGITS, LABELS).constant() == pytest.approx(float(-(share * share.log()).sum()), rel=1e-6)
    binary = torch.tensor([1.0, 0, 0, 0, 1, 0])
    assert call("binary_cross_entropy", torch.rand(6), binary).constant() == pytest.approx(-math.log(1 / 3) / 3 - 2 * math.log(2 / 3) / 3)
    y = torch.randn(6, 2)
    assert call("mse_loss", LOGITS[:, :2], y).constant() == pytest.approx(float(y.var(0, correction=0).mean()), rel=1e-6)
    assert call("mse_loss", LOGITS[:, :1], y[:, 0].unsqueeze(0)).constant() is None  # broadcast
    assert call("smooth_l1_loss", LOGITS[:, :2], y).constant() is None


@pytest.mark.parametrize("kwargs", [{}, {"weight": WEIGHT}, {"label_smoothing": 0.2}, {"weight": WEIGHT, "label_smoothing": 0.2}])
def test_no_constant_is_better_than_the_best_one(kwargs):
    """Against plain gradient descent over the constant."""
    constant = torch.zeros(4, requires_grad=True)
    optimizer = torch.optim.LBFGS([constant], max_iter=200, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(constant.expand(6, 4), LABELS, **kwargs)
        loss.backward()
        return loss
    optimizer.step(closure)
    assert call("cross_entropy", LOGITS, LABELS, **kwargs).constant() == pytest.approx(float(closure().detach()), abs=1e-5)


@pytest.mark.parametrize("function, target, kwargs", [
    ("cross_entropy", torch.tensor([0, 1, 1, 2, 3, 3]), {}),
    ("cross_entropy", torch.tensor([0, 1, 1, 2, 3, 3]), {"weight": WEIGHT, "label_smoothing": 0.1, "reduction": "sum"}),
    ("cross_entropy", torch.tensor([0, -100, 1, 2, 3, 3]), {}),
    ("cross_entropy", torch.rand(6, 4).softmax(1), {}),
    ("binary_cross_entropy_with_logits", (torch.rand(6, 4) > 0.5).float(), {"pos_weight": torch.tensor([1.0, 2, 3, 4])}),
    ("mse_loss", torch.randn(6, 4), {}),
    ("mse_loss", torch.randn(6, 4), {"reduction": "sum"}),
])
def test_the_floor_is_the_best_that_descent_over_one_output_per_distinct_input_finds(function, target, kwargs):
    groups = torch.tensor([0, 0, 1, 2, 2, 2])
    outputs = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([outputs], max_iter=500, line_search_fn="strong_wolfe", tolerance_change=1e-14, tolerance_grad=1e-12)
    double = {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in kwargs.items()}

    def closure():
        optimizer.zero_grad()
        loss = getattr(F, function)(outputs[groups], target.double() if target.is_floating_point() else target, **double)
        loss.backward()
        return loss
    optimizer.step(closure)
    found = label_floor.measured(call(function, LOGITS, target, **kwargs), groups)
    assert found["floor"] == pytest.approx(float(closure().detach()), abs=2e-4)


def test_l1_and_probabilities_have_their_floors_too():
    groups = torch.tensor([0, 0, 0, 1, 1, 1])
    y = torch.tensor([1.0, 2.0, 6.0, 3.0, 3.0, 3.0])
    assert label_floor.measured(call("l1_loss", LOGITS[:, 0], y), groups)["floor"] == pytest.approx(5 / 6)
    halves = label_floor.measured(call("binary_cross_entropy", torch.rand(6), torch.tensor([1.0, 0, 0, 1, 1, 1])), groups)
    assert halves["floor"] == pytest.approx(0.5 * (-math.log(1 / 3) / 3 - 2 * math.log(2 / 3) / 3))
    assert (halves["conflicts"], halves["distinct"], halves["probabilities"]) == (3, 2, True)


def test_very_large_outputs_are_judged_by_their_first_rows(monkeypatch):
    monkeypatch.setattr(losscalls, "MOST_ELEMENTS", 8)
    part = call("cross_entropy", LOGITS, LABELS).shrunk()
    assert part.input.shape == (2, 4) and float(part.value) == pytest.approx(float(F.cross_entropy(LOGITS[:2], LABELS[:2])))
    with trial(Gauge("initial_loss"), Gauge("label_floor"), Gauge("descends")) as facts:
        train(nn.Linear(3, 4), torch.randn(6, 3), LABELS, lambda out, y: F.cross_entropy(out, y))
    assert facts["initial_loss"]["samples"] == 2 and facts["label_floor"]["floor"] == pytest.approx(0, abs=1e-9)
    assert facts["descends"]["outputs"] == [] and facts["descends"]["descent"] == pytest.approx(1, abs=1e-5)
    with trial(Gauge("label_floor")) as facts:
        train(nn.Linear(3, 4), torch.zeros(6, 3), LABELS, lambda out, y: F.cross_entropy(out, y))
    assert "too large" in facts["label_floor"]["not_measured"]["en"]


def test_labels_that_are_no_shares_have_no_floor():
    assert call("binary_cross_entropy_with_logits", LOGITS[:, 0], torch.tensor([0.0, 1, 2, 1, 0, 1])).kind == "other"
    assert call("cross_entropy", LOGITS, torch.randn(6, 4)).kind == "other"
    assert call("cross_entropy", LOGITS, torch.rand(6, 4)).kind == "classes"


@pytest.mark.parametrize("classes", [2, 10, 100])
def test_softmax_before_cross_entropy_cannot_fall_below_its_floor(classes):
    target = torch.arange(classes)
    found = label_floor.measured(call("cross_entropy", torch.rand(classes, classes).softmax(1), target), torch.arange(classes))
    assert found["double_activation"] == pytest.approx(math.log(1 + (classes - 1) / math.e))
    assert found["probabilities"] and found["floor"] == pytest.approx(0, abs=1e-9)


def test_sigmoid_twice_leaves_the_negatives_at_ln_2():
    y = torch.tensor([1.0, 0, 0, 0])
    found = label_floor.measured(call("binary_cross_entropy_with_logits", torch.rand(4), y), torch.arange(4))
    assert found["double_activation"] == pytest.approx((math.log(1 + math.exp(-1)) + 3 * math.log(2)) / 4)


def test_rows_are_alike_only_to_the_last_bit_and_in_every_input():
    one = torch.tensor([[1.0, 2], [1, 2], [1, 2 + 1e-6], [1, 2]])
    other = torch.tensor([0, 0, 0, 1])
    assert len(set(label_floor.same_rows([one, other]).tolist())) == 3
    assert label_floor.same_rows([one, other])[0] == label_floor.same_rows([one, other])[1]


def train(model, inputs, targets, loss, steps=2):
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()


def test_a_hot_head_is_told_as_the_spread_of_its_logits():
    torch.manual_seed(0)
    model, x, y = nn.Linear(100, 10), torch.randn(400, 100), torch.randint(10, (400,))
    nn.init.normal_(model.weight, std=0.3)  # logits of standard deviation 3
    start, bias = model.weight.detach().clone(), model.bias.detach().clone()
    with trial(Gauge("initial_loss"), Gauge("label_floor")) as facts:
        train(model, x, y, F.cross_entropy)
    first = facts["initial_loss"]
    assert first["formula"] == "ln 10" and first["classes"] == 10 and first["site"]["file"].endswith("test_gauges_loss.py")
    assert first["logit_std"] == pytest.approx(3, rel=0.1) and first["implied_std"] == pytest.approx(3, rel=0.15)
    losses = F.cross_entropy(x @ start.T + bias, y, reduction="none")
    assert first["error"] == pytest.approx(float(losses.std()) / 20, rel=1e-5)
    assert facts["label_floor"] == {**facts["label_floor"], "distinct": 400, "conflicts": 0, "floor": pytest.approx(0, abs=1e-9)}


def test_regression_is_told_by_the_moments_of_its_target():
    torch.manual_seed(0)
    model, x, y = nn.Linear(3, 1), torch.zeros(50, 3), 5 + torch.randn(50, 1)
    with trial(Gauge("initial_loss"), Gauge("label_floor")) as facts:
        train(model, x, y, nn.MSELoss())
    first, floor = facts["initial_loss"], facts["label_floor"]
    assert (first["formula"], first["chance"]) == ("E[y²]", pytest.approx(float(y.square().mean()), rel=1e-6))
    assert first["constant"] == pytest.approx(float(y.var(correction=0)), rel=1e-6)
    assert floor["floor"] == first["constant"] and floor["distinct"] == 1 and floor["conflicts"] == 50


def test_labels_given_to_the_model_are_no_input_but_an_autoencoders_input_is():
    class WithLabels(nn.Linear):
        def forward(self, x, y):
            return F.cross_entropy(super().forward(x), y)
    x, y = torch.zeros(4, 3), torch.tensor([0, 1, 0, 1])
    with trial(Gauge("label_floor")) as facts:
        WithLabels(3, 2)(x, y)
    assert facts["label_floor"]["floor"] == pytest.approx(math.log(2)) and facts["label_floor"]["conflicts"] == 4
    x = torch.randn(4, 3)
    with trial(Gauge("label_floor")) as facts:
        nn.functional.mse_loss(nn.Linear(3, 3)(x), x)
    assert facts["label_floor"]["floor"] == 0 and facts["label_floor"]["distinct"] == 4


def test_a_program_that_compiles_runs_as_it_is_written():
    original = torch.compile
    with trial(Gauge("initial_loss")) as facts:
        model = torch.compile(nn.Linear(3, 2))
        model.compile()

        @torch.compile(dynamic=True)
        def loss(x, y):
            return F.cross_entropy(model(x), y)
        loss(torch.randn(4, 3), torch.tensor([0, 1, 0, 1]))
    assert type(model) is nn.Linear and facts["initial_loss"]["formula"] == "ln 2" and torch.compile is original


def test_what_cannot_be_measured_says_why():
    embed = nn.Embedding(5, 7)
    tokens = torch.tensor([[1, 2, 3], [1, 2, 3]])
    with trial(Gauge("initial_loss"), Gauge("label_floor")) as facts:
        embed(tokens)
    assert "no loss function" in facts["initial_loss"]["not_measured"]["en"] and facts["label_floor"]["not_measured"]["zh"]
    with trial(Gauge("label_floor")) as facts:  # two alike sequences, six labels: whose is which?
        train(embed, tokens, torch.arange(6), lambda out, y: F.cross_entropy(out.reshape(6, 7), y))
    assert "6 labels" in facts["label_floor"]["not_measured"]["en"]


def test_a_gauge_is_found_by_its_file_and_refuses_what_it_does_not_know():
    assert {"initial_loss", "label_floor"} <= set(names()) and "tools" not in names()
    with pytest.raises(Exception, match="no gauge"):
        build(Gauge("nothing"), print)
    with pytest.raises(Exception, match="no setting"):
        Watchers([Gauge("initial_loss", {"colour": 1})], print)


def test_a_hook_that_raises_is_reported_and_not_called_again():
    sent = []
    watchers = Watchers([Gauge("initial_loss")], sent.append)
    watchers.tell("on_loss", "cross_entropy", LOGITS, LABELS, None, {}, None)
    watchers.tell("at_end")
    assert len(sent) == 1 and "failed" in sent[0]["fact"][1]["not_measured"]["en"]


def test_every_file_here_is_a_gauge_that_starts_and_says_something_of_nothing():
    with trial(*(Gauge(name) for name in names())) as facts:
        pass
    assert set(facts) == set(names())


@pytest.mark.parametrize(("function", "given", "target"), [
    ("cross_entropy", torch.randn(6, 4), torch.tensor([0, 1, 3, -100, 2, -100])),
    ("cross_entropy", torch.randn(6, 4, 3), torch.randint(0, 4, (6, 3))),
    ("cross_entropy", torch.randn(6, 4), torch.rand(6, 4).softmax(1)),
    ("nll_loss", torch.randn(6, 4).log_softmax(1), torch.randint(0, 4, (6,))),
    ("mse_loss", torch.randn(6, 2), torch.randn(6, 2)),
    ("binary_cross_entropy_with_logits", torch.randn(6, 2), torch.rand(6, 2))])
def test_a_sum_is_so_many_means(function, given, target):
    loss = getattr(torch.nn.functional, function)
    run = SimpleNamespace(function=function, input=given, target=target, arguments={})
    assert loss(given, target, reduction="sum") / terms_of(run) == pytest.approx(loss(given, target).item(), rel=1e-5)
