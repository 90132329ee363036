"""Plain values as YAML: enough for a config.yaml that every YAML reader understands, with nothing to install."""
from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][\w./ \-]*")
_RESERVED = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n", "none", ""))


def dump(value: dict[str, Any]) -> str:
    """A mapping of strings, numbers, booleans, None, lists and mappings."""
    return "".join(line + "\n" for line in _lines(value, ""))


def _lines(value: dict[str, Any], indent: str) -> Iterator[str]:
    for key, item in value.items():
        name = f"{indent}{scalar(str(key))}:"
        if isinstance(item, dict) and item:
            yield name
            yield from _lines(item, indent + "  ")
        elif isinstance(item, (list, tuple)) and any(isinstance(part, dict) and part for part in item):
            yield name
            for part in item:
                yield from _item(part, indent + "  ")
        else:
            yield f"{name} {_flow(item)}"


def _item(part: Any, indent: str) -> Iterator[str]:
    if not isinstance(part, dict) or not part:
        yield f"{indent}- {_flow(part)}"
        return
    first, *rest = _lines(part, indent + "  ")
    yield f"{indent}- {first.strip()}"
    yield from rest


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k), ensure_ascii=False)}: {_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return scalar(value)


def scalar(value: Any) -> str:
    """A number stays one: YAML 1.1 needs the point in 1.0e-05 to see it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if not math.isfinite(value):
            return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    if isinstance(value, int):
        return str(value)
    text = str(value)
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED and not text.endswith(" "):
        return text
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\x7f").replace("\x85", "\\N").replace("\u2028", "\\L").replace("\u2029", "\\P")
