"""``times`` batches of the loader are joined into one: a larger batch, with all that it costs to fetch it."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from traindx.interventions.hold_batch import UNEVEN
from traindx.interventions.tools import rows
from traindx.interventions.tools.stage import Stage
from traindx.interventions.tools.switched import Fetching


class LargerBatch(Fetching):
    """Where the batches cannot be joined, the first of them is given."""

    def __init__(self, stage: Stage, times: int = 2) -> None:
        super().__init__(stage)
        if times < 2:
            raise ValueError("times: 2 or more")
        self.times = times

    def fetch(self, loader: Any, iterator: Any, original: Any) -> Any:
        batches = [original() for _ in range(self.times)]
        if any(rows.leading(batch) is None for batch in batches):
            self.problem = UNEVEN
            return batches[0]
        parts = [_leaves(batch) for batch in batches]
        if len({len(part) for part in parts}) > 1:
            self.problem = UNEVEN
            return batches[0]
        self.touch()
        columns = iter(list(zip(*parts)))
        return rows.mapped(batches[0], lambda tensor: _joined(next(columns)))


def _leaves(batch: Any) -> list[Tensor]:
    found: list[Tensor] = []
    rows.mapped(batch, lambda tensor: found.append(tensor) or tensor)  # type: ignore[func-returns-value]
    return found


def _joined(tensors: tuple[Tensor, ...]) -> Tensor:
    return torch.cat(tensors) if tensors[0].dim() else tensors[0]
