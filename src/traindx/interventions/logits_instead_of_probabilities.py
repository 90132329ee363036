"""What expects logits but gets probabilities p is given log(p), or logit(p); ``nll_loss`` that gets p is given log(p).

That is: losses of torch, and a softmax or sigmoid, in a loss written by hand, of what has been through one already.
"""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import LossCall
from traindx.probes import patching
from traindx.probes.tensors import plain

ROWS = ("cross_entropy", "nll_loss")
TINY = 1e-38  # least float32 that is normal
EDGE = 1e-7
NEAR = 2e-3  # of 1: sums in half precision
MANY = 8  # numbers in [0, 1] that are too many to be logits by chance
NODES = 6  # of a graph, back from a value to the softmax that it is a view of
SAME = ("View", "Reshape", "UnsafeView", "Squeeze", "Unsqueeze", "Transpose", "Permute", "T", "ToCopy", "Clone", "Select")


class LogitsInsteadOfProbabilities(Intervention):
    """Acts on what the loss receives, so that the place of the softmax or sigmoid need not be found. In a loss written by
    hand, passes without gradients are changed only after a training step was.
    """

    NOTHING = Text("Nothing that expects logits was given probabilities.", "凡是要 logits 的地方，收到的都不是概率。")

    def install(self) -> None:
        for owner in (torch, Tensor):
            for name in ("softmax", "log_softmax"):
                patching.replace(self.stack, owner, name, self._second_softmax)
            patching.replace(self.stack, owner, "sigmoid", self._second_sigmoid)
        patching.replace(self.stack, F, "logsigmoid", self._second_sigmoid)

    def on_loss_call(self, call: LossCall) -> None:
        value = call.input
        if not plain(value) or not value.is_floating_point() or not value.numel():
            return
        if call.function in ROWS and _sums_to_one(value, 1 if value.dim() > 1 else 0):
            call.input = value.clamp_min(TINY).log()
        elif call.function == "binary_cross_entropy_with_logits" and _between(value):
            call.input = torch.logit(value, EDGE)
        else:
            return
        call.changed = True
        self.touch()

    def _second_softmax(self, original: Any) -> Any:
        exchanged, is_compiling = self._exchanged, torch.compiler.is_compiling

        def softmax(input: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(input, dim, *args, **kwargs)
            return original(exchanged(input, "Softmax", dim), dim, *args, **kwargs)
        return patching.shadow(softmax, original)  # type: ignore[arg-type]

    def _second_sigmoid(self, original: Any) -> Any:
        exchanged, is_compiling = self._exchanged, torch.compiler.is_compiling

        def sigmoid(input: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(input, *args, **kwargs)
            return original(exchanged(input, "Sigmoid", None), *args, **kwargs)
        return patching.shadow(sigmoid, original)  # type: ignore[arg-type]

    def _exchanged(self, value: Any, kind: str, dim: Any) -> Any:
        if not self.stage.watching or not plain(value) or not value.is_floating_point() or not value.numel():
            return value
        if not (_came_from(value, kind) if value.requires_grad else self.touched):
            return value
        if kind == "Softmax" and isinstance(dim, int) and _sums_to_one(value, dim):
            self.touch()
            return value.clamp_min(TINY).log()
        if kind == "Sigmoid" and _between(value):
            self.touch()
            return torch.logit(value, EDGE)
        return value


def _came_from(value: Tensor, kind: str) -> bool:
    """Whether it is the result, or a view or copy of the result, of a softmax or sigmoid."""
    node: Any = value.grad_fn
    for _ in range(NODES):
        name = type(node).__name__
        if name.startswith(kind):
            return True
        if not name.startswith(SAME):
            return False
        node = node.next_functions[0][0]
    return False


def _sums_to_one(value: Tensor, dim: int) -> bool:
    detached = value.detach()
    if not -detached.dim() <= dim < detached.dim() or detached.shape[dim] < 2:
        return False
    return bool((detached >= 0).all()) and bool(((detached.float().sum(dim) - 1).abs() < NEAR).all())


def _between(value: Tensor) -> bool:
    detached = value.detach()
    return bool(((detached >= 0) & (detached <= 1)).all()) and (_came_from(value, "Sigmoid") or detached.numel() >= MANY)
