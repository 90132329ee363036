"""Only every ``n``-th step of a scheduler is taken: an epoch's schedule that is stepped in each batch."""
from __future__ import annotations

from typing import Any

import torch

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Stage


class SchedulerEvery(Intervention):
    """``n`` is the number of batches of an epoch; without it, that of the loader which delivers them."""

    NOTHING = Text("No scheduler of torch took a step, or the length of an epoch is not known.",
                   "没有 torch 的调度器走过一步，或者不知道一轮有多长。")

    def __init__(self, stage: Stage, n: int | None = None) -> None:
        super().__init__(stage)
        if n is not None and n < 1:
            raise ValueError("n: at least 1")
        self.n = n
        self._calls: dict[int, int] = {}

    def on_batch(self, loader: Any, iterator: Any, batch: Any) -> Any:
        if self.n is None and torch.is_grad_enabled():
            try:
                self.n = len(loader)
            except TypeError:
                pass  # of unknown length
        return batch

    def let_schedule(self, scheduler: Any) -> bool:
        if self.n is None:
            return True
        calls = self._calls[id(scheduler)] = self._calls.get(id(scheduler), 0) + 1
        self.touched += calls % self.n != 0
        return calls % self.n == 0
