"""Weight decay 0 in every group."""
from __future__ import annotations

from typing import Any

from traindx.core.text import Text
from traindx.interventions.tools.groups import GroupSetting


class NoWeightDecay(GroupSetting):
    """A penalty that the program adds to its loss by hand stays."""

    KEY = "weight_decay"
    NOTHING = Text("No optimizer decays weights.", "没有优化器用权重衰减。")

    def changed(self, value: Any) -> Any:
        return 0.0
