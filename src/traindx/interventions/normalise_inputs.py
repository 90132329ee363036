"""Inputs of the model brought to mean 0 and standard deviation 1, channel by channel, by the first training batch."""
from __future__ import annotations

import torch
from torch import Tensor, nn

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import RootCall, Stage
from traindx.probes.tensors import plain

FEWEST = 8  # rows, to measure by
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


class NormaliseInputs(Intervention):
    """The first float tensor that a root module is called with, in training and in validation alike."""

    NOTHING = Text("No model was called with a batch of at least 8 rows of real numbers that vary.",
                   "没有模型以至少 8 行、有变化的实数作为输入。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._known: dict[int, tuple[Tensor, Tensor]] = {}

    def on_root_call(self, call: RootCall) -> None:
        if not call.has_parameters or not call.args or not _is_data(call.args[0]) or self.stage.outputs.get(call.args[0]):
            return
        value, key = call.args[0], id(call.module)
        if key not in self._known and call.grad and len(value) >= FEWEST:
            self._known[key] = _measured(value.detach().float(), call.module)
        if key in self._known:
            mean, std = self._known[key]
            call.args = (((value - mean) / std).to(value.dtype), *call.args[1:])
            self.touch()


def _is_data(value: object) -> bool:
    return plain(value) and isinstance(value, Tensor) and value.is_floating_point() and value.dim() > 1 and not value.requires_grad


def _measured(value: Tensor, module: nn.Module) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation over all dimensions but the channels'; what does not vary is left in its scale."""
    first = next((m for m in module.modules() if isinstance(m, (*CONVOLUTIONS, nn.Linear, nn.RNNBase))), None)
    channels = 1 if isinstance(first, CONVOLUTIONS) or value.dim() > 3 else value.dim() - 1
    over = [d for d in range(value.dim()) if d != channels]
    mean, std = value.mean(over, keepdim=True), value.std(over, keepdim=True)
    return mean, torch.where(std > 1e-12 * mean.abs().clamp_min(1e-12), std, torch.ones_like(std))

