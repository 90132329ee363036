"""The collected samples, read back."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from traindx.core.observed.samples import TRAIN, SplitSeen
from traindx.core.recording import Recording

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class Split:
    """One split with its arrays."""

    seen: SplitSeen
    arrays: dict[str, Array]

    @property
    def name(self) -> str:
        return self.seen.name

    @property
    def hashes(self) -> Array:
        return self.arrays["hashes"]

    @property
    def labels(self) -> Array:
        """One float each; NaN where none was seen."""
        return self.arrays["labels"]

    @property
    def features(self) -> Array:
        return self.arrays["features"]

    @property
    def is_train(self) -> bool:
        return self.name == TRAIN

    def row(self, place: int) -> str:
        """How a sample is named: by its place in the dataset where that is known, else in the pass."""
        index = int(self.arrays["indices"][place])
        return f"{self.name}[{index}]" if index >= 0 else f"{self.name}#{place}"

    def class_name(self, label: float) -> str:
        return name_of(self.seen.names, label)


def name_of(names: tuple[str, ...], label: Any) -> str:
    """The class' name where the dataset tells one; whole numbers without a point."""
    if isinstance(label, float) and not label.is_integer():
        return f"{label:.4g}"
    number = int(label)
    return f"{number} {names[number]}" if 0 <= number < len(names) and names[number] != str(number) else str(number)


def splits_of(recording: Recording, folder: Path) -> list[Split]:
    """The splits of the model that was trained on most samples, training first."""
    found = recording.of(SplitSeen)
    trained = [seen for seen in found if seen.name == TRAIN]
    if not found:
        return []
    model = max(trained or found, key=lambda seen: seen.samples).model
    chosen = sorted((seen for seen in found if seen.model == model), key=lambda seen: (seen.name != TRAIN, seen.number))
    splits = []
    for seen in chosen:
        with np.load(folder / seen.file, allow_pickle=False) as file:
            splits.append(Split(seen, {name: file[name] for name in file.files}))
    return splits
