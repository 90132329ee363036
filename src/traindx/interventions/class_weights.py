"""Other class weights in the loss: ``to`` = ``none``, ``inverted`` (1 / w) or ``inverse-frequency`` (of the targets so far)."""
from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import LossCall, Stage

To = Literal["none", "inverted", "inverse-frequency"]
CHOICES: tuple[To, ...] = ("none", "inverted", "inverse-frequency")


class ClassWeights(Intervention):
    """For ``cross_entropy`` and ``nll_loss`` with class numbers. New weights have mean 1, so that the rate stays fitting."""

    NOTHING = Text("No loss of torch takes class weights here.", "这里没有用到带类别权重的 torch 损失。")

    def __init__(self, stage: Stage, to: To) -> None:
        super().__init__(stage)
        if to not in CHOICES:
            raise ValueError(f"to: one of {', '.join(CHOICES)}")
        self.to = to
        self._counts: Tensor | None = None

    def on_loss_call(self, call: LossCall) -> None:
        if call.function not in ("cross_entropy", "nll_loss") or not isinstance(call.target, Tensor) or call.target.is_floating_point():
            return
        weight = call.arguments.get("weight")
        if self.to == "inverse-frequency":
            call.arguments["weight"] = self._by_frequency(call)
        elif weight is None:
            return
        else:
            call.arguments["weight"] = None if self.to == "none" else _with_mean_one(1 / weight.detach().clamp_min(1e-12))
        call.changed = True
        self.touch()

    def _by_frequency(self, call: LossCall) -> Tensor:
        classes = call.input.shape[1 if call.input.dim() > 1 else 0]
        target = call.target.detach().reshape(-1)
        counts = torch.bincount(target[(target >= 0) & (target < classes)], minlength=classes).to(call.input.dtype)
        if call.grad:
            self._counts = counts if self._counts is None else self._counts + counts
        known = counts if self._counts is None else self._counts
        return _with_mean_one(1 / known.clamp_min(1))


def _with_mean_one(weight: Tensor) -> Tensor:
    return weight / weight.mean()
