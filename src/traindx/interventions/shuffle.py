"""Loaders that read in order read in a random order, in training only."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import SequentialSampler

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Stage
from traindx.probes import patching


class Shuffle(Intervention):
    """Passes without gradients keep their order. The order comes from a generator of its own: nothing else changes."""

    NOTHING = Text("No DataLoader reads in order while gradients are on.", "训练时没有按固定顺序读数据的 DataLoader。")

    def __init__(self, stage: Stage, seed: int = 0) -> None:
        super().__init__(stage)
        self._generator = torch.Generator().manual_seed(int(seed))

    def install(self) -> None:
        patching.replace(self.stack, SequentialSampler, "__iter__", self._shuffled)

    def _shuffled(self, original: Any) -> Any:
        def __iter__(sampler: Any) -> Iterator[int]:
            if not torch.is_grad_enabled() or len(sampler.data_source) < 2:
                return iter(original(sampler))
            self.touch()
            return iter(torch.randperm(len(sampler.data_source), generator=self._generator).tolist())
        return patching.dressed(__iter__, original)
