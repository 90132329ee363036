"""A step after every backward, where the program takes none."""
from __future__ import annotations

import weakref

from torch.optim import Optimizer

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Backward, Stage

BY_ITSELF = Text("The program steps by itself, if late.", "程序自己会更新，只是比较晚。")
WAITED = 2  # backwards without a step after which none is expected


class StepAfterBackward(Intervention):
    """The step and a ``zero_grad`` after it, by all optimizers that were made; from the second backward on."""

    NOTHING = Text("The program steps itself, or has no optimizer of torch.", "程序自己会更新，或者没有 torch 的优化器。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._optimizers: list[weakref.ref[Optimizer]] = []
        self._stepping = self._steps_itself = False
        self._backwards = 0

    def on_optimizer(self, optimizer: Optimizer) -> None:
        self._optimizers.append(weakref.ref(optimizer))

    def before_step(self, optimizer: Optimizer) -> None:
        if not self._stepping:
            self._steps_itself = True
            self.problem = BY_ITSELF if self.touched else self.problem

    def after_backward(self, run: Backward) -> None:
        self._backwards += run.fills_grad
        if run.fills_grad and self._backwards >= WAITED and not self._steps_itself and self._optimizers:
            self.touch()
            self.stage.later(self._step)

    def _step(self) -> None:
        self._stepping = True
        for ref in self._optimizers:
            optimizer = ref()
            if optimizer is not None:
                optimizer.step()
                optimizer.zero_grad()
        self._stepping = False
