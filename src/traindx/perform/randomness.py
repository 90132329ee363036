"""The seeds of a trial. Every seed that the program sets is moved by the same offset; what it does not seed starts from a
fixed one, so that two trials differ in nothing but what was changed.
"""
from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch

from traindx.interventions.tools import generators
from traindx.probes import patching, sites

UNSEEDED = 20_240  # where the program sets no seed
LIMIT = 2 ** 32
Fixed = Callable[[], int]


def install(stack: ExitStack, offset: int) -> Reseeded:
    """Seeds all generators of the process, and patches the functions that seed."""
    seeds = Reseeded(offset)
    base = UNSEEDED + offset
    generators.forget_all()
    stack.callback(generators.forget_all)
    random.seed(base)
    torch.manual_seed(base)
    _patch_python(stack, seeds)
    _patch_torch(stack, seeds)
    try:
        import numpy
    except ImportError:
        return seeds
    numpy.random.seed(base)
    _patch_numpy(stack, seeds, numpy.random)
    return seeds


class Reseeded:
    """Counts which seeds the program set: ``where`` holds the names of the functions."""

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.where: set[str] = set()
        self._depth = 0
        self._unseeded = itertools.count(UNSEEDED + offset)

    def moved(self, seed: Any, limit: int = LIMIT) -> Any:
        """The seed plus the offset; what is no number (a SeedSequence, a generator) stays."""
        if isinstance(seed, bool) or not hasattr(seed, "__index__"):
            return seed
        return (int(seed) + self.offset) % limit if self.offset else seed

    def unseeded(self) -> int:
        return next(self._unseeded)

    def observed(self, original: Any, name: str, limit: int = LIMIT, fills: bool = False) -> Any:
        """A seeding function that takes the seed first. ``fills``: without one it would ask the operating system."""
        def seed(*args: Any, **kwargs: Any) -> Any:
            if self._depth:  # seeding functions call each other: the offset is added once
                return original(*args, **kwargs)
            self.where.add(name)
            self._depth += 1
            try:
                return original(*self._arguments(args, limit, fills, not kwargs), **self._named(kwargs, limit))
            finally:
                self._depth -= 1
        return patching.dressed(seed, original)

    def _arguments(self, args: tuple[Any, ...], limit: int, fills: bool, alone: bool) -> tuple[Any, ...]:
        if fills and alone and (not args or args[0] is None):
            return (self.unseeded(), *args[1:])
        return (self.moved(args[0], limit), *args[1:]) if args else args

    def _named(self, kwargs: dict[str, Any], limit: int) -> dict[str, Any]:
        return {key: self.moved(value, limit) if key in ("seed", "a", "x") else value for key, value in kwargs.items()}


def _patch_python(stack: ExitStack, seeds: Reseeded) -> None:
    patching.replace(stack, random, "seed", lambda original: seeds.observed(original, "random.seed", fills=True))
    original = random.Random

    class Random(original):  # type: ignore[valid-type,misc]
        def __init__(self, x: Any = None) -> None:
            super().__init__(seeds.unseeded() if x is None else seeds.moved(x))
            generators.remember(self)

    Random.__module__, Random.__qualname__ = original.__module__, original.__qualname__
    patching.replace(stack, random, "Random", lambda _: Random)


def _patch_torch(stack: ExitStack, seeds: Reseeded) -> None:
    def seed_of(original: Any) -> Any:
        def seed() -> int:
            value = seeds.unseeded()
            with_offset, seeds._depth = seeds._depth, 1
            try:
                torch.manual_seed(value)
            finally:
                seeds._depth = with_offset
            return value
        return patching.dressed(seed, original)
    for owner in (torch, sys.modules["torch.random"]):
        patching.replace(stack, owner, "manual_seed", lambda original: seeds.observed(original, "torch.manual_seed", 2 ** 63))
        patching.replace(stack, owner, "seed", seed_of)
    for owner in (torch.cuda, sys.modules["torch.cuda.random"]):
        for name in ("manual_seed", "manual_seed_all"):
            patching.replace(stack, owner, name, lambda original: seeds.observed(original, "torch.cuda.manual_seed", 2 ** 63))
    _patch_generator(stack, seeds)


def _patch_generator(stack: ExitStack, seeds: Reseeded) -> None:
    """The type itself cannot be changed: a kind of it takes its place."""
    original = torch.Generator

    class Generator(original):  # type: ignore[valid-type,misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            generators.remember(self)

        def manual_seed(self, seed: int) -> Any:
            seeds.where.add("torch.Generator")
            super().manual_seed(seeds.moved(seed, 2 ** 63))
            return self

        def seed(self) -> int:
            value = seeds.unseeded()
            super().manual_seed(value)
            return value

    Generator.__module__, Generator.__qualname__ = original.__module__, original.__qualname__
    patching.replace(stack, torch, "Generator", lambda _: Generator)


def _patch_numpy(stack: ExitStack, seeds: Reseeded, owner: Any) -> None:
    patching.replace(stack, owner, "seed", lambda original: seeds.observed(original, "numpy.random.seed", fills=True))
    patching.replace(stack, owner, "default_rng", lambda original: _remembered(
        seeds.observed(original, "numpy.random.default_rng", fills=True)))
    original = owner.RandomState

    class Kind(type):
        def __instancecheck__(cls, thing: Any) -> bool:
            return isinstance(thing, original)  # numpy's own, made before

    class RandomState(original, metaclass=Kind):  # type: ignore[valid-type,misc]
        def __init__(self, seed: Any = None) -> None:
            super().__init__(seeds.unseeded() if seed is None else seeds.moved(seed) if _asked_by_user() else seed)
            generators.remember(self)

    RandomState.__module__, RandomState.__qualname__ = original.__module__, original.__qualname__
    patching.replace(stack, owner, "RandomState", lambda _: RandomState)


def _remembered(make: Any) -> Any:
    def made(*args: Any, **kwargs: Any) -> Any:
        generator = make(*args, **kwargs)
        generators.remember(generator)
        return generator
    return patching.dressed(made, make)


def _asked_by_user() -> bool:
    """Not by scikit-learn, whose ``random_state`` often decides a split: that is not to move."""
    return sites.is_user(sys._getframe(2).f_code.co_filename)
