"""How low the loss of the first batch can go at all: identical inputs with different labels, and an activation applied twice."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from traindx.core.codec import encode
from traindx.core.observed import Site
from traindx.core.text import Text
from traindx.gauges import FromStep
from traindx.gauges.tools.losscalls import LossCall
from traindx.probes.tensors import tensors_in

NO_LOSS = Text("The program called no loss function of torch with gradients on.", "程序没有在开着梯度时调用 torch 的损失函数。")
NO_INPUTS = Text("No module was called before the loss, so its inputs are not known.", "计算损失之前没有调用过模块，不知道输入是什么。")
NO_ROWS = Text("The loss sees {targets} label{targets:|s}, the module {rows} sample{rows:|s}: which label belongs to which sample is not known.",
               "损失里有 {targets} 个标签，模块收到 {rows} 个样本，不知道哪个标签属于哪个样本。")
TOO_LARGE = Text("The outputs are too large to copy: {elements} number{elements:|s}.", "输出太大，没法另存一份：{elements} 个数。")
NO_FORMULA = Text("There is no formula for the lowest value of {function}.", "没有 {function} 最低值的公式。")


class Measurement(FromStep):
    """Value: ``samples``, ``distinct`` inputs, ``conflicts`` (samples whose input also occurs with another label), ``floor``
    (the lowest loss that any function of the input reaches on this batch), ``without_conflict`` (the same, had every sample
    an input of its own: 0, or what label smoothing costs) and ``double_activation`` (the floor where softmax or sigmoid was
    applied before a loss that applies it itself; it counts only where ``probabilities`` is true)."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._inputs: list[Tensor] = []

    def before_forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.waiting:
            return
        self._inputs += [tensor.detach().clone() for tensor in tensors_in((args, without_labels(kwargs)))]

    def on_loss(self, function: str, input: Tensor, target: Any, value: Tensor, kwargs: dict[str, Any], site: Site | None) -> None:
        if self.waiting:
            return
        call = LossCall(function, input, target, value, kwargs, site)
        if not self._inputs:
            return self.not_measured(NO_INPUTS)
        if call.kind == "other" or not isinstance(target, Tensor):
            return self.not_measured(NO_FORMULA.fill(function=function))
        self.done = True
        self._judge(call)

    def _judge(self, call: LossCall) -> None:
        inputs, self._inputs = without_target(self._inputs, call.target), []
        rows = next((int(t.shape[0]) for t in inputs if t.dim() > 0), 0)
        groups = same_rows([t for t in inputs if t.dim() > 0 and t.shape[0] == rows])
        belongs = call.target.dim() > 0 and call.target.shape[0] == rows and call.input.dim() > 0 and call.input.shape[0] == rows
        if not belongs and int(groups.max()) + 1 < rows:
            return self.not_measured(NO_ROWS.fill(targets=int(call.target.numel()), rows=rows))
        if call.large and int(groups.max()) + 1 < rows:
            return self.not_measured(TOO_LARGE.fill(elements=int(call.input.numel())))
        self.send(measured(call, groups) if belongs and not call.large else unconflicted(call.shrunk(), rows))

    def at_end(self) -> None:
        self.not_measured(NO_LOSS)


def without_labels(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Models that compute their own loss are given the labels, too."""
    return {name: value for name, value in kwargs.items() if "label" not in name and "target" not in name}


def without_target(inputs: list[Tensor], target: Tensor) -> list[Tensor]:
    """Integer labels may be given by place, too; what else equals the target is its input, as in an autoencoder."""
    if target.is_floating_point():
        return inputs
    flat = target.detach().flatten()
    return [t for t in inputs if t.is_floating_point() or t.numel() != flat.numel() or not torch.equal(t.flatten(), flat)]


def same_rows(tensors: Iterable[Tensor]) -> Tensor:
    """(N,) numbers from 0: samples with the same number are alike in every tensor, to the last bit."""
    groups: Tensor | None = None
    for tensor in tensors:
        flat = tensor.detach().cpu().reshape(tensor.shape[0], -1)
        found = torch.unique(flat, dim=0, return_inverse=True)[1]
        groups = found if groups is None else torch.unique(torch.stack([groups, found]), dim=1, return_inverse=True)[1]
    return groups if groups is not None else torch.zeros(0, dtype=torch.long)


def measured(call: LossCall, groups: Tensor) -> dict[str, Any]:
    own = torch.arange(len(groups))
    floor, alone = _lowest(call, groups), _lowest(call, own)
    return {**_told(call), "samples": len(groups), "distinct": int(groups.max()) + 1, "conflicts": _conflicts(call, groups),
            "floor": floor, "without_conflict": alone}


def unconflicted(call: LossCall, rows: int) -> dict[str, Any]:
    """Every input is there once: no label can contradict another, however they are laid out."""
    lowest = _lowest(call, torch.arange(call.input.shape[0])) if call.input.dim() > 1 else 0.0
    return {**_told(call), "samples": rows, "distinct": rows, "conflicts": 0, "floor": lowest, "without_conflict": lowest}


def _told(call: LossCall) -> dict[str, Any]:
    return {"function": call.function, "site": encode(call.site), "double_activation": call.double_activation_floor(),
            "probabilities": call.kind != "regression" and call.probabilities()}


def _lowest(call: LossCall, groups: Tensor) -> float | None:
    best = call.best(groups)
    return None if best is None else call.of_logits(best)


def _conflicts(call: LossCall, groups: Tensor) -> int:
    labels = same_rows([call.target])
    pairs = torch.unique(torch.stack([groups, labels]), dim=1)
    several = torch.bincount(pairs[0], minlength=int(groups.max()) + 1) > 1
    return int(several[groups].sum())
