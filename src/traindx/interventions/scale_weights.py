"""First weights times ``k``, before the first training pass: of the last layer, or of ``layer`` (its name in the model)."""
from __future__ import annotations

import torch
from torch import nn

from traindx.core.text import Text
from traindx.interventions.reinit import LAYERS
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import RootCall, Stage


class ScaleWeights(Intervention):
    """Weights and biases of that layer, in the first root module that has it."""

    NOTHING = Text("No such layer was found before the first pass.", "第一次前向之前没有找到这样的层。")

    def __init__(self, stage: Stage, k: float, layer: str | None = None) -> None:
        super().__init__(stage)
        self.k, self.layer = float(k), layer

    def on_root_call(self, call: RootCall) -> None:
        if self.touched or self.stage.steps or not call.grad or not call.has_parameters:
            return
        found = self._find(call.module)
        if found is not None:
            with torch.no_grad():
                for parameter in found.parameters():
                    parameter.mul_(self.k)
            self.touch()

    def _find(self, module: nn.Module) -> nn.Module | None:
        if self.layer is not None:
            return dict(module.named_modules()).get(self.layer)
        layers = [m for m in module.modules() if isinstance(m, LAYERS)]
        return layers[-1] if layers else None
