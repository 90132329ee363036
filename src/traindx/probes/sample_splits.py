"""What is gathered of one split: arrays of its rows, the samples that are shown."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from traindx.core.observed import Site
from traindx.probes.rows import Array


@dataclass
class Waiting:
    """One forward whose labels are not known yet; arrays are copies."""

    split: Split
    first: int
    count: int
    shown: list[Kept]
    targets: list[Tensor]
    labels: Array | None = None


@dataclass
class Kept:
    index: int
    row: int
    batch: int
    parts: list[Array]
    label: Any = None
    target: Array | None = None
    text: str | None = None
    hidden: str = ""


@dataclass(eq=False)
class Split:
    """What is gathered of one split."""

    number: int
    model: int
    class_name: str
    site: Site | None
    training: bool
    trained: bool = False  # a backward followed
    loader: int = 0
    loader_site: Site | None = None
    dataset: Any = ""
    unique: bool = False
    row_shape: tuple[int, ...] = ()
    dtype: str = ""
    feature: str = ""
    seen: int = 0
    batches: int = 0
    ended: bool = False
    iteration: int = 0
    hashes: list[Array] = field(default_factory=list)
    indices: list[Array] = field(default_factory=list)
    labels: list[Array] = field(default_factory=list)
    features: list[Array] = field(default_factory=list)
    featured: int = 0
    count: float = 0.0
    total: Array | None = None
    squares: Array | None = None
    kept: list[Kept] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)
    files: tuple[str, ...] = ()
    label_kind: str = "none"
