"""What enters a model's first layer with weights."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
from torch import Tensor, nn

from traindx.core.observed import Site
from traindx.probes.rows import Array
from traindx.probes.session import ForwardRun
from traindx.probes.tensors import readable

BATCHES = 8  # that are looked at
ROWS, FEATURES = 8192, 1024  # of each


class First:
    """Accumulates what enters a model's first layer with weights."""

    def __init__(self, module: nn.Module, site: Site | None, run: ForwardRun, loader_site: Site | None) -> None:
        self.module_class, self.site, self.forward_site, self.loader_site = (
            type(module).__name__,
            site,
            run.site,
            loader_site,
        )
        self.steps = self.count = 0
        self.sum: Array | None = None
        self.squares: Array | None = None
        self.low, self.high, self.binary, self.whole = math.inf, -math.inf, True, True

    def take(self, values: Array) -> None:
        """``values`` [n, features]."""
        if self.sum is not None and len(self.sum) != values.shape[1]:
            return
        values = values.astype(np.float64)
        self.sum = values.sum(axis=0) if self.sum is None else self.sum + values.sum(axis=0)
        squares = (values * values).sum(axis=0)
        self.squares = squares if self.squares is None else self.squares + squares
        self.count += len(values)
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        self.binary = self.binary and bool(((values == 0) | (values == 1)).all())
        self.whole = self.whole and bool((values == np.floor(values)).all())

    def take_from(self, value: Tensor, module: nn.Module) -> None:
        """A batch of the layer's input, channels last."""
        if self.steps >= BATCHES or self.module_class != type(module).__name__:
            return
        self.steps += 1
        values = value.detach().float()
        values = values.movedim(1, -1) if "Conv" in self.module_class else values
        self.take(values.reshape(-1, values.shape[-1])[:ROWS, :FEATURES].numpy())


def enters(value: Any) -> bool:
    """Whether an argument of a layer is a batch of numbers that can be read."""
    return readable(value) and value.is_floating_point() and value.dim() >= 2 and value.numel() > 0
