"""Gradients clipped at ``norm`` before each step, or, with ``norm`` null, not clipped at all."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch.optim import Optimizer

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Clip, Stage

NO_CLIP = Text("The program does not clip.", "程序没有裁剪梯度。")
NEVER_ABOVE = Text("No gradient was above the limit.", "没有一步的梯度超过上限。")


class ClipGradients(Intervention):
    """With ``norm`` null, the program's own calls return the norm and change nothing; clipping by hand escapes."""

    def __init__(self, stage: Stage, norm: float | None) -> None:
        super().__init__(stage)
        if norm is not None and not norm > 0:
            raise ValueError("norm: above 0, or null for no clipping")
        self.norm = norm
        self.NOTHING = NO_CLIP if norm is None else NEVER_ABOVE  # type: ignore[misc]

    def on_clip(self, clip: Clip) -> Any:
        if self.norm is not None:
            return None
        self.touch()
        return clip(math.inf)

    def before_update(self, optimizer: Optimizer) -> None:
        if self.norm is None:
            return
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if parameters and not float(torch.nn.utils.clip_grad_norm_(parameters, self.norm)) <= self.norm:
            self.touch()
