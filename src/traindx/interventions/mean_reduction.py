"""Losses that sum over the samples take the mean instead."""
from __future__ import annotations

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import LossCall


class MeanReduction(Intervention):
    """A sum that the program takes by hand stays."""

    NOTHING = Text("No loss of torch sums over the samples.", "没有哪个 torch 损失对样本求和。")

    def on_loss_call(self, call: LossCall) -> None:
        if call.arguments.get("reduction") == "sum":
            call.arguments["reduction"], call.changed = "mean", True
            self.touch()
