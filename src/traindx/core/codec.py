"""Dataclasses to JSON values and back, by their annotations. NaN and infinities travel as strings, for JSON has none."""
from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from typing import Any

_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def encode(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (str, int, bool)):
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


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def decode(kind: Any, value: Any) -> Any:
    """``value`` as ``kind``; unknown keys are passed over, so that records of a newer schema open."""
    if value is None or kind is Any:
        return value
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(typing.get_args(kind), value)
    if origin in (tuple, list):
        item = (typing.get_args(kind) or (Any,))
        each = [decode(item[0] if (len(item) == 2 and item[1] is Ellipsis) or len(item) == 1 else item[i], v)
                for i, v in enumerate(value)]
        return tuple(each) if origin is tuple else each
    if origin is dict:
        of_key, of_value = typing.get_args(kind)
        return {of_key(key): decode(of_value, item) for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)  # type: ignore[arg-type]
        known = {f.name for f in dataclasses.fields(kind) if f.init}
        return kind(**{key: decode(hints[key], item) for key, item in value.items() if key in known})  # type: ignore[operator]
    if kind is float:
        return _SPECIAL[value] if isinstance(value, str) else float(value)
    return value


def _decode_union(kinds: tuple[Any, ...], value: Any) -> Any:
    kinds = tuple(kind for kind in kinds if kind is not type(None))
    if len(kinds) == 1:
        return decode(kinds[0], value)
    if isinstance(value, str) and str not in kinds and float in kinds:
        return _SPECIAL[value]
    return value
