"""Gradients cleared at the first backward after each step, whether or not the program does it."""
from __future__ import annotations

import weakref

from torch import Tensor
from torch.optim import Optimizer

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Backward, Stage


class ForceZeroGrad(Intervention):
    """Not right after the step: the program may look at its gradients then. Accumulation within a step stays as it is."""

    NOTHING = Text("No gradient of an earlier step was left: the program clears them itself.", "没有留下前一步的梯度：程序自己清空了。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._stepped: list[weakref.ref[Optimizer]] = []

    def after_step(self, optimizer: Optimizer) -> None:
        self._stepped.append(weakref.ref(optimizer))

    def before_backward(self, run: Backward) -> None:
        if not run.fills_grad:
            return
        for ref in self._stepped:
            optimizer = ref()
            for group in optimizer.param_groups if optimizer is not None else ():
                self._clear(group["params"])
        self._stepped.clear()

    def _clear(self, parameters: list[Tensor]) -> None:
        left = [p for p in parameters if p.grad is not None and bool(p.grad.detach().ne(0).any())]
        if left:
            self.touch()
        for parameter in parameters:
            parameter.grad = None
