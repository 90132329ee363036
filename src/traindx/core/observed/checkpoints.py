"""Weights taken, kept, saved and loaded."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True)
class Kept:
    """Values that the program got from ``state_dict()`` at ``step`` and that still share their memory with parameters in training.

    ``changed``: the values are no longer those of that step (None: not compared, on a device). ``trained``: an optimizer that
    holds these parameters has stepped since.
    """

    site: Site | None
    step: int
    tensors: int
    changed: bool | None
    trained: bool


@dataclass(frozen=True, kw_only=True)
class WeightsLoaded(Observation):
    """A ``load_state_dict`` of a module. ``given`` tensors came, of which ``matched`` have a name that the module knows, out of its ``own``.

    ``unexpected`` and ``missing`` are examples of names. ``from_file`` counts tensors that a ``torch.load`` returned, and
    ``itself`` those that are the module's own parameters, unchanged since they were taken.
    """

    model: int
    site: Site | None
    strict: bool
    given: int
    own: int
    matched: int
    unexpected: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    kept: Kept | None = None
    from_file: int = 0
    itself: int = 0


@dataclass(frozen=True, kw_only=True)
class StateLoaded(Observation):
    """A ``load_state_dict`` of an optimizer, scheduler or GradScaler (``what``)."""

    what: str
    id: int
    site: Site | None


@dataclass(frozen=True, kw_only=True)
class FileSaved(Observation):
    """A ``torch.save``: ``holds`` maps top-level keys to model, optimizer, scheduler, scaler or count (a whole number)."""

    path: str
    site: Site | None
    holds: dict[str, str]
    kept: Kept | None = None


@dataclass(frozen=True, kw_only=True)
class FileRead(Observation):
    """A ``torch.load``. ``reads`` are those of its keys that the program's source reads somewhere; ``stateful``: it holds an
    optimizer that has moments to lose."""

    path: str
    site: Site | None
    tensors: int
    holds: dict[str, str]
    reads: tuple[str, ...] = ()
    stateful: bool = False


@dataclass(frozen=True, kw_only=True)
class SecondName(Observation):
    """``name = other`` inside the branch that keeps a best score, where both are one and the same trained module, read again later."""

    site: Site | None
    name: str
    other: str
    used_at: Site | None
    model: int
