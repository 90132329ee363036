"""A scheduler's steps before the first step of its optimizer are left out, so that the first rate is not skipped."""
from __future__ import annotations

import weakref
from typing import Any

from torch.optim import Optimizer

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Stage


class SchedulerAfterStep(Intervention):
    """All later ones are taken as written."""

    NOTHING = Text("No scheduler stepped before its optimizer.", "没有调度器抢在优化器之前走步。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._stepped: weakref.WeakSet[Optimizer] = weakref.WeakSet()

    def after_step(self, optimizer: Optimizer) -> None:
        self._stepped.add(optimizer)

    def let_schedule(self, scheduler: Any) -> bool:
        if scheduler.optimizer in self._stepped:
            return True
        self.touch()
        return False
