"""Evaluation passes: what was computed batch by batch, and the numbers that the program then said."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True)
class Quantity:
    """One scalar per batch of a pass, made by one line: ``what`` is loss, read (``item()``), sum or mean.

    ``mean`` is over batches, ``weighted`` over samples (each batch by its size). ``counting``: every value is a whole number of
    samples, or that number over the batch's size, as a share of right answers is.
    """

    what: str
    site: Site | None
    first: float
    last: float
    mean: float
    weighted: float
    total: float
    counting: bool


@dataclass(frozen=True)
class Pass:
    """Consecutive evaluation forwards from one line over one loader iteration. ``batch`` is the first batch's size.

    ``loop``: the sizes are those of one set cut into batches; without a loader, two forwards may be two whole sets.
    """

    site: Site | None
    batches: int
    samples: int
    batch: int
    last_batch: int
    quantities: tuple[Quantity, ...]
    loop: bool = True


@dataclass(frozen=True)
class Said:
    """A number with a decimal point in a line that the program wrote (the ``slot``-th of it), or gave to ReduceLROnPlateau."""

    site: Site | None
    slot: int
    value: float
    decimals: int


@dataclass(frozen=True, kw_only=True)
class Evaluation(Observation):
    """The passes between two stretches of training, and what was said after them before training went on."""

    passes: tuple[Pass, ...]
    said: tuple[Said, ...]
