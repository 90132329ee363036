"""The learning rate of every group times ``k``, whatever a scheduler makes of it."""
from __future__ import annotations

from typing import Any

from traindx.core.text import Text
from traindx.interventions.tools.groups import GroupSetting
from traindx.interventions.tools.stage import Stage


class ScaleLr(GroupSetting):
    """``k`` = 0 holds the weights still (decoupled weight decay is multiplied by the rate too)."""

    KEY = "lr"
    NOTHING = Text("No optimizer of torch with a learning rate took a step.", "没有带学习率的 torch 优化器走过一步。")

    def __init__(self, stage: Stage, k: float) -> None:
        super().__init__(stage)
        self.k = float(k)

    def changed(self, value: Any) -> Any:
        return value * self.k

    def _change(self, group: dict[str, Any], value: Any) -> None:
        super()._change(group, value)
        self.touched += self.k == 1  # nothing to change, and done
