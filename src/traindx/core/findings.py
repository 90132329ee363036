"""What is said about a recording."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from traindx.core.observed import Site
from traindx.core.text import Text, same

Level = Literal["error", "warning", "note"]
Confidence = Literal["certain", "likely", "suspected"]
ProofOutcome = Literal["proved", "refuted", "undecided"]
Origin = Literal["measured", "formula", "rule of thumb"]
LEVELS: tuple[Level, ...] = ("error", "warning", "note")
CONFIDENCES: tuple[Confidence, ...] = ("certain", "likely", "suspected")


@dataclass(frozen=True)
class Evidence:
    """One fact that speaks for a finding; ``expected`` says what a sound training shows there."""

    what: Text
    value: Any
    expected: Text | str = ""
    origin: Origin = "measured"
    unit: str | None = None
    step: int | None = None


@dataclass(frozen=True)
class Finding:
    """What a rule says. The judge adds the rule's name, level, title and experiment."""

    cause: Text
    fix: Text
    where: Site | None
    also: tuple[Site, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    first_step: int = 1
    confidence: Confidence = "certain"
    because: Text = same("")
    level: Level | None = None
    title: Text | None = None
    explains: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()  # the guilty ones, where several ranks were compared


@dataclass(frozen=True)
class Judged:
    """A finding with its rule's facts."""

    rule: str
    level: Level
    title: Text
    finding: Finding
    experiment: str | None = None
    explains: tuple[str, ...] = ()
    explained_by: str | None = None
    ranks: tuple[int, ...] = ()  # on which it holds; () where one process trains


@dataclass(frozen=True)
class Verdict:
    """One rule on one recording: found, clear, or not checked and why."""

    rule: str
    verdict: Literal["found", "clear", "not-checked"]
    why: Text = same("")


@dataclass(frozen=True)
class Proof:
    """What an experiment says of a finding. ``effect`` and ``spread`` are in the unit of its statistic; a curve is a list of
    ``(step, loss)``."""

    outcome: ProofOutcome
    experiment: str
    effect: float | None = None
    spread: float | None = None
    why: Text = same("")
    curves: dict[str, list[tuple[float, float]]] = field(default_factory=dict)


@dataclass(frozen=True)
class RankEnd:
    """How one rank came to its end. ``status`` is None where nobody was there to see it; ``seen``: it left a recording."""

    rank: int
    status: int | None = None
    steps: int = 0
    seconds: float | None = None
    stopped: str | None = None
    where: Site | None = None
    seen: bool = True


@dataclass
class Report:
    """Everything that is said about one recording, cause first."""

    findings: list[Judged] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    suppressed: list[Judged] = field(default_factory=list)
    signals: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    script: str = ""
    run: str | None = None
    status: int | None = None
    steps: int = 0
    seconds: float = 0.0
    stopped: str | None = None
    lost_lines: int = 0
    remarks: list[Text] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    proofs: dict[str, Proof] = field(default_factory=dict)  # by rule, where experiments were run
    refuted: list[Judged] = field(default_factory=list)  # withdrawn after an experiment
    ranks: tuple[RankEnd, ...] = ()  # where several ranks train together
