"""The models that the program calls are compiled by ``torch.compile``: each root module with parameters that is called with gradients."""
from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import nn

from traindx.core.text import Text
from traindx.interventions.tools.stage import RootCall, Stage
from traindx.interventions.tools.switched import Switched


class CompileModel(Switched):
    """The module's ``forward`` is the compiled one while the program is inside the call."""

    NOTHING = Text("No model was called that is not compiled already.", "没有调用模型，或模型已经编译过。")

    def __init__(self, stage: Stage, backend: str = "inductor") -> None:
        super().__init__(stage)
        self.backend = backend
        self._compiled: weakref.WeakKeyDictionary[nn.Module, Any] = weakref.WeakKeyDictionary()

    def on_root_call(self, call: RootCall) -> None:
        module = call.module
        if not self.on or not call.grad or not call.has_parameters or self.stage.compiled or "forward" in vars(module):
            return
        if module not in self._compiled:
            self._compiled[module] = _compile(module.forward, backend=self.backend)
        self.touch()
        module.__dict__["forward"] = self._compiled[module]

    def on_root_return(self, call: RootCall) -> None:
        if call.module in self._compiled:
            vars(call.module).pop("forward", None)


_compile = torch.compile  # ours is no sign that the program compiles
