"""Reading graphs: suspects against naive arithmetic, plans that find their way again, lines by neighbours."""
from __future__ import annotations

import math

import pytest
import torch

from traindx.probes import graph


def loss_of(x, w):
    hidden = torch.where(x > 0, torch.sqrt(x * w), x)
    return (hidden / (w + 1)).mean()


@pytest.mark.parametrize("build, op, reason", [
    (lambda x: torch.log(x), "log", "zero"),
    (lambda x: 1 / x, "division", "zero"),
    (lambda x: torch.exp(x + 100.0), "exp", "overflow"),
    (lambda x: (x - 1).sqrt(), "sqrt", "negative"),
    (lambda x: (x - 1) ** 0.5, "pow", "negative"),
    (lambda x: torch.acos(x + 1.5), "acos", "edge"),
    (lambda x: (x.reshape(1, -1) * 0).masked_fill(torch.ones(1, 2).bool(), -math.inf).softmax(1), "softmax", "empty-row"),
])
def test_the_first_operation_that_breaks_finite_numbers_is_found(build, op, reason):
    x = torch.tensor([0.0, 0.5], requires_grad=True)
    loss = (build(x * 1.0) * 1.0).sum()
    assert not math.isfinite(float(loss.detach()))
    suspect = graph.maker(loss.grad_fn)
    assert (suspect.op, suspect.reason) == (op, reason)


def test_a_slope_hidden_by_where_is_found_among_what_was_held():
    x, w = torch.tensor([0.0, 1.0, 4.0]), torch.ones(3, requires_grad=True)
    loss = loss_of(x, w)
    held = graph.hold(graph.Plan.learn(loss.grad_fn).follow(loss.grad_fn))
    loss.backward()
    assert w.grad.isnan().any()
    assert [(s.op, s.reason, s.bad) for s in graph.suspects(held, backward=True)] == [("sqrt", "zero", 1)]


def test_a_sound_graph_has_no_suspects():
    x, w = torch.tensor([0.5, 1.0, 4.0]), torch.ones(3, requires_grad=True)
    loss = loss_of(x, w)
    assert graph.maker(loss.grad_fn) is None
    assert not list(graph.suspects(graph.hold(graph.Plan.learn(loss.grad_fn).follow(loss.grad_fn)), backward=True))


def test_a_plan_finds_the_same_nodes_in_the_next_graph_and_refuses_another():
    w = torch.ones(3, requires_grad=True)
    plan = graph.Plan.learn(loss_of(torch.rand(3), w).grad_fn)
    again = loss_of(torch.rand(3), w)
    assert {type(node).__name__ for node in plan.follow(again.grad_fn)} == {"SqrtBackward0", "DivBackward0"}
    assert plan.follow((w * 2).sum().grad_fn) is None


def test_a_product_in_half_is_done_again_in_single():
    a = torch.full((2, 64), 60.0, dtype=torch.float16, requires_grad=True)
    b = torch.full((64, 2), 60.0, dtype=torch.float16, requires_grad=True)
    suspect = graph.maker((a @ b).sum().grad_fn)
    assert (suspect.op, suspect.reason, suspect.high) == ("matmul", "half", 64 * 60.0 * 60.0)


def test_leaves_are_the_tensors_that_get_gradients():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    assert {id(t) for t in graph.leaves((w * v.detach() + w).sum().grad_fn)} == {id(w)}
