"""An optimizer that is built anew for the same parameters takes over the state (momentum, moments) of the one before."""
from __future__ import annotations

from typing import Any

from torch.optim import Optimizer
from torch.utils.weak import WeakTensorKeyDictionary

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Stage


class KeepOptimizerState(Intervention):
    """Only from one of the same class that has stepped."""

    NOTHING = Text("No optimizer was built anew for the same parameters.", "没有为同一批参数重新创建过优化器。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._states: Any = WeakTensorKeyDictionary()  # parameter: (class, state)

    def after_step(self, optimizer: Optimizer) -> None:
        for parameter, state in optimizer.state.items():
            self._states[parameter] = type(optimizer), state

    def on_optimizer(self, optimizer: Optimizer) -> None:
        taken = 0
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                kind, state = self._states.get(parameter, (None, None))
                if kind is type(optimizer) and state:
                    optimizer.state[parameter] = dict(state)
                    taken += 1
        self.touched += bool(taken)
