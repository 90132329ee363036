"""Rows as numbers, against naive twins."""
from __future__ import annotations

import numpy as np
import pytest

from traindx.probes import fed_maps, rows
from traindx.probes.fed_counts import Group, Order
from traindx.probes.scaling_lines import range_lines, scaling_lines


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8", "bool"])
@pytest.mark.parametrize("width", [1, 7, 600])
def test_equal_rows_and_only_they_have_equal_hashes(dtype, width):
    generator = np.random.default_rng(0)
    table = (generator.normal(size=(200, width)) * 40).astype(dtype)
    order = generator.permutation(200)
    hashes = rows.fingerprints(table)
    assert (rows.fingerprints(table[order]) == hashes[order]).all()
    assert len(set(hashes.tolist())) == len(np.unique(table, axis=0))


def test_negative_zero_is_zero():
    assert rows.fingerprints(np.float32([[-0.0, 1.0]])) == rows.fingerprints(np.float32([[0.0, 1.0]]))


def test_one_hot_rows_say_little_and_continuous_rows_much():
    generator = np.random.default_rng(1)
    assert rows.bits_of(np.eye(6)[generator.integers(0, 6, 256)], 6) < 8
    assert rows.bits_of(generator.normal(size=(256, 2)), 2) == 64


def test_levels_are_the_distinct_values_and_their_smallest_gap():
    levels, spacing, low, high = rows.levels_of(np.array([[0, 0, 1, 4], [4, 4, 4, 1.5]]))
    assert (levels, spacing, low, high) == (4, 0.5, 2 / 8, 4 / 8)


def test_the_nearest_rows_are_those_of_a_plain_search():
    table = np.random.default_rng(2).normal(size=(80, 3))
    found = rows.nearest(table, 5)
    for i, near in enumerate(found):
        distances = np.linalg.norm(table - table[i], axis=1)
        distances[i] = np.inf
        assert set(near) == set(np.argsort(distances)[:5])


def test_labels_that_follow_the_rows_are_foretold_and_shuffled_ones_are_not():
    generator = np.random.default_rng(3)
    table = generator.normal(size=(300, 4))
    labels = (table[:, 0] + table[:, 1] > 0).astype(int)
    agreement, expected, spread, column = rows.foretold(table, labels, True)
    assert agreement > expected + 8 * spread and column > 5
    agreement, expected, spread, column = rows.foretold(table, generator.permutation(labels), True)
    assert abs(agreement - expected) < 4 * spread and column < 4


def test_a_column_that_is_the_target_is_found():
    generator = np.random.default_rng(4)
    table = generator.normal(size=(100, 5)).astype("float32")
    column, error, exact = rows.straight_lines(table, 3 * table[:, 2] - 7)
    assert (column, exact) == (2, 1) and error < 1e-5
    assert rows.one_to_one(np.array([0.5, -1, 0.5]), np.array([1, 0, 1]))
    assert not rows.one_to_one(np.array([0.5, -1, 2]), np.array([1, 0, 1]))


class _Batch:
    def __init__(self, columns):
        self.columns, self.rows, self.shape = columns, np.arange(len(columns)), (columns.shape[1],)
        self.low, self.high, self.values = float(columns.min()), float(columns.max()), None


def test_column_statistics_over_batches_are_those_of_the_whole_table():
    table = np.random.default_rng(5).normal(3, 2, size=(90, 6)).astype("float32")
    group = Group("train", _Batch(table[:30]))
    for part in np.split(table, 3):
        group.take(_Batch(part), np.ones(30, bool))
    columns = group.columns()
    assert columns.mean == pytest.approx(table.mean(0), rel=1e-4) and columns.std == pytest.approx(table.std(0), rel=1e-4)
    assert (columns.low, columns.high) == (float(table.min()), float(table.max()))


def test_equal_pairs_and_runs_of_labels():
    order = Order()
    order.take(np.array([0, 0, 1]))
    order.take(np.array([1, 2, 2]))
    assert (order.pairs, order.same, order.changes, order.length) == (6, 2, 2, 6)


def test_lines_that_compute_statistics_over_rows_are_read_from_the_source():
    source = "m = x.mean(0)\nk = x.mean(1)\n\ndef scale(t):\n    return (t - np.mean(t, axis=0)) / t.std(dim=0)\n"
    assert scaling_lines(source) == [(1, "<module>"), (5, "scale")]
    assert scaling_lines("not python (") == []


def test_lines_that_take_a_range_are_told_with_the_calls_of_their_function():
    source = "low, high = x.min(), x.max()\ny.max()\n\n\nclass Scaler:\n    def fit(self, t):\n        self.a = t.min(0)\n        self.b = np.max(t, 0)\n\n\n" \
             "def load(z):\n    return Scaler().fit(z)\n"
    assert range_lines(source) == [(1, "<module>"), (12, "load"), (7, "fit")]
    assert range_lines("not python (") == []


# -- maps over images ----------------------------------------------------------------------------------------------------

def blobs(count, seed=0):
    """Images of one bright spot each [count, 1, 20, 20], and where it is [count, 20, 20]."""
    rng = np.random.default_rng(seed)
    down, across = np.mgrid[:20, :20]
    y, x = rng.uniform(4, 16, (2, count, 1, 1))
    spots = ((down - y) ** 2 + (across - x) ** 2 < 9).astype(float)
    return spots[:, None] + rng.normal(0, 0.3, (count, 1, 20, 20)), spots


def test_the_share_that_a_map_explains_is_that_of_class_means_and_of_a_line():
    images, spots = blobs(6)
    for maps in (spots, images[:, 0] * -3 + 1):
        for image, given, share in zip(images[:, 0], maps, fed_maps.explained(images, maps)):
            if maps is spots:
                within = sum(((image[given == k] - image[given == k].mean()) ** 2).sum() for k in (0, 1))
                assert share == pytest.approx(1 - within / ((image - image.mean()) ** 2).sum())
            else:
                assert share == pytest.approx(np.corrcoef(image.ravel(), given.ravel())[0, 1] ** 2)


@pytest.mark.parametrize("turn", [*fed_maps.TURNS, *fed_maps.SQUARE])
def test_a_map_that_was_turned_is_told_by_its_turn(turn):
    images, spots = blobs(200)
    back = {"quarter turn": "three quarters", "three quarters": "quarter turn"}.get(turn, turn)
    told = fed_maps.lying(images, {**fed_maps.TURNS, **fed_maps.SQUARE}[back](spots))
    assert len(told) > 60 and {name for name, _ in told} == {turn}


def test_maps_that_say_nothing_of_their_images_tell_nothing():
    images, spots = blobs(200)
    assert len(fed_maps.lying(images, np.roll(spots, 1, axis=0))) < 30  # by chance
    assert fed_maps.lying(np.random.default_rng(1).normal(size=(200, 3, 20, 20)), spots) == []
    assert fed_maps.lying(np.zeros((4, 1, 20, 20)), spots[:4]) == []
