"""Regression targets brought to mean 0 and standard deviation 1, by the first training batch."""
from __future__ import annotations

from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import LossCall
from traindx.probes.tensors import plain

LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
FEWEST = 2


class StandardiseTarget(Intervention):
    """Column by column. The loss is then in other units: an mse of 1 is that of the best constant answer."""

    NOTHING = Text("No regression loss of torch got a target that varies.", "没有哪个 torch 回归损失收到有变化的目标。")
    _mean: Tensor | None = None
    _std: Tensor | None = None

    def on_loss_call(self, call: LossCall) -> None:
        target = call.target
        if call.function not in LOSSES or not plain(target) or target.requires_grad or not target.is_floating_point():
            return
        if self._mean is None:
            self._measure(target, call.grad)
        if self._mean is not None and self._std is not None:
            call.target, call.changed = (target - self._mean) / self._std, True
            self.touch()

    def _measure(self, target: Tensor, training: bool) -> None:
        if training and target.dim() and len(target) >= FEWEST:
            columns = target.detach()
            mean, std = columns.mean(0, keepdim=columns.dim() > 1), columns.std(0, keepdim=columns.dim() > 1)
            if bool((std > 0).any()):
                self._mean, self._std = mean, std.where(std > 0, 1.0)
                self.stage.send({"fact": ["standardise_target", {"mean": float(mean.mean()), "std": float(std.mean())}]})
