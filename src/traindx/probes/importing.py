"""Waiting for a module that the program may import later: it is not imported for our sake."""
from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from types import ModuleType
from typing import Any


def when_imported(stack: ExitStack, name: str, act: Callable[[ModuleType], None]) -> None:
    """Calls ``act`` with the module: now where it is imported, else when it is, until the stack closes."""
    if name in sys.modules:
        act(sys.modules[name])
        return
    waiting = _AfterImport(name, act)
    sys.meta_path.insert(0, waiting)
    stack.callback(waiting.stop)


class _AfterImport(importlib.abc.MetaPathFinder):
    """Acts when the module has been imported; finds nothing itself."""

    def __init__(self, name: str, act: Callable[[ModuleType], None]) -> None:
        self.name = name
        self.act = act

    def stop(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        self.stop()
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            loader: Any = spec.loader
            original = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                original(module)
                self.act(module)
            loader.exec_module = exec_module
        return spec
