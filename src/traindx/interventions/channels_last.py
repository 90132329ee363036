"""Convolutions work on channels-last memory: weights, their optimizer's state and images are laid out so; values and shapes stay."""
from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd
from torch.optim import Optimizer

from traindx.core.text import Text
from traindx.interventions.tools import rows
from traindx.interventions.tools.stage import RootCall, Stage
from traindx.interventions.tools.switched import Switched


class ChannelsLast(Switched):
    """Of every root module with two-dimensional convolutions."""

    NOTHING = Text("No model with two-dimensional convolutions was called.", "没有用到二维卷积的模型。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._converted: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._moved: weakref.WeakSet[Optimizer] = weakref.WeakSet()

    @property
    def _layout(self) -> torch.memory_format:
        return torch.channels_last if self.on else torch.contiguous_format

    def on_root_call(self, call: RootCall) -> None:
        if self.on != (call.module in self._converted) and _convolves(call.module):
            for parameter in call.module.parameters():
                parameter.data = _laid_out(parameter.data, self._layout)
            (self._converted.add if self.on else self._converted.discard)(call.module)
        if self.on and call.module in self._converted:
            self.touch()
            call.args = tuple(rows.mapped(value, _image) for value in call.args)
            call.kwargs = {name: rows.mapped(value, _image) for name, value in call.kwargs.items()}

    def before_any_step(self, optimizer: Optimizer) -> None:
        """Its state lies as the weights do, or its kernels would walk both in different orders."""
        if self.on == (optimizer in self._moved):
            return
        (self._moved.add if self.on else self._moved.discard)(optimizer)
        for state in optimizer.state.values():
            for name, value in state.items():
                state[name] = _laid_out(value, self._layout)


def _convolves(module: nn.Module) -> bool:
    return any(isinstance(m, _ConvNd) and m.weight.dim() == 4 for m in module.modules())


def _laid_out(value: Any, layout: torch.memory_format) -> Any:
    return value.contiguous(memory_format=layout) if isinstance(value, Tensor) and value.dim() == 4 else value


def _image(tensor: Tensor) -> Tensor:
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.dim() == 4 and tensor.grad_fn is None else tensor
