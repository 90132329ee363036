"""Rows of a batch as numbers: content hashes, how much a row says, and whether rows foretell their labels. NumPy, no
torch state.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
HASHED = 512  # elements of a row that are hashed one by one; longer rows: as many positions, and a sum over the rest
KEPT = 256  # columns of which statistics are kept
NEAREST = 5
PERMUTATIONS = 24
_ODD = np.uint64(0x9E3779B97F4A7C15)


@lru_cache(maxsize=64)
def _weights(count: int) -> Array:
    return np.random.default_rng(7).integers(0, 2**63, count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


@lru_cache(maxsize=64)
def positions(total: int, limit: int) -> Array:
    """At most ``limit`` fixed places in a row of ``total`` elements, in order."""
    if total <= limit:
        return np.arange(total)
    return np.sort(np.random.default_rng(11).choice(total, limit, replace=False))


def fingerprints(rows: Array) -> Array:
    """A 64-bit content hash of each row of ``rows`` [B, d]: equal rows have equal hashes, in any batch and order."""
    total = rows.shape[1]
    chosen = rows if total <= HASHED else rows[:, positions(total, HASHED)]
    hashes = (_mixed(_integers(chosen)) * _weights(chosen.shape[1])).sum(axis=1, dtype=np.uint64)
    if total > HASHED:
        stride = max(1, total // 8192) | 1
        hashes += _integers(rows[:, ::stride].sum(axis=1, dtype=np.float64)) * _ODD
    return _mixed(hashes * _ODD)


def _integers(values: Array) -> Array:
    if values.dtype.kind == "f":
        values = np.ascontiguousarray(values) + values.dtype.type(0)  # -0.0 is 0.0
        return values.view(f"u{values.dtype.itemsize}").astype(np.uint64)
    return values.astype(np.int64).astype(np.uint64)


def _mixed(values: Array) -> Array:
    return values ^ (values >> np.uint64(15)) ^ (values << np.uint64(21))


def bits_of(sample: Array, total: int) -> float:
    """How many bits a row says at least, were its columns independent: 32 for a column whose values hardly ever recur.
    """
    if len(sample) < 8:
        return 0.0
    chosen = sample[:, positions(sample.shape[1], 48)]
    bits = sum(_column_bits(column) for column in chosen.T)
    return bits * total / chosen.shape[1]


def _column_bits(column: Array) -> float:
    _, counts = np.unique(column, return_counts=True)
    if len(counts) > 0.9 * len(column):
        return 32.0
    share = counts / counts.sum()
    return float(-(share * np.log2(share)).sum())


def levels_of(sample: Array) -> tuple[int, float, float, float]:
    """Distinct values, the smallest gap between them, and the shares of elements at the lowest and highest value."""
    values, counts = np.unique(sample[np.isfinite(sample)], return_counts=True)
    if len(values) < 2:
        return len(values), 0.0, 1.0, 1.0
    return (
        len(values),
        float(np.diff(values.astype(np.float64)).min()),
        float(counts[0] / counts.sum()),
        float(counts[-1] / counts.sum()),
    )


def standardised(rows: Array) -> Array:
    """Columns to mean 0 and standard deviation 1; constant ones are dropped."""
    rows = np.nan_to_num(rows.astype(np.float64), posinf=0.0, neginf=0.0)
    std = rows.std(axis=0)
    keep = std > 1e-12
    return (rows[:, keep] - rows[:, keep].mean(axis=0)) / std[keep]


def nearest(rows: Array, count: int = NEAREST) -> Array:
    """Indices [n, count] of the nearest other rows, Euclidean on standardised columns."""
    squares = (rows * rows).sum(axis=1)
    distances = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
    np.fill_diagonal(distances, np.inf)
    return np.argpartition(distances, count, axis=1)[:, :count]


def foretold(rows: Array, target: Array, classes: bool) -> tuple[float, float, float, float] | None:
    """Agreement of labels with the nearest rows' labels; mean and spread of the same under shuffled labels; the best
    single column's z.
    """
    rows = standardised(rows)
    if len(rows) < 60 or rows.shape[1] == 0:
        return None
    near = nearest(rows)
    generator = np.random.default_rng(3)
    shuffled = [_agreement(near, generator.permutation(target), classes) for _ in range(PERMUTATIONS)]
    spread = max(float(np.std(shuffled)), 1e-6)
    return _agreement(near, target, classes), float(np.mean(shuffled)), spread, _best_column(rows, target, classes)


def _agreement(near: Array, target: Array, classes: bool) -> float:
    if classes:
        return float((target[near] == target[:, None]).mean())
    guess = target[near].mean(axis=1)
    if guess.std() < 1e-12 or target.std() < 1e-12:
        return 0.0
    return float(np.corrcoef(guess, target)[0, 1])


def _best_column(rows: Array, target: Array, classes: bool) -> float:
    ones = np.stack([target == label for label in np.unique(target)[:64]], axis=1) if classes else target[:, None]
    wanted = standardised(ones)
    if wanted.shape[1] == 0:
        return 0.0
    return float(np.abs(rows.T @ wanted).max() / len(rows) * np.sqrt(len(rows)))


def straight_lines(rows: Array, target: Array) -> tuple[int, float, int]:
    """The column on which the target lies on a straight line best: its index, the largest residual in target standard
    deviations, and how many columns have an exact line.
    """
    target = target.astype(np.float64)
    spread = target.std()
    columns = rows.astype(np.float64)
    centred = columns - columns.mean(axis=0)
    variance = (centred * centred).mean(axis=0)
    usable = variance > 1e-20
    if spread < 1e-12 or not usable.any():
        return -1, 1.0, 0
    slope = np.where(
        usable, (centred * (target - target.mean())[:, None]).mean(axis=0) / np.where(usable, variance, 1), 0
    )
    errors = np.abs(target[:, None] - target.mean() - centred * slope).max(axis=0) / spread
    best = int(errors.argmin())
    return best, float(errors[best]), int((errors < 1e-3).sum())


def same_order(rows: Array, target: Array) -> list[int]:
    """Columns whose values come in the order of the target's, or in the reverse one, on every row; not those that only count
    (their gaps are multiples of the smallest), nor such with many equal values.
    """
    columns = rows[np.argsort(target, kind="stable")].astype(np.float64)
    steps = np.diff(columns, axis=0)
    slack = 1e-6 * columns.std(axis=0)  # what single precision may swap
    in_order = (steps >= -slack).all(axis=0) | (steps <= slack).all(axis=0)
    return [int(column) for column in np.flatnonzero(in_order) if _measured(columns[:, column])]


def _measured(column: Array) -> bool:
    values = np.unique(column)
    if len(values) < max(20, 0.9 * len(column)):
        return False
    gaps = np.diff(values) / np.diff(values).min()
    return bool((np.abs(gaps - np.round(gaps)) > 0.05).any())


def one_to_one(column: Array, labels: Array) -> bool:
    """Each value of the column stands for one label and each label for one value."""
    pairs = np.unique(np.stack([column.astype(np.float64), labels.astype(np.float64)], axis=1), axis=0)
    return len(pairs) == len(np.unique(column)) == len(np.unique(labels))
