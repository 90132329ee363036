"""Small numbers for objects."""
from __future__ import annotations

import weakref
from typing import Any


class Ids:
    """Small numbers for objects, given once and never reused; keeps nothing alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._next = 1

    def of(self, thing: Any) -> int:
        entry = self._known.get(id(thing))
        if entry is not None and entry[0]() is thing:
            return entry[1]
        number, self._next = self._next, self._next + 1
        key = id(thing)
        self._known[key] = (weakref.ref(thing, lambda ref, key=key: self._forget(key, ref)), number)  # type: ignore[misc]
        return number

    def known(self, thing: Any) -> bool:
        entry = self._known.get(id(thing))
        return entry is not None and entry[0]() is thing

    def _forget(self, key: int, ref: weakref.ref[Any]) -> None:
        entry = self._known.get(key)
        if entry is not None and entry[0] is ref:
            del self._known[key]
