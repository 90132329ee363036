"""One batch of a model's inputs as numbers: hashes of its rows, at most 256 columns, its labels. No tensor is kept."""
from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from traindx.core.observed import Site
from traindx.probes.fed_arrivals import Delivered
from traindx.probes.rows import Array
from traindx.probes.session import LossRun
from traindx.probes.tensors import plain, readable

if TYPE_CHECKING:
    from traindx.probes.fed_counts import Model


@dataclass
class Call:
    """The latest forward: what it was given, weakly, in case its loss turns out not to be finite."""

    root: int
    site: Site | None
    grad: bool
    input: weakref.ref[Tensor]
    target: weakref.ref[Tensor] | None = None
    loss_site: Site | None = None


@dataclass
class Batch:
    """One batch of inputs, as numbers."""

    model: Model
    grad: bool
    site: Site | None
    caller: Site | None
    rows: Array  # hashes [B]
    columns: Array  # [B, at most 256]
    shape: tuple[int, ...]  # of a row
    dtype: str
    inputs: int
    low: float
    high: float
    storage: tuple[int, int]  # identity of the memory, and how many rows it holds
    delivered: Delivered | None
    labels: Array | None = None  # class ids [B]
    values: Array | None = None  # floats [B, at most 16]
    classes: int = 0
    function: str = ""
    loss_site: Site | None = None
    weighted: bool = False
    paired: bool = False
    reached: bool = False
    unfit: bool = False  # meant for training, and not finite
    frozen: bool = False  # with gradients on, nothing of what came out has one: the features of a model that is not trained
    asked: tuple[Any, ...] = ()  # words and small numbers that the model was given: which task, which head
    question: tuple[Any, ...] | None = None  # what the label answers

    def take_delivered_target(self, used: Tensor, delivered: Delivered, step: int) -> None:
        """The loader's own target, until a loss call says which target it was."""
        alive = [t for ref in delivered.tensors if (t := ref()) is not None and readable(t)]
        others = [t for t in alive[1:] if t is not used and t.dim() and t.shape[0] == used.shape[0]]
        if len(others) == 1 and not others[0].requires_grad:
            self.set_target(others[0], step)

    def set_target(self, target: Tensor, step: int = 1) -> None:
        target = target.detach()[::step]
        if len(target) != len(self.rows):
            return
        if not target.is_floating_point():
            if target.dim() == 1 and target.dtype is not torch.bool:
                self.labels, self.values = target.numpy().astype(np.int64), None
        elif target.dim() == 1 or (target.dim() == 2 and target.shape[1] <= 16):
            self.values, self.labels = as_rows(target, 1).astype(np.float64), None

    def pair(self, run: LossRun, head: int) -> None:
        """The loss call tells which target it was, and what the model made of it. ``head`` is the root module that ran last."""
        target = run.target
        if self.paired:
            self.model.ambiguous = self.model.ambiguous or self.grad
            return
        self.paired, self.function, self.loss_site = True, run.function, run.site
        self.weighted = run.arguments.get("weight") is not None or run.arguments.get("pos_weight") is not None
        self.labels = self.values = None
        if run.function in ("cross_entropy", "nll_loss"):
            self._pair_classes(run, target)
        elif run.function.startswith("binary_cross_entropy") and target.numel() == target.shape[0]:
            self.labels, self.classes = bits(target), 2
            if self.labels is not None and self.grad:
                self._recall(run.input, self.labels, run.function)
        else:
            self.set_target(target)
        self.question = (run.function, self.classes, head, *self.asked)

    def _pair_classes(self, run: LossRun, target: Tensor) -> None:
        if not isinstance(run.input, Tensor) or run.input.dim() != 2:
            return
        if target.is_floating_point():
            target = target.detach()
            if not bool(((target == 0) | (target == 1)).all()) or not bool((target.sum(1) == 1).all()):
                return
            target = target.argmax(1)
        if target.dim() != 1:
            return
        self.labels, self.classes = target.detach().numpy().astype(np.int64), int(run.input.shape[1])
        ignored = run.arguments.get("ignore_index", -100)
        if bool((self.labels == ignored).any()):
            self.labels = None
        elif self.grad:
            self._recall(run.input, self.labels, run.function)

    def _recall(self, scores: Any, labels: Array, function: str) -> None:
        """Right guesses by class, the latest batches counting most."""
        if not readable(scores) or self.classes > 64:
            return
        scores = scores.detach().float().numpy()
        threshold = 0.5 if function == "binary_cross_entropy" else 0.0
        guess = (
            scores.argmax(1)
            if self.classes > 2 or (scores.ndim == 2 and scores.shape[1] == 2)
            else (scores.reshape(-1) > threshold)
        )
        given = labels.tolist()  # of a usual batch Python counts faster than NumPy
        right = Counter(label for label, guessed in zip(given, guess.tolist()) if label == guessed)
        for label, count in Counter(given).items():
            entry = self.model.recall.setdefault(label, [0.0, 0.0])
            entry[0] = 0.9 * entry[0] + right[label]
            entry[1] = 0.9 * entry[1] + count


def may_be_data(value: Any) -> bool:
    return plain(value) and not value.requires_grad and value.dim() > 0


def is_data(tensor: Tensor) -> bool:
    return readable(tensor) and not tensor.requires_grad and tensor.dim() > 0 and tensor.numel() > 0


def as_rows(tensor: Tensor, step: int) -> Array:
    tensor = tensor.detach()[::step]
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.float()
    return tensor.reshape(len(tensor), -1).numpy()


def bits(target: Tensor) -> Array | None:
    values = target.detach().reshape(-1)
    return values.numpy().astype(np.int64) if bool(((values == 0) | (values == 1)).all()) else None


def storage_of(tensor: Tensor) -> tuple[int, int]:
    """The identity of the memory, and how many rows of this size it holds."""
    storage = tensor.untyped_storage()
    row_bytes = max(1, tensor.element_size() * tensor[0].numel())
    return storage.data_ptr(), storage.nbytes() // row_bytes


def names_a_task(value: Any) -> bool:
    """A word or a small whole number; larger ones are lengths."""
    return isinstance(value, str) or (isinstance(value, int) and 0 <= value < 10)


def width_of(module: nn.Module) -> int:
    weight = next((p for p in module.parameters() if p.dim() >= 2), None)
    return int(weight.shape[1]) if weight is not None else 0
