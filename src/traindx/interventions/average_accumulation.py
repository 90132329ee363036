"""Accumulated gradients averaged: divided by the number of backwards since the last step, just before it."""
from __future__ import annotations

from torch.optim import Optimizer

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Backward


class AverageAccumulation(Intervention):
    """After any clipping of the program's own."""

    NOTHING = Text("No step had more than one backward.", "没有哪一步做过一次以上的反向传播。")

    _count = 0  # backwards since gradients were last used

    def after_backward(self, run: Backward) -> None:
        self._count += run.fills_grad

    def before_update(self, optimizer: Optimizer) -> None:
        count, self._count = self._count, 0
        if count < 2:
            return
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        for gradient in gradients:
            gradient.detach().div_(count)
        self.touched += bool(gradients)
