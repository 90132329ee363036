"""Training goes the other way: every gradient with its sign turned. What the loss is said to be stays as written."""
from __future__ import annotations

from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Backward


class FlipLossSign(Intervention):
    """Done where a backward starts, so that any loss will do; gradients for other purposes (penalties) stay."""

    NOTHING = Text("There was no backward.", "没有发生过反向传播。")

    def before_backward(self, run: Backward) -> None:
        if run.trains:
            run.seeds = tuple(-seed if isinstance(seed, Tensor) else seed for seed in run.seeds)
            self.touch()
