"""Labels: how many of each class, and samples whose neighbours all say another class."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx.samples.compare import NEAR, normalised
from traindx.samples.load import Array, Split

NEIGHBOURS = 10
ROWS = 2500
AGREE = 0.8  # share of the neighbours that must say one other class
OWN = 0.1  # share that may say the sample's own
FORETOLD = 2.0  # how much better than the commonest class the neighbours must foretell labels, in odds
LEAST = 60
NOT_FORETOLD = "near samples do not foretell the label, so that they cannot judge it"
TAIL = 0.2  # a class with less than this share of the mean count is in the tail


@dataclass(frozen=True)
class Suspect:
    """A sample that may carry a wrong label: its place, its label, what its neighbours say, and their share."""

    place: int
    label: float
    said: float
    share: float


@dataclass(frozen=True)
class Suspects:
    """``way`` is ``cleanlab`` or ``neighbours``; ``why``: not told. ``accuracy`` is the neighbours' on all samples (out of sample)."""

    way: str
    found: tuple[Suspect, ...] = ()
    why: str = ""
    accuracy: float = 0.0
    looked_at: int = 0


def counts_of(split: Split) -> dict[float, int]:
    """Samples by class, commonest first."""
    if split.seen.label_kind != "classes":
        return {}
    values, counts = np.unique(split.labels[~np.isnan(split.labels)], return_counts=True)
    return dict(sorted(((float(v), int(n)) for v, n in zip(values, counts)), key=lambda item: -item[1]))


def tail_of(counts: dict[float, int]) -> list[float]:
    """Classes with far fewer samples than a class has on average."""
    mean = sum(counts.values()) / max(1, len(counts))
    return [label for label, count in counts.items() if count < TAIL * mean]


def suspects_of(split: Split) -> Suspects:
    """Candidates for wrong labels, by each sample's nearest others (leave one out), judged by cleanlab where it is installed."""
    count = min(len(split.features), len(split.labels), ROWS)
    labels = split.labels[:count]
    known = ~np.isnan(labels)
    if split.seen.label_kind != "classes":
        return Suspects("", why="the labels are no class ids")
    if known.sum() < LEAST or not split.features.size:
        return Suspects("", why=f"fewer than {LEAST} labelled samples")
    features, places = split.features[:count][known], np.flatnonzero(known)
    classes, ids = np.unique(labels[known], return_inverse=True)
    if len(classes) < 2:
        return Suspects("", why="one class only")
    votes = votes_of(features, ids, len(classes), split.seen.feature, split.hashes[:count][known])
    accuracy = float((votes.argmax(1) == ids).mean())
    common = float(np.bincount(ids).max() / len(ids))
    if not _foretells(accuracy, common):
        return Suspects("neighbours", (), NOT_FORETOLD, accuracy, len(ids))
    way, chosen = _by_cleanlab(votes, ids) or ("neighbours", _by_vote(votes, ids))
    found = tuple(Suspect(int(places[at]), float(classes[ids[at]]), float(classes[votes[at].argmax()]), float(votes[at].max()))
                  for at in chosen)
    return Suspects(way, found, accuracy=accuracy, looked_at=len(ids))


def _foretells(accuracy: float, common: float) -> bool:
    """Neighbours beat the commonest class by far, in odds."""
    return accuracy / max(1e-9, 1 - accuracy) > FORETOLD * common / max(1e-9, 1 - common)


def votes_of(features: Array, ids: Array, classes: int, kind: str, hashes: Array) -> Array:
    """Shares [n, classes] of the classes among each row's nearest others. Copies of the row have no vote."""
    rows = normalised(features) if kind in NEAR else _standardised(features)
    squares = (rows * rows).sum(1)
    distances = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
    distances[hashes[:, None] == hashes[None, :]] = np.inf
    neighbours = min(NEIGHBOURS, len(rows) - 1)
    near = np.argpartition(distances, neighbours - 1, axis=1)[:, :neighbours]
    votes = np.zeros((len(rows), classes))
    for column in near.T:
        votes[np.arange(len(rows)), ids[column]] += 1 / neighbours
    return votes


def _standardised(rows: Array) -> Array:
    rows = np.nan_to_num(rows.astype(np.float64))
    scale = rows.std(axis=0)
    return (rows - rows.mean(axis=0)) / np.where(scale > 1e-12, scale, 1)


def _by_vote(votes: Array, ids: Array) -> list[int]:
    """The naive way: nearly all neighbours say one other class."""
    own = votes[np.arange(len(ids)), ids]
    found = np.flatnonzero((votes.max(1) >= AGREE) & (votes.argmax(1) != ids) & (own <= OWN + 1e-9))
    return [int(at) for at in found[np.argsort(-votes[found].max(1), kind="stable")]]


def _by_cleanlab(votes: Array, ids: Array) -> tuple[str, list[int]] | None:
    try:
        from cleanlab.filter import find_label_issues
    except ImportError:
        return None
    smoothed = (votes * NEIGHBOURS + 0.5) / (NEIGHBOURS + 0.5 * votes.shape[1])
    found = find_label_issues(ids.astype(int), smoothed / smoothed.sum(1, keepdims=True), return_indices_ranked_by="self_confidence", n_jobs=1)
    return "cleanlab", [int(at) for at in found]
