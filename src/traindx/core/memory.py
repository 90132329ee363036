"""The words of a memory account: bytes, each with where it comes from."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from traindx.core.findings import Origin
from traindx.core.observed import Site
from traindx.core.text import EMPTY, Text

Phase = Literal["forward", "backward", "step"]
Source = Literal["formula", "traced", "small-runs"]
PHASES: tuple[Phase, ...] = ("forward", "backward", "step")
CATEGORIES = ("parameters", "gradients", "optimizer", "activations", "temporaries", "inputs")
USELESS = 0.02  # of the peak; what saves less is said not to help
GB = 1e9
GIB = 2**30


@dataclass(frozen=True)
class Line:
    """One line of the bill. ``formula`` is the arithmetic that gave ``bytes``; ``category`` one of CATEGORIES."""

    category: str
    what: Text
    bytes: float
    formula: str
    origin: Origin = "formula"


@dataclass(frozen=True)
class Fit:
    """``needed`` bytes against a device's ``capacity``. ``largest_batch`` is None where the batch is not known."""

    gpu: str
    capacity: int
    needed: float
    largest_batch: int | None = None

    @property
    def fits(self) -> bool:
        return self.needed <= self.capacity


@dataclass(frozen=True)
class Remedy:
    """What the peak would be with one thing changed. ``peak_bytes`` is None where ``why_not`` says what stood against it."""

    name: str
    what: Text
    cost: Text
    peak_bytes: float | None
    origin: Origin = "measured"
    why_not: Text = EMPTY

    def helps(self, peak: float) -> bool:
        return self.peak_bytes is not None and self.peak_bytes < (1 - USELESS) * peak


@dataclass(frozen=True)
class Share:
    """Bytes that a module, a line or an operation holds at the peak."""

    name: str
    bytes: float
    category: str = ""
    site: Site | None = None


@dataclass
class Account:
    """What ``traindx memory`` says."""

    source: Source
    peak_bytes: float
    phase: Phase | None = None
    op: str = ""
    where: Site | None = None
    categories: dict[str, float] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    by_phase: dict[str, float] = field(default_factory=dict)
    modules: list[Share] = field(default_factory=list)
    places: list[Share] = field(default_factory=list)
    timeline: list[tuple[float, str, dict[str, float]]] = field(default_factory=list)  # live bytes, phase, by category
    fits: list[Fit] = field(default_factory=list)
    remedies: list[Remedy] = field(default_factory=list)
    remarks: list[Text] = field(default_factory=list)
    not_modelled: list[Text] = field(default_factory=list)
    measured_peak_bytes: float | None = None
    gap: list[Line] = field(default_factory=list)
    batch: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    subject: Text = EMPTY
