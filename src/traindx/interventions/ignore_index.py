"""Targets equal to ``index`` (a filler) are left out of the loss."""
from __future__ import annotations

from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import LossCall, Stage


class IgnoreIndex(Intervention):
    """For ``cross_entropy`` and ``nll_loss`` with class numbers."""

    NOTHING = Text("No class target of a loss holds this number, or it is ignored already.", "损失的类别目标里没有这个编号，或者它本来就不算。")

    def __init__(self, stage: Stage, index: int) -> None:
        super().__init__(stage)
        self.index = int(index)

    def on_loss_call(self, call: LossCall) -> None:
        if call.function not in ("cross_entropy", "nll_loss") or not isinstance(call.target, Tensor):
            return
        if call.target.is_floating_point() or call.arguments.get("ignore_index") == self.index:
            return
        self.touched += bool((call.target == self.index).any())
        call.arguments["ignore_index"], call.changed = self.index, True
