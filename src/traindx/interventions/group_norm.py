"""GroupNorm in place of BatchNorm, with the same weights: no sample depends on the others of its batch."""
from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Stage
from traindx.probes import patching


class GroupNorm(Intervention):
    """In at most ``groups`` groups, as many as divide the channels; alike in train and eval mode. ``F.batch_norm`` called by
    hand stays.
    """

    IN_COMPILED = True
    NOTHING = Text("No BatchNorm layer was called.", "没有调用过 BatchNorm 层。")

    def __init__(self, stage: Stage, groups: int = 8) -> None:
        super().__init__(stage)
        if groups < 1:
            raise ValueError("groups: at least 1")
        self.groups = int(groups)

    def install(self) -> None:
        patching.replace(self.stack, _BatchNorm, "forward", self._grouped)

    def _grouped(self, original: Any) -> Any:
        def forward(layer: Any, input: Any) -> Any:
            if not torch.compiler.is_compiling():  # counting would have it compiled anew in each step
                self.touch()
            groups = math.gcd(input.shape[1], self.groups)
            return F.group_norm(input, groups, layer.weight, layer.bias, layer.eps)
        return patching.dressed(forward, original)
