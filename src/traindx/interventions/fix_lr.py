"""The same learning rate ``lr`` in every step and group, whatever a scheduler makes of it; or one that rises by ``factor`` a step."""
from __future__ import annotations

from typing import Any

import torch

from traindx.core.text import Text
from traindx.interventions.tools.groups import GroupSetting
from traindx.interventions.tools.stage import Stage


class FixLr(GroupSetting):
    """Groups with rates of their own lose the differences between them."""

    KEY = "lr"
    NOTHING = Text("No optimizer of torch with a learning rate took a step.", "没有带学习率的 torch 优化器走过一步。")

    def __init__(self, stage: Stage, lr: float, factor: float = 1.0) -> None:
        super().__init__(stage)
        self.lr, self.factor = float(lr), float(factor)

    def changed(self, value: Any) -> Any:
        self.touch()  # also where the program's rate happens to be this one
        rate = self.lr * self.factor ** self.stage.steps
        return torch.full_like(value, rate) if isinstance(value, torch.Tensor) else rate
