"""Where the features of one split lie against another's."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx.samples.load import Split

FAR = 0.25  # standard deviations between two means from which on it is told
RATIO = 1.5  # of two standard deviations
SURE = 5.0  # standard errors


@dataclass(frozen=True)
class Shift:
    """One feature: means and standard deviations in training and in another split; ``distance`` in training standard deviations."""

    split: int
    feature: int
    means: tuple[float, float]
    scales: tuple[float, float]
    distance: float


def shifts(splits: list[Split], most: int = 12) -> list[Shift]:
    """Features whose location or scale differs by more than chance and by enough to matter, farthest first."""
    found: list[Shift] = []
    train = splits[0] if splits and splits[0].is_train else None
    for number, other in enumerate(splits[1:], 1):
        if train is None or "location" not in train.arrays or "location" not in other.arrays:
            continue
        a, s, b, t = (split.arrays[name].astype(float) for split in (train, other) for name in ("location", "scale"))
        if len(a) != len(b):
            continue
        floor = 1e-9 * max(1.0, float(np.abs(a).max()))
        error = np.sqrt(s * s / train.seen.samples + t * t / other.seen.samples) + floor
        distance = np.abs(a - b) / np.maximum(s, floor)
        ratio = np.maximum(s, floor) / np.maximum(t, floor)
        moved = (distance > FAR) & (np.abs(a - b) > SURE * error)
        few = min(train.seen.samples, other.seen.samples)
        spread = (np.maximum(ratio, 1 / ratio) > RATIO) & (np.abs(np.log(ratio)) > SURE / np.sqrt(2 * few))
        for feature in np.flatnonzero(moved | spread):
            found.append(Shift(number, int(feature), (float(a[feature]), float(b[feature])), (float(s[feature]), float(t[feature])),
                               float(distance[feature])))
    return sorted(found, key=lambda shift: -shift.distance)[:most]
