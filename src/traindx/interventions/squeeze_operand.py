"""Operands of one length but different shapes, [N, 1] and [N], brought to one shape where they meet, instead of all pairs."""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import LossCall, Stage
from traindx.probes import patching, sites
from traindx.probes.tensors import plain

OPERATORS = ("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "add", "sub", "mul", "div")
FUNCTIONS = ("add", "sub", "subtract", "mul", "multiply", "div")


class SqueezeOperand(Intervention):
    """In losses of torch: the target takes the prediction's shape. In arithmetic: at ``lines`` ([file, line] each), or, without
    them, in any line of the program where just one of the two needs a gradient.
    """

    NOTHING = Text("No two operands of shapes [N, 1] and [N] met here.", "这里没有形状为 [N, 1] 和 [N] 的两个量相遇。")

    def __init__(self, stage: Stage, lines: Sequence[Sequence[Any]] | None = None) -> None:
        super().__init__(stage)
        self.lines = None if lines is None else {(str(file), int(line)) for file, line in lines}

    def install(self) -> None:
        for name in OPERATORS:
            patching.replace(self.stack, Tensor, name, self._matched)
        for name in FUNCTIONS:
            patching.replace(self.stack, torch, name, self._matched)

    def on_loss_call(self, call: LossCall) -> None:
        if _mismatch(call.input, call.target):
            call.target, call.changed = call.target.reshape(call.input.shape), True
            self.touch()

    def _matched(self, original: Any) -> Any:
        def operator(left: Any, right: Any, *args: Any, **kwargs: Any) -> Any:
            if not torch.compiler.is_compiling() and self.stage.watching and _mismatch(left, right) and self._here(left, right):
                self.touch()
                if left.dim() > right.dim():
                    left = left.reshape(right.shape)
                else:
                    right = right.reshape(left.shape)
            return original(left, right, *args, **kwargs)
        return patching.dressed(operator, original)

    def _here(self, left: Tensor, right: Tensor) -> bool:
        frame = sys._getframe(2)
        if self.lines is None:
            return left.requires_grad != right.requires_grad and sites.is_user(frame.f_code.co_filename)
        site = sites.here(3)
        return site is not None and (site.file, site.line) in self.lines


def _mismatch(left: Any, right: Any) -> bool:
    """[N, 1] against [N], either way round, N above 1; also with further leading dimensions."""
    if not isinstance(left, Tensor) or not isinstance(right, Tensor) or left.dim() == right.dim():
        return False
    longer, shorter = (left, right) if left.dim() > right.dim() else (right, left)
    return plain(left) and plain(right) and longer.shape == (*shorter.shape, 1) and shorter.numel() > 1
