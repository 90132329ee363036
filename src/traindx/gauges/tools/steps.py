"""What a step did: gradients of its backwards, cosines, the scale of a GradScaler."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from traindx.probes import patching
from traindx.probes.graph import leaves


def leaves_of(root: Tensor) -> list[Tensor]:
    """Leaf tensors that a backward from ``root`` gives gradients to, each once."""
    found = {id(leaf): leaf for leaf in leaves(root.grad_fn)}
    return list(found.values())


def gradients(root: Tensor, tensors: Sequence[Tensor], create_graph: bool = False, factor: float = 1.0) -> list[Tensor | None]:
    """``factor`` * d root / d tensor of each, dense; the graph stays alive, ``.grad`` stays as it is."""
    found = torch.autograd.grad(root, tensors, retain_graph=True, create_graph=create_graph, allow_unused=True,
                                grad_outputs=torch.full_like(root, factor))
    return [g.to_dense() if g is not None and g.layout != torch.strided else g for g in found]


def wide(tensor: Tensor) -> Tensor:
    """In double precision, detached; on the CPU where the device has none."""
    values = tensor.detach()
    return (values.cpu() if values.device.type == "mps" else values).double()


def dot(one: Iterable[Tensor], other: Iterable[Tensor]) -> float:
    """The inner product of two lists of tensors as one vector each, summed in double precision."""
    return sum(float(torch.sum(wide(a) * wide(b))) for a, b in zip(one, other))


def cosine(one: Sequence[Tensor], other: Sequence[Tensor]) -> float | None:
    """In -1 .. 1; None where one of them is zero or not finite."""
    norms = (dot(one, one) * dot(other, other)) ** 0.5
    return max(-1.0, min(1.0, dot(one, other) / norms)) if 0 < norms < float("inf") else None


class ScaleSeen:
    """The factor by which a GradScaler has multiplied the loss that goes backward next; 1 without one."""

    def __init__(self, stack: ExitStack) -> None:
        self._scale = 1.0
        for kind in scaler_classes():
            patching.replace(stack, kind, "scale", self._noting)

    def _noting(self, original: Callable[..., Any]) -> Any:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            self._scale = float(scaler.get_scale())
            return result
        return patching.dressed(scale, original)

    def take(self) -> float:
        """The factor for this backward; the next one starts from 1 again."""
        scale, self._scale = self._scale, 1.0
        return scale


def scaler_classes() -> list[type]:
    """The GradScaler that all of torch's derive from."""
    from torch.amp.grad_scaler import GradScaler
    return [GradScaler]
