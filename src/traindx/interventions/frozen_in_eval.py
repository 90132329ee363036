"""Frozen parts in eval mode: what has no trainable parameter neither drops units nor moves its running statistics."""
from __future__ import annotations

from torch import nn

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import RootCall, Stage


class FrozenInEval(Intervention):
    """For the length of a root module's call in training: every part whose parameters are all frozen, and what lies in it."""

    NOTHING = Text("No frozen part was in train mode.", "没有冻结的部分处在训练模式。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._kept: list[nn.Module] = []

    def on_root_call(self, call: RootCall) -> None:
        self._put_back()  # of a call that raised
        if not call.has_parameters or not call.training:
            return
        for module in call.module.modules():
            parameters = list(module.parameters())
            if parameters and not any(p.requires_grad for p in parameters):
                self._freeze(module)

    def _freeze(self, part: nn.Module) -> None:
        for module in part.modules():
            if module.training:
                module.training = False
                self._kept.append(module)
                self.touch()

    def on_root_return(self, call: RootCall) -> None:
        self._put_back()

    def _put_back(self) -> None:
        for module in self._kept:
            module.training = True
        self._kept.clear()
