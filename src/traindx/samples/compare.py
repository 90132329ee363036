"""Samples against samples: copies, near copies, one sample with two labels, file names in common."""
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx.probes.rows import bits_of
from traindx.samples.load import Array, Split

ENOUGH_BITS = 40.0  # a row that says less may be met twice by chance
NEAR = {"image": 0.995, "text": 0.95, "wave": 0.995, "matrix": 0.995}  # cosine of normalised rows
NEAR_TABLE = 0.02  # root mean square distance of two rows, in standard deviations of a column
COLUMNS = 4  # a table of fewer columns has near rows by chance
MOST = 2000  # rows of a split that are compared with all others
TOO_MANY = 0.3  # share of near rows from which on the measure tells nothing


@dataclass(frozen=True)
class Pair:
    """Two samples: (split, place in its pass) each, and the cosine of their features (1 for copies)."""

    first: tuple[int, int]
    second: tuple[int, int]
    likeness: float = 1.0


@dataclass(frozen=True)
class Copies:
    """Copies of samples within one split or across two. ``why``: not told."""

    where: tuple[int, int]
    count: int
    pairs: tuple[Pair, ...]
    why: str = ""


def exact(splits: list[Split]) -> Iterator[Copies]:
    """Equal rows by content hash: within each split where its sampler gives a sample once, and across splits."""
    for i, split in enumerate(splits):
        if not told_apart(split):
            yield Copies((i, i), 0, (), "a row says too little: two samples may be alike by chance")
        elif not split.seen.unique:
            yield Copies((i, i), 0, (), "no sampler without replacement: a row met again may be the same sample")
        else:
            pairs = list(_equal(split.hashes, split.hashes, i, i))
            yield Copies((i, i), len({pair.second for pair in pairs}), tuple(pairs[:50]))
    for i, one in enumerate(splits):
        for j, other in enumerate(splits[i + 1:], i + 1):
            if told_apart(one) and told_apart(other) and one.seen.row_shape == other.seen.row_shape:
                pairs = list(_equal(one.hashes, other.hashes, i, j))
                yield Copies((i, j), len({pair.second for pair in pairs}), tuple(pairs[:50]))


def told_apart(split: Split) -> bool:
    return len(split.features) < 8 or bits_of(split.features[:256], split.features.shape[1]) >= ENOUGH_BITS


def _equal(first: Array, second: Array, i: int, j: int) -> Iterator[Pair]:
    """Every row of the second that is the copy of an earlier row (of the first such)."""
    known: dict[int, int] = {}
    if i != j:
        for place, value in enumerate(first.tolist()):
            known.setdefault(value, place)
    for place, value in enumerate(second.tolist()):
        if value in known:
            yield Pair((i, known[value]), (j, place))
        elif i == j:
            known[value] = place


def near(splits: list[Split]) -> Iterator[Copies]:
    """Rows that are nearly alike though not copies, on the rows whose features were kept."""
    for i, one in enumerate(splits):
        for j, other in enumerate(splits[i:], i):
            if one.seen.feature == other.seen.feature and one.features.shape[1:] == other.features.shape[1:] and one.features.size:
                yield _near(one, other, i, j)


def _near(one: Split, other: Split, i: int, j: int) -> Copies:
    kind = one.seen.feature
    if kind in ("table", "numbers") and one.features.shape[1] < COLUMNS:
        return Copies((i, j), 0, (), "too few columns: rows are near by chance")
    a, b = one.features[:MOST], other.features[:MOST]
    likeness = alike(a, b, kind)
    likeness[one.hashes[:len(a)][:, None] == other.hashes[:len(b)][None, :]] = -np.inf
    if i == j:
        likeness[np.tril_indices(len(a))] = -np.inf
    limit = NEAR.get(kind, 1 - NEAR_TABLE)
    found = np.argwhere(likeness >= limit)
    if len({int(place) for _, place in found}) > TOO_MANY * len(b):
        return Copies((i, j), 0, (), "the samples are too much alike for this measure")
    order = np.argsort([-likeness[x, y] for x, y in found])[:50]
    pairs = tuple(Pair((i, int(found[at][0])), (j, int(found[at][1])), float(likeness[tuple(found[at])])) for at in order)
    return Copies((i, j), len({int(place) for _, place in found}), pairs)


def alike(a: Array, b: Array, kind: str) -> Array:
    """Likeness [n, m] of rows: cosine after each row's own mean and scale are taken out; for tables 1 - root mean square
    distance in standard deviations of a column.
    """
    if kind in NEAR:
        return normalised(a) @ normalised(b).T
    scale = a.std(axis=0)
    keep = scale > 1e-12
    x, y = a[:, keep] / scale[keep], b[:, keep] / scale[keep]
    squares = (x * x).sum(1)[:, None] + (y * y).sum(1)[None, :] - 2 * x @ y.T
    return 1 - np.sqrt(np.maximum(squares, 0) / max(1, int(keep.sum())))


def normalised(rows: Array) -> Array:
    """Each row to mean 0 and length 1; rows without any contrast to 0, which is near nothing."""
    rows = np.nan_to_num(rows.astype(np.float64))
    rows = rows - rows.mean(axis=1, keepdims=True)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 1e-9)


def conflicts(splits: list[Split]) -> list[tuple[Pair, float, float]]:
    """Equal rows of one split with different class labels."""
    found = []
    for i, split in enumerate(splits):
        if split.seen.label_kind != "classes" or not told_apart(split):
            continue
        first: dict[int, int] = {}
        labels = split.labels
        for place, value in enumerate(split.hashes.tolist()[:len(labels)]):
            at = first.setdefault(value, place)
            if labels[at] != labels[place] and not np.isnan(labels[at]) and not np.isnan(labels[place]):
                found.append((Pair((i, at), (i, place)), float(labels[at]), float(labels[place])))
    return found


@dataclass(frozen=True)
class Group:
    """A beginning of file names that both splits have: ``share`` of the held-out files begin so."""

    first: int
    second: int
    share: float
    examples: tuple[tuple[str, str], ...]


def groups(splits: list[Split]) -> Iterator[Group]:
    """File names or ids that begin alike in two splits: ``patient12_003.png`` and ``patient12_007.png``."""
    for i, one in enumerate(splits):
        for j, other in enumerate(splits[i + 1:], i + 1):
            known: dict[str, str] = {}
            for name in one.seen.files:
                if stem := stem_of(name):
                    known.setdefault(stem, name)
            shared = [(known[stem], name) for name in other.seen.files if (stem := stem_of(name)) in known]
            if shared and _tells(one, other):
                yield Group(i, j, len(shared) / len(other.seen.files), tuple(shared[:5]))


def _tells(one: Split, other: Split) -> bool:
    """There are several groups, and not each file is its own: a common prefix of all files is no group."""
    names = [*one.seen.files, *other.seen.files]
    stems = {stem_of(name) for name in names} - {""}
    return 2 < len(stems) < 0.9 * len(names)


def stem_of(name: str) -> str:
    """What stands before the last number of a file's name; "" where that is no name of a group.

    >>> stem_of("scans/patient12_003.png"), stem_of("img0007.png"), stem_of("7.png")
    ('patient12', '', '')
    """
    base = os.path.splitext(re.split(r"[/\\\\]", name)[-1])[0]
    match = re.match(r"^(.*\w)[_\-. ]+[A-Za-z]*\d+$", base)
    return match[1] if match and re.search(r"\d", match[1]) else ""
