"""How tensors are laid out: which dimension holds the samples, which the time, and whether modules read them so."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True)
class Place:
    """A module of a root: activation, recurrent or attention. ``batch_first`` is None where it has none such."""

    path: str
    class_name: str
    made_at: Site | None
    batch_first: bool | None = None


@dataclass(frozen=True, kw_only=True)
class ModulePlaces(Observation):
    """Where a root's activations, recurrent and attention modules were made. ``key`` is ``places-<model>``."""

    model: int
    places: tuple[Place, ...]
