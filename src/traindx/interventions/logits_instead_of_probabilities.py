"""Losses that expect logits but get probabilities p are given log(p), or logit(p); ``nll_loss`` that gets p is given log(p)."""
from __future__ import annotations

import torch
from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import LossCall
from traindx.probes.tensors import plain

ROWS = ("cross_entropy", "nll_loss")
TINY = 1e-38  # least float32 that is normal
EDGE = 1e-7
NEAR = 2e-3  # of 1: sums in half precision
MANY = 8  # numbers in [0, 1] that are too many to be logits by chance


class LogitsInsteadOfProbabilities(Intervention):
    """Acts on what the loss receives, so that the softmax or sigmoid need not be found."""

    NOTHING = Text("No loss that expects logits was given probabilities.", "没有哪个要 logits 的损失收到了概率。")

    def on_loss_call(self, call: LossCall) -> None:
        value = call.input
        if not plain(value) or not value.is_floating_point() or not value.numel():
            return
        if call.function in ROWS and _sums_to_one(value):
            call.input = value.clamp_min(TINY).log()
        elif call.function == "binary_cross_entropy_with_logits" and _between(value):
            call.input = torch.logit(value, EDGE)
        else:
            return
        call.changed = True
        self.touch()


def _sums_to_one(value: Tensor) -> bool:
    detached = value.detach()
    dim = 1 if detached.dim() > 1 else 0
    return bool((detached >= 0).all()) and bool(((detached.float().sum(dim) - 1).abs() < NEAR).all()) and detached.shape[dim] > 1


def _between(value: Tensor) -> bool:
    detached = value.detach()
    by_name = type(value.grad_fn).__name__.startswith("Sigmoid")
    return bool(((detached >= 0) & (detached <= 1)).all()) and (by_name or detached.numel() >= MANY)
