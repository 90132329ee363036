"""Random number generators of a process: all that a program may draw from, their states kept and put back."""
from __future__ import annotations

import gc
import random
import sys
import weakref
from typing import Any

import torch

_torch: weakref.WeakSet[torch.Generator] = weakref.WeakSet()
_others: list[Any] = []  # numpy's cannot be held weakly
KEPT = 256


def remember(generator: Any) -> None:
    """One that the program has just made: torch's cannot be found in memory later."""
    if isinstance(generator, torch.Generator):
        _torch.add(generator)
    elif len(_others) < KEPT:
        _others.append(generator)


def forget_all() -> None:
    _torch.clear()
    _others.clear()


def snapshot(search: bool = False) -> list[tuple[Any, Any]]:
    """``(where, state)`` of each; to be given to :func:`restore`. ``search``: also of those that nobody remembered (slow)."""
    if search:
        _others.extend([thing for thing in _in_memory() if all(thing is not other for other in _others)])
    own: list[tuple[Any, Any]] = [(generator, generator.get_state()) for generator in list(_torch)]
    return shared() + own + [(thing, _state(thing)) for thing in _others]


def shared() -> list[tuple[Any, Any]]:
    """The same of those that belong to the modules: ``random``, ``torch``, ``numpy.random``."""
    states: list[tuple[Any, Any]] = [(random, random.getstate()), (torch, torch.get_rng_state())]
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states.append((torch.cuda, torch.cuda.get_rng_state_all()))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states.append((numpy.random, numpy.random.get_state()))
    return states


def seed_shared(number: int) -> None:
    """Those of :func:`shared`, whatever a trial does to the seeds that the program sets."""
    random.setstate(type(random._inst)(number).getstate())  # type: ignore[attr-defined]
    torch.default_generator.manual_seed(number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.set_state(numpy.random.mtrand._rand.__class__(number % 2 ** 32).get_state())


class Rewind:
    """Called after each step: the first time it remembers, later it puts back. True when that made a difference."""

    def __init__(self) -> None:
        self._states: list[tuple[Any, Any]] | None = None

    def __call__(self) -> bool:
        if self._states is None:
            self._states = snapshot(search=True)
            return False
        drawn = bool(moved(self._states, snapshot()))
        restore(self._states)
        return drawn


def restore(states: list[tuple[Any, Any]]) -> None:
    """Back to that moment; generators made since then stay as they are."""
    for where, state in states:
        if where is random or isinstance(where, random.Random):
            where.setstate(state)
        elif where is torch:
            torch.set_rng_state(state)
        elif where is torch.cuda:
            torch.cuda.set_rng_state_all(state)
        elif where is not sys.modules.get("numpy.random") and hasattr(where, "bit_generator"):
            where.bit_generator.state = state
        else:
            where.set_state(state)


def moved(before: list[tuple[Any, Any]], after: list[tuple[Any, Any]]) -> set[str]:
    """Which have been drawn from between two snapshots: ``python``, ``torch``, ``torch.Generator``, ``numpy`` ..."""
    now = {id(where): state for where, state in after}
    return {_name(where) for where, state in before if id(where) in now and not _same(state, now[id(where)])}


def _in_memory() -> list[Any]:
    numpy = sys.modules.get("numpy")
    kinds: tuple[Any, ...] = (random.Random,)
    shared = [getattr(random, "_inst", None)]
    if numpy is not None:
        kinds = (*kinds, numpy.random.Generator, type(numpy.random.mtrand._rand))
        shared.append(numpy.random.mtrand._rand)
    # its type alone: asking an object could run the user's code
    return [thing for thing in gc.get_objects() if type(thing) in kinds and all(thing is not other for other in shared)]


def _state(thing: Any) -> Any:
    if isinstance(thing, random.Random):
        return thing.getstate()
    return thing.bit_generator.state if hasattr(thing, "bit_generator") else thing.get_state()


def _name(where: Any) -> str:
    if where is random or isinstance(where, random.Random):
        return "python"
    if where in (torch, torch.cuda):
        return "torch"
    return "torch.Generator" if isinstance(where, torch.Generator) else "numpy"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b))
    return bool(a == b) if not hasattr(a, "shape") else bool((a == b).all())
