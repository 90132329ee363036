"""What probes saw: small facts, one dataclass a kind, one module an area. A probe emits them, a rule asks for them by type.

Modules here are discovered; to add a kind of observation, subclass :class:`Observation` in any of them.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar


@dataclass(frozen=True)
class Site:
    """A place in the user's program."""

    file: str
    line: int
    function: str = ""
    code: str = ""

    @property
    def short(self) -> str:
        return f"{self.file.rsplit('/', 1)[-1]}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Observation:
    """One fact. ``step`` is the optimizer step that was being computed (1 is the first).

    Where a fact is updated as the run goes on, ``key`` names it: the last of a key counts.
    """

    step: int = 0
    key: str = ""
    kinds: ClassVar[dict[str, type[Observation]]] = {}

    def __init_subclass__(cls) -> None:
        Observation.kinds[cls.__name__] = cls


T = TypeVar("T")


def changed(facts_so_far: T, **facts: Any) -> T:
    """``dataclasses.replace`` for what is counted at every step: it copies the fields, about six times faster."""
    other = object.__new__(type(facts_so_far))
    other.__dict__.update(facts_so_far.__dict__)
    other.__dict__.update(facts)
    return other


@dataclass(frozen=True, kw_only=True)
class ProbeFailed(Observation):
    """A probe met something that it could not handle and was switched off; ``areas`` are then not checked."""

    probe: str
    error: str


MAX_STEPS = "max-steps"


@dataclass(frozen=True, kw_only=True)
class Ended(Observation):
    """The program is over. ``how`` is ``finished``, ``raised``, ``exit`` or ``max-steps``."""

    how: str
    steps: int
    seconds: float
    error: str | None = None
    site: Site | None = None  # the user's line that was running when ``error`` was raised


@dataclass(frozen=True, kw_only=True)
class Compiled(Observation):
    """torch.compile is in use: what happens inside is not seen op by op."""

    site: Site | None = None
