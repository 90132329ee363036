"""Which dimension of a module's inputs and outputs holds the samples."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from traindx.gauges.tools.losscalls import LossCall
from traindx.probes.tensors import plain, tensors_in


@dataclass(frozen=True)
class Samples:
    """``size`` samples along ``dim`` of the inputs. ``evidence``: "asked" (a setting), "labels" (one label a sample, and no
    other dimension of that size), "independent" (nothing mixes along it), "assumed" (the first dimension)."""

    size: int
    dim: int
    evidence: str


def samples_of(inputs: list[Tensor], call: LossCall | None, asked_dim: int | None) -> Samples | None:
    lead = next((t for t in inputs if t.dim() > 0), None)
    if lead is None:
        return None
    if asked_dim is not None:
        return Samples(int(lead.shape[asked_dim]), asked_dim, "asked") if asked_dim < lead.dim() else None
    labels = int(call.target.shape[0]) if call is not None and isinstance(call.target, Tensor) and call.target.dim() > 0 else -1
    dims = [dim for dim, n in enumerate(lead.shape[:2]) if n == labels]
    if len(dims) == 1:
        return Samples(labels, dims[0], "labels")
    return Samples(int(lead.shape[0]), 0, "assumed")


def output_of(output: Any, samples: Samples) -> tuple[Tensor, int] | None:
    """The first floating-point output that holds the samples, and in which dimension: that of the inputs, else the first."""
    for tensor in tensors_in(output, 8):
        if plain(tensor) and tensor.is_floating_point():
            for dim in (samples.dim, 0, 1):
                if dim < tensor.dim() and tensor.shape[dim] == samples.size:
                    return tensor, dim
    return None
