"""Which class a model guesses for which, and how datasets number their classes."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True)
class Guess:
    """What a model says most often of one class: ``guess``, in ``share`` of ``count`` samples."""

    label: int
    guess: int
    count: int
    share: float


@dataclass(frozen=True, kw_only=True)
class Guesses(Observation):
    """The latest evaluation pass at one place (``group`` "eval"), or the latest detailed training steps ("train").

    ``right`` of ``total`` samples were guessed right. ``key`` is ``guesses-<group>-<site>``. ``numbered_at`` are lines that number
    classes by an order that nobody fixed (a set, a listing), then others that number names.
    """

    group: str
    site: Site | None
    classes: int
    right: int
    total: int
    guesses: tuple[Guess, ...]
    loader_site: Site | None = None
    numbered_at: tuple[Site, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClassNumbers(Observation):
    """An attribute of a loader's dataset that numbers names from 0 on. ``key`` is ``numbers-<loader>-<attribute>``."""

    loader: int
    loader_site: Site | None
    dataset_class: str
    attribute: str
    names: tuple[str, ...]
    training: bool
    set_at: Site | None = None
