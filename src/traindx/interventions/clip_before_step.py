"""The program's own clipping, at the same limit, moved to just before the step: after any unscaling, never after the step."""
from __future__ import annotations

from typing import Any

from torch.optim import Optimizer

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Clip, Stage


class ClipBeforeStep(Intervention):
    """A clip of the program returns the norm and changes nothing; the last one seen is made before each step."""

    NOTHING = Text("The program does not clip.", "程序没有裁剪梯度。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._last: Clip | None = None

    def on_clip(self, clip: Clip) -> Any:
        self._last = clip
        return clip(float("inf"))

    def before_update(self, optimizer: Optimizer) -> None:
        if self._last is not None:
            self._last()
            self.touch()
