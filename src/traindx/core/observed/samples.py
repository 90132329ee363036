"""What ``traindx data`` collected: where the arrays lie and what they are."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from traindx.core.observed import Observation, Site

TRAIN, HELD_OUT = "train", "validation"


@dataclass(frozen=True)
class Shown:
    """A sample that was kept whole. ``parts`` are its inputs (arrays named ``<split>-<n>-<part>``), ``text`` its decoded tokens."""

    index: int
    row: int
    batch: int
    label: Any = None
    text: str | None = None
    parts: tuple[str, ...] = ()
    target: str | None = None
    hidden: str = ""


@dataclass(frozen=True, kw_only=True)
class SplitSeen(Observation):
    """The samples that one model was given in training, or at one place of evaluation. ``key`` is ``split-<name>``.

    Arrays in ``file``: ``hashes``, ``labels`` and ``indices`` [n] (in the dataset; -1: not known) of the first pass,
    ``features`` [m, d] of its first rows, ``location`` and ``scale`` by feature, and the samples shown.
    ``label_kind`` is ``classes``, ``values``, ``other`` or ``none``. ``whole_pass``: the pass was seen to its end.
    ``unique``: the sampler gives a sample at most once a pass, so that equal rows are two samples. ``notes``: inputs
    that were not looked at, and why.
    """

    name: str
    number: int
    model: int
    class_name: str
    site: Site | None
    samples: int
    batches: int
    row_shape: tuple[int, ...]
    dtype: str
    feature: str
    label_kind: str
    file: str
    unique: bool
    whole_pass: bool = False
    loader_site: Site | None = None
    dataset: str = ""
    shown: tuple[Shown, ...] = ()
    notes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    files: tuple[str, ...] = field(default_factory=tuple)
    tokenizer: str = ""
