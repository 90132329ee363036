"""What hooks are told of: one call of torch each, as it is made."""
from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from traindx.core.observed import Site
from traindx.probes.tensors import number

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


@dataclass
class BackwardRun:
    """One pass through the autograd engine. ``roots`` are weakly the user's tensors: never keep them."""

    roots: tuple[Any, ...]
    site: Site | None
    accumulate: bool
    create_graph: bool
    keep_graph: bool
    inputs: tuple[Any, ...] = ()
    value: float | None = None
    gradients: tuple[Any, ...] = ()  # what ``autograd.grad`` returned

    @property
    def by_hand(self) -> bool:
        """``autograd.grad`` with respect to leaves, no graph asked for: the gradients of an update by hand."""
        return not self.accumulate and not self.create_graph and bool(self.inputs) and all(t.is_leaf for t in self.inputs)


@dataclass
class ForwardRun:
    """One forward of a root module."""

    model: int
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    site: Site | None
    training: bool
    grad: bool
    output: Any = None
    failed: bool = False


class Given(NamedTuple):
    """What a forward of a step that is let alone was given: its first tensor, weakly."""

    model: int
    site: Site | None
    grad: bool
    input: weakref.ref[Tensor]


@dataclass
class LossRun:
    """One call of a torch loss function, outermost only."""

    function: str
    input: Tensor
    target: Any
    output: Any
    arguments: dict[str, Any]
    site: Site | None
    made_at: Site | None
    grad: bool
    read: tuple[float | None] | None = None

    @property
    def value(self) -> float | None:
        """The loss as a number, read once for all who ask; None where it is none or on a device."""
        if self.read is None:  # functools' cached property takes a lock
            self.read = (number(self.output),)
        return self.read[0]


@dataclass
class StepRun:
    """One outermost optimizer step."""

    optimizer: torch.optim.Optimizer
    id: int
    site: Site | None
    rate: float | None  # the largest learning rate of its groups


@dataclass
class ClipRun:
    """One call of ``clip_grad_norm_`` or ``clip_grad_value_``, just done. ``norm`` is None where it is not a CPU number."""

    function: str
    parameters: list[Any]
    limit: float | None
    norm: float | None
    site: Site | None


@dataclass
class ScalerRun:
    """A call of a GradScaler that is about to be made: ``scale``, ``unscale``, ``scaler-step`` or ``scaler-update``."""

    what: str
    scaler: Any
    id: int
    optimizer: torch.optim.Optimizer | None
    site: Site | None


@dataclass
class ReadRun:
    """A value that was just read out of a tensor, and how long that took."""

    tensor: Tensor
    value: Any
    site: Site | None
    seconds: float
