"""Forwards and losses run under bfloat16 autocast."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools.stage import LossCall, RootCall
from traindx.interventions.tools.switched import Switched
from traindx.probes.tensors import tensors_in


class AutocastBf16(Switched):
    """From a model's call until its backward begins, as ``with torch.autocast(...)`` around both would be."""

    NOTHING = Text("No model was called, or the program autocasts already.", "没有调用模型，或程序已经在用 autocast。")
    _open: Any = None

    def on_root_call(self, call: RootCall) -> None:
        device = _device(call)
        if self.on and call.grad and call.has_parameters and self._open is None and device is not None and not torch.is_autocast_enabled(device):
            self.touch()
            self._open = torch.autocast(device, torch.bfloat16)
            self._open.__enter__()

    def on_root_return(self, call: RootCall) -> None:
        self._close()

    def _close(self) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._open = None

    def on_loss_call(self, call: LossCall) -> None:
        """The loss of a half-precision output is taken in float32, as autocast does it for every loss of torch that needs it."""
        if self.on and isinstance(call.input, Tensor) and call.input.dtype == torch.bfloat16:
            call.input, call.changed = call.input.float(), True


def _device(call: RootCall) -> str | None:
    found = next((p for p in call.module.parameters()), None)
    tensor = found if found is not None else next(iter(tensors_in([call.args, call.kwargs], 1)), None)
    return tensor.device.type if tensor is not None else None
