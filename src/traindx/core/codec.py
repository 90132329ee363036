"""Dataclasses to JSON values and back, by their annotations. NaN and infinities travel as strings, for JSON has none."""
from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable
from typing import Any

_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_AS_THEY_ARE = frozenset((str, int, bool, type(None)))


def encode(value: Any) -> Any:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is tuple or kind is list:
        return [encode(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, (str, int)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: encode(item) for name, default in _defaults(type(value)) if (item := getattr(value, name)) != default}
    if isinstance(value, dict):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(item) for item in value]
    return str(value)


@functools.cache
def _defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    return tuple((f.name, f.default) for f in dataclasses.fields(kind))


def decode(kind: Any, value: Any) -> Any:
    """``value`` as ``kind``; unknown keys are passed over, so that records of a newer schema open."""
    return _decoder(kind)(value)


@functools.cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """What turns a JSON value into ``kind``. None stays None, but is no list and no dict.

    Made once for a kind, for records hold very many values.
    """
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _union(tuple(each for each in typing.get_args(kind) if each is not type(None)))
    if origin in (tuple, list):
        return _sequence(origin, typing.get_args(kind) or (Any,))
    if origin is dict:
        return _mapping(*typing.get_args(kind))
    if dataclasses.is_dataclass(kind):
        return _record(kind)
    return _float if kind is float else _same


def _same(value: Any) -> Any:
    return value


def _float(value: Any) -> float | None:
    if value is None:
        return None
    return _SPECIAL[value] if isinstance(value, str) else float(value)


def _union(kinds: tuple[Any, ...]) -> Callable[[Any], Any]:
    if len(kinds) == 1:
        each = _decoder(kinds[0])
        return each if each is _same else lambda value: None if value is None else each(value)
    if str in kinds or float not in kinds:
        return _same
    return lambda value: _SPECIAL[value] if isinstance(value, str) else value


def _sequence(origin: type, items: tuple[Any, ...]) -> Callable[[Any], Any]:
    """``tuple[X, ...]``, ``list[X]``, or a tuple of so many kinds."""
    if len(items) == 1 or (len(items) == 2 and items[1] is Ellipsis):
        each = _decoder(items[0])
        if each is _same:
            return origin
        return lambda value: origin([each(item) for item in value])
    places = [_decoder(item) for item in items]
    return lambda value: origin([places[i](item) for i, item in enumerate(value)])


def _mapping(of_key: Any, of_value: Any) -> Callable[[Any], Any]:
    item = _decoder(of_value)
    return lambda value: {of_key(key): item(each) for key, each in value.items()}


def _record(kind: Any) -> Callable[[Any], Any]:
    fields: dict[str, Callable[[Any], Any]] = {}

    def record(value: Any) -> Any:
        if value is None:
            return None
        if not fields:  # at first use only: a kind may hold others of itself
            hints = typing.get_type_hints(kind)
            fields.update({f.name: _decoder(hints[f.name]) for f in dataclasses.fields(kind) if f.init})
        return kind(**{key: fields[key](item) for key, item in value.items() if key in fields})
    return record
