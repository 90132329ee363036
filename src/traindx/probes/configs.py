"""The program's settings: what argparse returned, dataclasses and OmegaConf containers in sight at the first step, constants."""
from __future__ import annotations

import argparse
import ast
import dataclasses
import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

from traindx.core.observed import Site
from traindx.core.observed.record import ConfigSeen
from traindx.core.secrets import masked_values
from traindx.probes import patching, sites
from traindx.probes.session import Probe, Session

CONFIGS = 16
ITEMS = 200  # of one dict or list
LONGEST = 500  # characters of one value
SOURCE = 1_000_000  # characters of a script that are still parsed


def install(session: Session) -> None:
    session.add(Configs)
    probe = next((probe for probe in session.probes if isinstance(probe, Configs)), None)
    if probe is None:
        return
    patching.replace(session.stack, argparse.ArgumentParser, "parse_known_args", lambda original: _observed(original, probe))


def _observed(original: Any, probe: Configs) -> Any:
    def parse_known_args(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if probe.session.watching:
            probe.session.guard(probe, probe.parsed, result, sites.here(2))
        return result
    return patching.dressed(parse_known_args, original)


class Configs(Probe):
    """Looks once, after the first step, at the user's frames and at the main script's source."""

    areas = ("record",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._looked = False
        self._said: list[tuple[str, dict[str, Any]]] = []

    def parsed(self, result: Any, site: Site | None) -> None:
        namespace = result[0] if isinstance(result, tuple) else result
        if site is not None and isinstance(namespace, argparse.Namespace) and vars(namespace):
            self.say("argparse", "args", vars(namespace), site)

    def on_tick(self, step: int) -> None:
        if self._looked:
            return
        self._looked = True
        self.constants()
        for name, value in in_sight():
            self.look_at(name, value)

    def at_end(self) -> None:
        if not self._looked:
            self.constants()

    def look_at(self, name: str, value: Any) -> None:
        kind = type(value)
        if isinstance(value, argparse.Namespace):
            self.say("argparse", name, vars(value))
        elif kind.__module__.split(".")[0] == "omegaconf":
            from omegaconf import OmegaConf  # type: ignore[import-not-found]  # it made this object, so it is there
            self.say("omegaconf", name, OmegaConf.to_container(value, resolve=False))
        elif dataclasses.is_dataclass(kind) and hasattr(value, "__dict__"):
            self.say("dataclass", name, vars(value))
        elif kind is SimpleNamespace:
            self.say("namespace", name, vars(value))

    def constants(self) -> None:
        file = getattr(sys.modules.get("__main__"), "__file__", None)
        if file and os.path.isfile(file):
            found = constants_of(Path(file).read_text(encoding="utf-8", errors="replace")[:SOURCE])
            if found:
                self.say("constants", Path(file).name, found)

    def say(self, kind: str, name: str, values: Any, site: Site | None = None) -> None:
        plain = masked_values(plainly(values))
        if not isinstance(plain, dict) or (kind, plain) in self._said or len(self._said) >= CONFIGS:
            return
        self._said.append((kind, plain))
        self.session.emit(ConfigSeen(step=self.session.step, key=f"config-{len(self._said)}", source=kind, name=name, values=plain, site=site))


def in_sight() -> Iterator[tuple[str, Any]]:
    """Names and values of the user's frames that are running now, outermost last; each object once.

    Up to Python 3.12 a function's ``f_locals`` is a copy that its frame keeps: emptied here, or the first step's tensors would
    live as long as the function. From 3.13 on it is a view.
    """
    frame: FrameType | None = sys._getframe(1)
    seen: set[int] = set()
    while frame is not None:
        if sites.is_user(frame.f_code.co_filename):
            values = frame.f_locals
            found = [(name, value) for name, value in values.items() if not name.startswith("__") and id(value) not in seen]
            if frame.f_code.co_flags & inspect.CO_OPTIMIZED and type(values) is dict:
                values.clear()
            seen.update(id(value) for _, value in found)
            yield from found
        frame = frame.f_back


def plainly(value: Any, depth: int = 4) -> Any:
    """JSON's own kinds; whatever else as its type's name. Asks no object of the user's anything."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (str, os.PathLike)):
        return str(value)[:LONGEST]
    if depth and isinstance(value, dict):
        return {str(key)[:LONGEST]: plainly(item, depth - 1) for key, item in list(value.items())[:ITEMS]}
    if depth and isinstance(value, (list, tuple)):
        return [plainly(item, depth - 1) for item in value[:ITEMS]]
    if depth and dataclasses.is_dataclass(value) and not isinstance(value, type) and hasattr(value, "__dict__"):
        return plainly(vars(value), depth - 1)
    return f"<{value.__qualname__ if isinstance(value, type) else type(value).__qualname__}>"


def constants_of(source: str) -> dict[str, Any]:
    """Literals that a module assigns to a name exactly once at its top level, or in a function ``main``."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    stored: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored[node.id] = stored.get(node.id, 0) + 1
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main")]
    return {name: value for body in bodies for name, value in _literals(body) if stored.get(name) == 1}


def _literals(body: list[ast.stmt]) -> Iterator[tuple[str, Any]]:
    for node in body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        pairs = [(targets[0], node.value)] if len(targets) == 1 else []
        if pairs and isinstance(targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(targets[0].elts, node.value.elts))
        for target, value in pairs:
            if isinstance(target, ast.Name) and not target.id.startswith("__"):
                try:
                    yield target.id, ast.literal_eval(value)
                except (ValueError, TypeError, SyntaxError):
                    continue  # computed
