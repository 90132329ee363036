"""Tells the gauges of a trial what happens on its stage."""
from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from typing import Any

from torch.optim import Optimizer

from traindx.core.trials import Gauge
from traindx.gauges import Watchers
from traindx.interventions.tools.stage import Backward, LossCall, Part, RootCall, Stage


class Gauging(Part):
    """Only forwards and losses with gradients on are told, as the program made them under its conditions."""

    def __init__(self, gauges: Iterable[Gauge], stage: Stage, stack: ExitStack) -> None:
        self.stage = stage
        self.watchers = Watchers(gauges, stage.send)
        self.watchers.tell("begin", stack)

    def on_batch(self, loader: Any, iterator: Any, batch: Any) -> Any:
        self.watchers.tell("on_batch", loader, iterator)
        return batch

    def on_root_call(self, call: RootCall) -> None:
        if call.grad and call.has_parameters:
            self.watchers.tell("before_forward", call.module, call.args, call.kwargs)

    def on_root_return(self, call: RootCall) -> None:
        if call.grad and call.has_parameters:
            self.watchers.tell("on_forward", call.module, call.args, call.kwargs, call.output)

    def on_loss_return(self, call: LossCall) -> None:
        if call.grad:
            self.watchers.tell("on_loss", call.function, call.input, call.target, call.output, call.arguments, call.site)

    def before_backward(self, run: Backward) -> None:
        if run.fills_grad and run.roots:
            self.watchers.tell("on_backward", run.roots[0])

    def before_step(self, optimizer: Optimizer) -> None:
        self.watchers.tell("before_step", optimizer)

    def after_step(self, optimizer: Optimizer) -> None:
        self.watchers.tell("after_step", optimizer, self.stage.steps + 1)

    def at_end(self) -> None:
        self.watchers.tell("at_end")
