"""What an exam says: one result per step of the tree, one proof per finding."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from traindx.core.findings import Evidence, Judged, Proof
from traindx.core.text import EMPTY, Text

Points = list[tuple[float, float]]
StepVerdict = Literal["passed", "failed", "not-checked"]
Shape = Literal["fits", "goes-up", "explodes", "oscillates", "flat"]


@dataclass(frozen=True)
class Proved:
    """A finding with its proof; ``proof`` is None where the rule has no experiment."""

    judged: Judged
    proof: Proof | None = None


@dataclass
class StepResult:
    """One page of the exam. ``next`` is what to do now; a curve is a list of ``(x, y)``."""

    step: int
    verdict: StepVerdict
    why: Text
    shape: Shape | None = None
    next: Text = EMPTY
    findings: list[Proved] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    curves: dict[str, Points] = field(default_factory=dict)
    log_x: bool = False
    not_restored: tuple[str, ...] = ()  # of a resume: model, optimizer, scheduler, scaler, rng, sampler, counter


@dataclass(frozen=True)
class RateRange:
    """A learning-rate sweep: an interval or a refusal with its reason."""

    interval: tuple[float, float] | None
    refused: Text | None
    infeasible: float  # share of the rates tried
    diverges_at: float | None
    best: float | None = None
    steepest: float | None = None
    used: float | None = None


@dataclass(frozen=True)
class SeedSpread:
    """Final losses over seeds: ``spread`` is their standard deviation; a gain below ``noise`` is inside it."""

    final: list[float]
    spread: float
    noise: float


@dataclass(frozen=True)
class Sharpness:
    """Largest eigenvalue of the loss's Hessian on the pinned batch, and 2 / value: the step limit of plain descent."""

    value: float
    limit: float


@dataclass
class ExamReport:
    """Everything that one exam found out."""

    script: str
    repeatable: bool | None = None
    pinned_by: str | None = None
    sandbox: str = ""
    steps: list[StepResult] = field(default_factory=list)
    rate: RateRange | None = None
    seeds: SeedSpread | None = None
    sharpness: Sharpness | None = None
    refuted: list[Proved] = field(default_factory=list)
    remarks: list[Text] = field(default_factory=list)
    trials: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    unfinished: bool = False  # for want of time
    impossible: bool = False  # the program cannot be examined at all: ``remarks`` say why
