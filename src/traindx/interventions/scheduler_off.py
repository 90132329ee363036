"""No scheduler: every step with the rate that its group began with, or, ``at`` = ``peak``, with the highest it would reach."""
from __future__ import annotations

from typing import Any, Literal

from torch.optim import Optimizer

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Stage

At = Literal["initial", "peak"]
CHOICES: tuple[At, ...] = ("initial", "peak")


class SchedulerOff(Intervention):
    """A schedule that the program writes into its groups by hand stays (``fix_lr`` holds against that too)."""

    NOTHING = Text("No scheduler of torch took a step.", "没有 torch 的调度器走过一步。")

    def __init__(self, stage: Stage, at: At = "initial") -> None:
        super().__init__(stage)
        if at not in CHOICES:
            raise ValueError(f"at: one of {', '.join(CHOICES)}")
        self.at = at

    def let_schedule(self, scheduler: Any) -> bool:
        self.touch()
        return False

    def before_step(self, optimizer: Optimizer) -> None:
        for group in optimizer.param_groups:
            base = group.get("max_lr", group.get("initial_lr")) if self.at == "peak" else group.get("initial_lr")
            if base is not None and group["lr"] != base:  # which a scheduler has left there
                group["lr"] = base
                self.touch()
