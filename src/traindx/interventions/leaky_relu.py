"""LeakyReLU in place of ReLU: units that are off still get a gradient."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Stage
from traindx.probes import patching


class LeakyRelu(Intervention):
    """Modules, ``F.relu`` and ``torch.relu``; ``clamp(min=0)`` and fused kernels stay."""

    IN_COMPILED = True
    NOTHING = Text("No ReLU was called.", "没有调用过 ReLU。")

    def __init__(self, stage: Stage, slope: float = 0.01) -> None:
        super().__init__(stage)
        self.slope = float(slope)

    def install(self) -> None:
        for owner in (F, torch, Tensor):
            for name in ("relu", "relu_"):
                patching.replace(self.stack, owner, name, self._leaky)
        patching.replace(self.stack, nn.ReLU, "forward", self._module)

    def _leaky(self, original: Any) -> Any:
        leaky, slope, touch, is_compiling = F.leaky_relu, self.slope, self.touch, torch.compiler.is_compiling

        def relu(input: Any, inplace: bool = False) -> Any:
            if not is_compiling():  # counting would have it compiled anew in each step
                touch()
            return leaky(input, slope)
        return patching.shadow(relu, original)  # type: ignore[arg-type]

    def _module(self, original: Any) -> Any:
        def forward(module: Any, input: Any) -> Any:
            if not torch.compiler.is_compiling():
                self.touch()
            return F.leaky_relu(input, self.slope)
        return patching.dressed(forward, original)
