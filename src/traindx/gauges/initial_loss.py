"""The first loss beside what it should be: ln C, ln 2, or the spread of the target; the excess told as the logits' spread."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from traindx.core.codec import encode
from traindx.core.observed import Site
from traindx.core.text import Text
from traindx.gauges import FromStep
from traindx.gauges.tools.gaussian import implied_std
from traindx.gauges.tools.losscalls import LossCall

NO_LOSS = Text("The program called no loss function of torch with gradients on.", "程序没有在开着梯度时调用 torch 的损失函数。")
NO_FORMULA = Text("There is no formula for the first value of {function} here.", "这里没有 {function} 初始值的公式。")


class Measurement(FromStep):
    """Value: ``function``, ``site``, ``value``, ``chance`` (the loss at logits or outputs 0), ``formula`` of it, ``constant``
    (the loss of the best constant output), ``excess`` over chance, in nats a sample where ``kind`` is classes or binary, and
    ``error``, the standard error of ``value`` over the elements of the batch. Of very large outputs only the first rows
    are looked at (``samples``), and ``value`` is theirs.

    ``logit_std`` is measured; ``implied_std`` is the spread of Gaussian logits (for regression: of outputs around 0, without
    relation to the target) that costs this excess; null where no spread does. ``probabilities``: whether the outputs look
    like probabilities, for which neither holds.
    """

    def on_loss(self, function: str, input: Tensor, target: Any, value: Tensor, kwargs: dict[str, Any], site: Site | None) -> None:
        if self.waiting:
            return
        call = LossCall(function, input, target, value, kwargs, site)
        if call.kind == "other":
            return self.not_measured(NO_FORMULA.fill(function=function))
        self.done = True
        self.send(measured(call.shrunk()))

    def at_end(self) -> None:
        self.not_measured(NO_LOSS)


def measured(call: LossCall) -> dict[str, Any]:
    """All figures of one call."""
    value, chance = float(call.value.detach().cpu().double().mean()), call.chance()
    excess = _excess(call, value, chance)
    outputs = call.input.detach().cpu().double()
    return {"function": call.function, "site": encode(call.site), "kind": call.kind, "reduction": call.reduction,
            "samples": int(call.input.shape[0]) if call.input.dim() > 1 or call.kind != "classes" else 1,
            "classes": call.classes if call.kind == "classes" else None, "value": value, "chance": chance,
            "formula": _formula(call, chance), "constant": call.constant(), "excess": excess, "error": call.error(),
            "implied_std": _implied(call, excess), "logit_std": _logit_std(call),
            "probabilities": call.kind != "regression" and call.probabilities(),
            "output_mean": float(outputs.mean()), "output_std": _std(outputs), **_target(call)}


def _excess(call: LossCall, value: float, chance: float) -> float | None:
    """For logits, in nats a sample: weights, sums and smoothing scale value and chance alike."""
    if call.kind == "regression":
        return value - chance
    one = math.log(call.classes) if call.kind == "classes" else math.log(2)
    return (value / chance - 1) * one if chance else None


def _implied(call: LossCall, excess: float | None) -> float | None:
    if excess is None or not math.isfinite(excess):
        return None
    if call.kind == "regression":
        return math.sqrt(excess) if call.function == "mse_loss" and call.reduction != "sum" and excess >= 0 else None
    if call.kind == "binary":
        return implied_std(excess, 1)
    return implied_std(excess, call.classes)


def _logit_std(call: LossCall) -> float | None:
    """Of all logits around the mean of their row: a shift of a whole row changes nothing."""
    if call.kind == "regression" or call.function == "binary_cross_entropy":
        return None
    logits = call.input.detach().cpu().double()
    if call.kind == "classes":
        classes = call.classes
        return float((logits - logits.mean(call.class_dim, keepdim=True)).square().mean() * classes / max(classes - 1, 1)) ** 0.5
    return float(logits.square().mean()) ** 0.5


def _formula(call: LossCall, chance: float) -> str:
    if call.kind == "regression":
        return {"mse_loss": "E[y²]", "l1_loss": "E|y|"}.get(call.function, "E[loss(0, y)]")
    plain = f"ln {call.classes}" if call.kind == "classes" else "ln 2"
    bare = math.log(call.classes if call.kind == "classes" else 2)
    return plain if math.isclose(chance, bare, rel_tol=1e-6) else f"{chance / bare:.4g} · {plain}"


def _target(call: LossCall) -> dict[str, float | None]:
    target = call.target
    if not isinstance(target, Tensor) or call.kind == "classes":
        return {"target_mean": None, "target_std": None}
    numbers = target.detach().cpu().double()
    return {"target_mean": float(numbers.mean()), "target_std": _std(numbers)}


def _std(values: Tensor) -> float:
    return float(torch.std(values, correction=0))
