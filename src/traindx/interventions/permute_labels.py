"""Targets that have nothing to do with their inputs: ``way`` = ``fixed`` (one permutation of the rows) or ``random`` (a new one
in each call).
"""
from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import LossCall, Stage
from traindx.probes.tensors import plain

Way = Literal["fixed", "random"]
WAYS: tuple[Way, ...] = ("fixed", "random")


class PermuteLabels(Intervention):
    """In training only. On a pinned batch, ``fixed`` asks whether the model can learn by heart; on others it is as
    good as ``random``.
    """

    NOTHING = Text("No loss of torch got a target of several rows.", "没有哪个 torch 损失收到多行的目标。")

    def __init__(self, stage: Stage, way: Way = "fixed", seed: int = 0) -> None:
        super().__init__(stage)
        if way not in WAYS:
            raise ValueError(f"way: one of {', '.join(WAYS)}")
        self.way, self.seed = way, int(seed)
        self._generator = torch.Generator().manual_seed(self.seed)

    def on_loss_call(self, call: LossCall) -> None:
        target = call.target
        if not call.grad or not plain(target) or target.requires_grad or not target.dim() or len(target) < 2:
            return
        call.target, call.changed = target[self._order(target)], True
        self.touch()

    def _order(self, target: Tensor) -> Tensor:
        if self.way == "fixed":
            self._generator.manual_seed(self.seed)
        return torch.randperm(len(target), generator=self._generator).to(target.device)
