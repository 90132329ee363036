"""Numbers that a program said, matched with the ways of summing up; the dimension of the classes through reshapes."""
from __future__ import annotations

import pytest

from traindx.core.observed import Site
from traindx.core.observed.ops import Input, Op
from traindx.core.observed.readings import Evaluation, Pass, Quantity, Said
from traindx.signals.layout import back
from traindx.signals.said import matches

LINE, PRINT = Site("t.py", 3), Site("t.py", 9)


def evaluation(values, sizes, said, decimals=4, counting=False):
    weighted = sum(v * n for v, n in zip(values, sizes)) / sum(sizes)
    quantity = Quantity("read", LINE, values[0], values[-1], sum(values) / len(values), weighted, sum(values), counting)
    one = Pass(LINE, len(values), sum(sizes), sizes[0], sizes[-1], (quantity,))
    return Evaluation(passes=(one,), said=(Said(PRINT, 0, round(said, decimals), decimals),))


def test_the_last_batch_is_told_from_the_mean():
    runs = [([0.9, 0.8, 0.5], 0.5), ([0.7, 0.6, 0.4], 0.4), ([0.5, 0.6, 0.3], 0.3)]
    assert [m.times for m in matches([evaluation(v, [32, 32, 8], s) for v, s in runs], "last")] == [3]
    means = [evaluation(v, [32, 32, 8], sum(v) / 3) for v, _ in runs]
    assert list(matches(means, "last")) == []


def test_once_is_chance():
    assert list(matches([evaluation([0.9, 0.8, 0.5], [32, 32, 8], 0.5)], "last")) == []


def test_coarse_numbers_that_the_right_way_explains_prove_nothing():
    runs = [evaluation([0.51, 0.49, 0.5], [32, 32, 32], 0.5, decimals=1) for _ in range(3)]
    assert list(matches(runs, "last")) == []


def test_shares_of_unequal_batches():
    shares = [([0.5, 0.75, 1.0], [32, 32, 4]), ([0.25, 0.5, 0.0], [32, 32, 4])]
    wrong = [evaluation(v, n, sum(v) / 3, counting=True) for v, n in shares]
    right = [evaluation(v, n, sum(a * b for a, b in zip(v, n)) / 68, counting=True) for v, n in shares]
    assert len(list(matches(wrong, "over batches"))) == 1
    assert list(matches(right, "over batches")) == []


@pytest.mark.parametrize(("name", "scalars", "before", "after", "dim", "came_from"), [
    ("flatten", {"1": "0", "2": "1"}, (40, 12, 7), (480, 7), 1, 2),
    ("view", {"1": "-1", "2": "7"}, (40, 12, 7), (480, 7), 0, None),
    ("transpose", {"1": "1", "2": "2"}, (40, 12, 7), (40, 7, 12), 1, 2),
    ("permute", {"1": "0", "2": "2", "3": "1"}, (40, 12, 7), (40, 7, 12), 1, 2),
    ("permute", {"1": "(0, 3, 1, 2)"}, (4, 5, 6, 7), (4, 7, 5, 6), 1, 3),
    ("softmax", {"dim": "-1"}, (4, 5), (4, 5), 1, 1),
    ("squeeze", {"1": "1"}, (4, 1, 5), (4, 5), 1, 2),
    ("mT", None, (4, 5, 6), (4, 6, 5), 2, 1),
])
def test_a_dimension_is_followed_back(name, scalars, before, after, dim, came_from):
    assert back(Op(0, name, None, (Input(before, "float32"),), after, "float32", scalars=scalars), dim) == came_from
