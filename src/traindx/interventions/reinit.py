"""Weights of layers drawn anew before the first training pass: ``scheme`` = ``he`` or ``default`` (the layer's own)."""
from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import RootCall, Stage

Scheme = Literal["he", "default"]
SCHEMES: tuple[Scheme, ...] = ("he", "default")
APART = 77_777  # from the program's own seed, whose numbers may have become its data
LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


class Reinit(Intervention):
    """``he``: normal with variance 2 / fan_in, biases 0; the last such layer keeps its own default. Trainable layers only,
    those that derive their weight left out. What the program draws later is what it would have drawn.
    """

    NOTHING = Text("No trainable linear or convolutional layer was found before the first pass.",
                   "第一次前向之前没有找到可训练的线性层或卷积层。")

    def __init__(self, stage: Stage, scheme: Scheme = "he") -> None:
        super().__init__(stage)
        if scheme not in SCHEMES:
            raise ValueError(f"scheme: one of {', '.join(SCHEMES)}")
        self.scheme = scheme
        self._done: set[int] = set()

    def on_root_call(self, call: RootCall) -> None:
        if self.stage.steps or not call.grad or not call.has_parameters or id(call.module) in self._done:
            return
        self._done.add(id(call.module))
        layers = [m for m in call.module.modules() if isinstance(m, LAYERS) and _own(m)]
        state, seed = torch.get_rng_state(), torch.initial_seed()
        torch.default_generator.manual_seed(seed % 2 ** 32 + APART)
        for number, layer in enumerate(layers):
            self._draw(layer, number == len(layers) - 1)
        torch.default_generator.set_state(state)
        self.touched += bool(layers)

    def _draw(self, layer: nn.Module, last: bool) -> None:
        if self.scheme == "default" or last:
            layer.reset_parameters()  # type: ignore[operator]
            return
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")  # type: ignore[arg-type]
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]


def _own(layer: nn.Module) -> bool:
    weight = layer._parameters.get("weight")
    return weight is not None and weight.requires_grad and not isinstance(weight, nn.UninitializedParameter)
