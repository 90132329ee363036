"""One call of a torch loss function, and its value at other outputs: of no knowledge, of the best constant, at best."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from traindx.core.observed import Site

Kind = Literal["classes", "binary", "regression", "other"]
KINDS: dict[str, Kind] = {
    "cross_entropy": "classes", "nll_loss": "classes", "binary_cross_entropy": "binary",
    "binary_cross_entropy_with_logits": "binary", "mse_loss": "regression", "l1_loss": "regression",
    "smooth_l1_loss": "regression", "huber_loss": "regression"}
LEAST = 1e-30  # a probability that stands for 0 where its logarithm is taken
MOST_ELEMENTS = 30_000_000  # of the outputs, 240 MB in double precision
SURE = 80.0  # a logit that stands for infinity: the loss there is e^-80
ROW_SUM = 1e-3  # rows of probabilities add up to 1 within this


@dataclass(frozen=True)
class LossCall:
    """``input`` as the program gave it: (N, C, ...) for classes, the target's shape otherwise."""

    function: str
    input: Tensor
    target: Any
    value: Tensor
    kwargs: dict[str, Any]
    site: Site | None

    @property
    def kind(self) -> Kind:
        """What the target is; "other" where traindx has no formula."""
        kind = KINDS.get(self.function, "other")
        if not isinstance(self.target, Tensor) or (kind == "regression" and self.kwargs.get("weight") is not None):
            return "other"
        return kind if kind == "regression" or self._shares() else "other"

    def _shares(self) -> bool:
        """Whether targets given as numbers are shares: outside of 0 .. 1 such a loss has no lowest value."""
        target = self.target.detach()
        return not target.is_floating_point() or bool(((target >= 0) & (target <= 1)).all())

    @property
    def large(self) -> bool:
        """Whether whole copies of the outputs would take too much memory, as those of a language model do."""
        return self.input.numel() > MOST_ELEMENTS

    def shrunk(self) -> LossCall:
        """The same call on its first rows only, its value computed anew, where the whole is too large."""
        if not self.large or self.input.dim() < 2 or self.input.shape[:1] != self.target.shape[:1]:
            return self
        rows = max(1, MOST_ELEMENTS * self.input.shape[0] // self.input.numel())
        part = replace(self, input=self.input[:rows].detach(), target=self.target[:rows])
        return replace(part, value=part._computed(part.input))

    @property
    def reduction(self) -> str:
        return str(self.kwargs.get("reduction", "mean"))

    @property
    def class_dim(self) -> int:
        return 1 if self.input.dim() > 1 else 0

    @property
    def classes(self) -> int:
        return int(self.input.shape[self.class_dim])

    def at(self, outputs: Tensor) -> float:
        """The loss had the network given ``outputs`` (like ``input``), in double precision."""
        return float(self._computed(outputs).mean())

    def _computed(self, outputs: Tensor, **changes: Any) -> Tensor:
        function: Callable[..., Tensor] = inspect.unwrap(getattr(F, self.function))
        with torch.no_grad():
            return function(_double(outputs), _double(self.target), **{k: _double(v) for k, v in (self.kwargs | changes).items()})

    def error(self) -> float | None:
        """The standard error of the mean over elements (ignored ones aside); None for sums, weights and fewer than two."""
        if self.reduction == "sum" or self.kwargs.get("weight") is not None:
            return None
        each = self._computed(self.input, reduction="none").flatten()
        each = each[each != 0] if self.kind == "classes" else each  # ignored labels cost exactly 0
        return float(each.std() / len(each) ** 0.5) if len(each) > 1 else None

    def of_logits(self, logits: Tensor) -> float:
        """The loss at these logits, whatever form of them the function takes."""
        if self.function == "nll_loss":
            return self.at(_double(logits).log_softmax(self.class_dim))
        if self.function == "binary_cross_entropy":
            return self.at(_double(logits).sigmoid())
        return self.at(logits)

    def chance(self) -> float:
        """The loss at logits 0, every class alike: ln C or ln 2 for a plain mean. For regression, at outputs 0."""
        return self.of_logits(torch.zeros_like(self.input, dtype=torch.float64))

    def constant(self) -> float | None:
        """The loss of the best output that is alike for all samples (and, for classes, all positions).

        None for regressions without a closed form, or whose shapes are broadcast.
        """
        groups = torch.zeros(self.input.shape[0] if self.input.dim() > 1 or self.kind != "classes" else 1, dtype=torch.long)
        best = self.best(groups, positions_alike=self.kind != "regression")
        return None if best is None else self.of_logits(best)

    def best(self, groups: Tensor, positions_alike: bool = False) -> Tensor | None:
        """The outputs (as logits, like ``input``) of the lowest loss among those that are alike for all samples of a group.

        ``groups`` (N,) numbers them from 0. None where there is no closed form.
        """
        if self.kind == "classes":
            return self._best_classes(groups, positions_alike)
        if self.kind == "binary":
            return self._best_binary(groups, positions_alike)
        if self.kind == "regression" and self.input.shape == self.target.shape:
            return _best_numbers(self.function, _double(self.target), groups)
        return None

    def _best_classes(self, groups: Tensor, positions_alike: bool) -> Tensor:
        pull = self.pull()
        total = _per_group(pull, groups, positions_alike)
        share = total / total.sum(1, keepdim=True).clamp_min(LEAST)
        return share.clamp_min(LEAST).log()[groups].reshape(self.input.shape)

    def _best_binary(self, groups: Tensor, positions_alike: bool) -> Tensor:
        target = _double(self.target)
        weight = _double(self.kwargs.get("weight"))
        weight = torch.ones_like(target) if weight is None else weight.expand_as(target)
        positive = self.kwargs.get("pos_weight")
        ones = weight * target * (1.0 if positive is None else _double(positive))
        on = _per_group(ones, groups, positions_alike)
        off = _per_group(weight * (1 - target), groups, positions_alike)
        return (on.log() - off.log()).nan_to_num(0.0).clamp(-SURE, SURE)[groups].expand_as(target)

    def pull(self) -> Tensor:
        """(N, C, ...): how strongly each element pulls the probability of each class up. The loss is -sum(pull * log p)."""
        classes, shape = self.classes, self.input.shape if self.input.dim() > 1 else (1, *self.input.shape)
        given = self.kwargs.get("weight")
        weight = torch.ones(classes, dtype=torch.float64) if given is None else _double(given).cpu()
        weight = weight.reshape(1, classes, *[1] * (len(shape) - 2))
        smooth = float(self.kwargs.get("label_smoothing") or 0.0)
        target = self.target.detach().cpu().reshape(shape if self.target.is_floating_point() else (shape[0], *shape[2:]))
        if target.is_floating_point():
            return weight * ((1 - smooth) * target.double() + smooth / classes)
        kept = target != self.kwargs.get("ignore_index", -100)
        hot = F.one_hot(target.where(kept, torch.zeros_like(target)), classes).double().movedim(-1, 1)
        return weight * ((1 - smooth) * hot + smooth / classes) * kept.unsqueeze(1)

    def probabilities(self) -> bool:
        """Whether the network's outputs look like probabilities: in [0, 1], and rows of classes add up to 1."""
        values = self.input.detach().cpu().double()
        if values.numel() == 0 or not bool(((values >= 0) & (values <= 1)).all()):
            return False
        return self.kind == "binary" or bool(((values.sum(self.class_dim) - 1).abs() < ROW_SUM).all())

    def double_activation_floor(self) -> float | None:
        """The lowest loss where the activation that the function applies itself was applied before: ln(1 + (C-1)/e).

        Taken at certain probabilities of the right class. None for functions that apply none.
        """
        if self.function == "binary_cross_entropy_with_logits":
            return self.at((_double(self.target) > 0.5).double())
        if self.function != "cross_entropy":
            return None
        sure = F.one_hot(self.pull().argmax(1), self.classes).movedim(-1, 1)
        return self.at(sure.double().reshape(self.input.shape))


def _best_numbers(function: str, target: Tensor, groups: Tensor) -> Tensor | None:
    if function == "mse_loss":
        count = torch.bincount(groups).reshape(-1, *[1] * (target.dim() - 1))
        return (_per_group(target, groups, False) / count)[groups]
    if function == "l1_loss":
        return torch.stack([target[groups == group].median(0).values for group in range(int(groups.max()) + 1)])[groups]
    return None


def _per_group(values: Tensor, groups: Tensor, positions_alike: bool) -> Tensor:
    """Sums over the samples of each group; where positions are to be alike, over positions (after the class dim), too."""
    sums = torch.zeros(int(groups.max()) + 1, *values.shape[1:], dtype=values.dtype).index_add_(0, groups, values)
    if positions_alike and values.dim() > 2:
        sums = sums.sum(tuple(range(2, values.dim())), keepdim=True).expand_as(sums)
    return sums


def _double(value: Any) -> Any:
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        return value.double() if value.is_floating_point() else value
    return value
