"""Which module is running, what it is called and where it was made: for naming the culprit of a measurement."""
from __future__ import annotations

import inspect
import weakref
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn
from torch.nn.modules.loss import _Loss

from traindx.core.codec import encode
from traindx.core.observed import Site
from traindx.probes import modules, patching, sites


class Running:
    """Patches of ``nn.Module`` for the time of a stack. ``modules`` are those whose forward is running, outermost first."""

    def __init__(self, stack: ExitStack) -> None:
        self.modules: list[nn.Module] = []
        self._paths: weakref.WeakKeyDictionary[nn.Module, dict[int, str]] = weakref.WeakKeyDictionary()
        patching.replace(stack, nn.Module, "__init__", self._noting_init)
        patching.replace(stack, nn.Module, "__call__", self._noting_call)

    def _noting_init(self, original: Any) -> Any:
        def __init__(module: nn.Module, *args: Any, **kwargs: Any) -> None:
            try:
                modules.note_made(module)  # where the probes look, too
            except Exception:
                pass  # a module that cannot be hashed, or not yet: its place stays unknown
            original(module, *args, **kwargs)
        return patching.dressed(__init__, original)

    def _noting_call(self, original: Any) -> Any:
        running, is_compiling = self.modules, torch.compiler.is_compiling

        def __call__(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if is_compiling() or isinstance(module, _Loss):
                return original(module, *args, **kwargs)
            running.append(module)
            try:
                return original(module, *args, **kwargs)
            finally:
                running.pop()
        return __call__

    def path(self) -> str:
        """The dotted name of the innermost running module below the outermost; "" for the outermost itself or none."""
        return self.path_of(self.modules[-1]) if self.modules else ""

    def path_of(self, module: nn.Module, root: nn.Module | None = None) -> str:
        root = root if root is not None else self.modules[0]
        if type(root).__hash__ is None:
            return f"<{type(module).__name__}>"
        known = self._paths.get(root)
        if known is None or id(module) not in known:
            known = self._paths[root] = {id(inner): path for path, inner in root.named_modules()}
        return known.get(id(module), f"<{type(module).__name__}>")

    def innermost(self) -> dict[str, Any]:
        """The innermost running module for a report: ``module`` (dotted), ``type``, ``made_at``, ``forward_at``."""
        return self.told(self.modules[-1], self.modules[0]) if self.modules else dict.fromkeys(("module", "type", "made_at", "forward_at"))

    def told(self, module: nn.Module, root: nn.Module) -> dict[str, Any]:
        return {"module": self.path_of(module, root), "type": type(module).__name__,
                "made_at": encode(modules.made_at(module)), "forward_at": encode(forward_site(module))}


def forward_site(module: nn.Module) -> Site | None:
    """Where the user wrote the forward of this class; None for classes of libraries."""
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)
    if code is None or not sites.is_user(code.co_filename):
        return None
    return sites.at(code.co_filename, code.co_firstlineno, code.co_name)
