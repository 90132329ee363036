"""The same random numbers in every step: all generators are put back, after each step, to where they were after the first.

What is drawn within a step (noise, masks, negatives) and between steps (batches, augmentation) is then the same in each.
"""
from __future__ import annotations

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.generators import Rewind
from traindx.interventions.tools.stage import Stage


class FreezeNoise(Intervention):
    """A sampler that drew the order of a whole epoch beforehand goes on with it: that is for ``pin_batch``."""

    NOTHING = Text("Nothing was drawn from one step to the next.", "两步之间没有抽过随机数。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._rewind = Rewind()

    def on_tick(self, step: int) -> None:
        self.touched += self._rewind()
