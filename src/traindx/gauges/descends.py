"""Does a step go down? Three links are looked at apart: loss to backward, backward to ``.grad``, ``.grad`` to the step."""
from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from traindx.core.codec import encode
from traindx.core.observed import Site
from traindx.core.text import Text
from traindx.gauges import Watcher
from traindx.gauges.tools.losscalls import LossCall
from traindx.gauges.tools.steps import cosine, gradients, leaves_of

LOSSES = 8
STEPS = 20  # a warm-up may begin with steps of length 0
NO_STEP = Text("No optimizer moved a parameter that a backward had reached in the first {steps} step{steps:|s}.",
               "前 {steps} 步里，没有优化器动过反向传播到达的参数。")


class Measurement(Watcher):
    """Value, of the first step that moves anything:

    ``outputs``: for each loss call, ``slope``, the cosine between the gradient of what went backward with respect to the
    loss's input and the direction from the outputs towards the labels (below 0: the loss falls on the way to the label), and
    ``rising``, the share of samples for which it rises.
    ``gradient_kept``: cosine between the gradient of what went backward and ``.grad`` at the step (1: untouched but for its length).
    ``step_against_gradient``: cosine between ``-.grad`` and the movement of the parameters. ``descent``: between minus the
    gradient of what went backward and the movement: above 0, a small step lowers the loss, whatever the learning rate.
    Without an optimizer of torch only ``outputs`` are told, the others are null.
    """

    def begin(self, stack: ExitStack) -> None:
        self._calls: list[LossCall] = []
        self._outputs: list[dict[str, Any]] = []
        self._summed: dict[int, Tensor] = {}
        self._before: dict[int, Tensor] = {}
        self._grads: dict[int, Tensor] = {}

    def on_loss(self, function: str, input: Tensor, target: Any, value: Tensor, kwargs: dict[str, Any], site: Site | None) -> None:
        if input.requires_grad and len(self._calls) < LOSSES:
            self._calls.append(LossCall(function, input, target, value, kwargs, site))

    def on_backward(self, root: Tensor) -> None:
        calls, self._calls = self._calls, []
        slopes = gradients(root, [call.input for call in calls]) if calls else []
        self._outputs += [told for call, slope in zip(calls, slopes) if slope is not None and (told := _slope(call, slope))]
        leaves = leaves_of(root)
        for leaf, gradient in zip(leaves, gradients(root, leaves)):
            if gradient is not None:
                before = self._summed.get(id(leaf))
                self._summed[id(leaf)] = gradient if before is None else before + gradient

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        for parameter in _parameters(optimizer):
            if id(parameter) in self._summed and parameter.grad is not None:
                self._before[id(parameter)] = parameter.detach().clone()
                self._grads[id(parameter)] = parameter.grad.to_dense().clone()

    def after_step(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        moved = {id(p): p.detach() - self._before[id(p)] for p in _parameters(optimizer) if id(p) in self._before}
        found = self._judge(optimizer, moved) if moved else None
        self._before, self._grads = {}, {}
        if found is not None:
            self.done = True
            self.send({"step": step, **found})
        elif step >= STEPS:
            self.not_measured(NO_STEP.fill(steps=step))

    def _judge(self, optimizer: torch.optim.Optimizer, moved: dict[int, Tensor]) -> dict[str, Any] | None:
        keys, steps = list(moved), list(moved.values())
        root, grads = [self._summed.pop(key) for key in keys], [self._grads[key] for key in keys]
        along = cosine(grads, steps)
        if along is None:
            return None
        descent = cosine(root, steps)
        group = optimizer.param_groups[0]
        return {"outputs": self._outputs[:LOSSES], "gradient_kept": cosine(root, grads), "step_against_gradient": -along,
                "descent": None if descent is None else -descent, "optimizer": type(optimizer).__name__,
                "lr": float(group["lr"]), "maximize": bool(group.get("maximize", False))}

    def at_end(self) -> None:
        if not self._outputs:
            return self.not_measured(NO_STEP.fill(steps=STEPS))
        self.send({"step": None, "outputs": self._outputs[:LOSSES], **dict.fromkeys(
            ("gradient_kept", "step_against_gradient", "descent", "optimizer", "lr", "maximize"))})


def _parameters(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _slope(call: LossCall, gradient: Tensor) -> dict[str, Any] | None:
    direction = towards(call)
    if direction is None:
        return None
    product = gradient.detach().cpu().double() * direction
    product = product.flatten(1).sum(1) if product.dim() > 1 else product.reshape(-1)
    counted = product != 0
    return {"function": call.function, "site": encode(call.site), "slope": cosine([gradient.detach().cpu()], [direction]),
            "rising": float((product > 0).sum() / counted.sum()) if bool(counted.any()) else None}


def towards(call: LossCall) -> Tensor | None:
    """The direction, in the space of the loss's input, in which the outputs come closer to their labels. None where unknown."""
    if call.large:
        return None
    if call.kind == "classes":
        pull = call.pull()
        hot = F.one_hot(pull.argmax(1), call.classes).movedim(-1, 1) - 1.0 / call.classes
        return (hot * (pull.sum(1, keepdim=True) > 0)).reshape(call.input.shape)
    if call.kind == "other" or call.input.shape != call.target.shape:
        return None
    target, outputs = call.target.detach().cpu().double(), call.input.detach().cpu().double()
    return 2 * target - 1 if call.function == "binary_cross_entropy_with_logits" else target - outputs
