"""Interventions that can be switched on and off while the program trains, so that both ways are timed in one run."""
from __future__ import annotations

from typing import Any

import torch
from torch.utils.data.dataloader import _BaseDataLoaderIter

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Backward, Stage, loader_of
from traindx.probes import patching

NO_LOADER = Text("No DataLoader gives the batches of the training.", "训练用的 batch 不是 DataLoader 给的。")


class Switched(Intervention):
    """On when it is built. ``warm_up``: steps after a switch that do not count; ``times``: how many batches one step takes."""

    warm_up = 1
    times = 1

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self.on = True

    def switch(self, on: bool) -> None:
        self.on = on


class Fetching(Switched):
    """Comes between the program and the iterator of the loader that it trains from: the one with the dataset whose batch was the last
    before a backward. Until that is known, and for all other loaders, batches pass."""

    NOTHING = NO_LOADER

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._last: int | None = None
        self._training: set[int] = set()  # ids of datasets: a program may make a new loader for every step

    def install(self) -> None:
        patching.replace(self.stack, _BaseDataLoaderIter, "__next__", self._next)

    def _next(self, original: Any) -> Any:
        def __next__(iterator: Any) -> Any:
            if not self.stage.watching or not torch.is_grad_enabled():
                return original(iterator)
            trains = self.trains(iterator._dataset)
            if self.on and trains:
                return self.fetch(loader_of(iterator), iterator, lambda: original(iterator))
            batch = original(iterator)
            self._last = id(iterator._dataset)
            self.passed(batch, trains)
            return batch
        return patching.dressed(__next__, original)

    @property
    def loads(self) -> bool:
        """Whether a DataLoader gives what the program trains on."""
        return bool(self._training)

    def trains(self, dataset: Any) -> bool:
        """Whether the program trains on it."""
        return id(dataset) in self._training

    def fetch(self, loader: Any, iterator: Any, original: Any) -> Any:
        """What the program gets for ``original()``, which it asked of ``iterator``. ``loader`` is None where it is gone already."""
        raise NotImplementedError

    def passed(self, batch: Any, trains: bool) -> None:
        """A batch went through as it was."""

    def before_backward(self, run: Backward) -> None:
        if run.trains and self._last is not None:
            self._training.add(self._last)
