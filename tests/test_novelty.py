"""When a fresh op trace is asked for."""
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from traindx.probes.novelty import FEW, TRIES, Novelty, ending_key, read_at


def ending(root):
    return ending_key(SimpleNamespace(roots=(root,), site=None))


def test_what_was_traced_is_not_asked_for_again():
    novelty = Novelty()
    novelty.traced(("a",))
    assert not novelty.wants(("a",), 100)
    assert [novelty.wants(("b",), 100) for _ in range(TRIES + 1)] == [True] * TRIES + [False]


def test_a_run_in_which_all_is_new_is_given_up():
    novelty = Novelty()
    asked = sum(novelty.wants((n,), 2 ** 10) for n in range(1000))
    assert asked == FEW + 11
    assert novelty.may_ask(2 ** 20)


def test_the_end_of_a_graph_tells_a_new_term_and_a_grown_shape_but_not_other_values():
    weight, target = torch.zeros(4, 3, requires_grad=True), torch.ones(8, 1)
    pred = (torch.randn(8, 4) @ weight)[:, :1]
    same = (torch.randn(8, 4) @ weight)[:, :1]
    assert ending(((pred - target) ** 2).mean()) == ending(((same - target) ** 2).mean())
    assert ending(((pred - target) ** 2).mean()) != ending(((pred - target) ** 2 * target).mean())
    assert ending(((pred - target) ** 2).mean()) != ending(((pred - target[:, 0]) ** 2).mean())
    assert ending(F.mse_loss(pred, target)) != ending(F.l1_loss(pred, target))


def test_late_graphs_are_read_at_a_stride_that_meets_two_that_alternate():
    late = [step for step in range(1000, 1100) if read_at(step)]
    assert {step % 2 for step in late} == {0, 1} and len(late) < 20
