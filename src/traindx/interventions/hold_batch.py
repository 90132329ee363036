"""A few batches that the program fetched itself are given again in turn, and nothing is fetched: what a step takes without its input.

``times``: each of them this many times over in one batch, so that the same step is seen with a larger batch and nothing else. Unlike
``pin_batch`` it is cheap, checks nothing and is for timing only.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from traindx.core.text import EMPTY, Text
from traindx.interventions.tools import rows
from traindx.interventions.tools.stage import Stage
from traindx.interventions.tools.switched import Fetching
from traindx.probes import patching
from traindx.probes.tensors import tensors_in

KEPT = 8  # batches, for those of one program may be of different lengths
MOST_BYTES = 256 << 20
UNEVEN = Text("The batch could not be made larger: its tensors do not share their first size.",
              "batch 没法加大：里面各张量的第一维大小不一样。")


class HoldBatch(Fetching):
    """The first batches that were trained on are kept; a copy of them too, for a program that writes into its batch."""

    def __init__(self, stage: Stage, times: int = 1) -> None:
        super().__init__(stage)
        if times < 1:
            raise ValueError("times: 1 or more")
        self.times = times
        self._kept: list[tuple[Any, Any, list[int]]] = []  # what is handed out, an untouched copy, versions
        self._bytes = 0
        self._turn = -1

    def install(self) -> None:
        super().install()
        patching.replace(self.stack, DataLoader, "__iter__", self._iter)

    def _iter(self, original: Any) -> Any:
        """A loader that is begun while batches are held starts no workers."""
        def __iter__(loader: Any) -> Any:
            if self.on and self._kept and self._full() and self.stage.watching and torch.is_grad_enabled() and self.trains(loader.dataset):
                return _Held(self, loader, lambda: original(loader))
            return original(loader)
        return patching.dressed(__iter__, original)

    def passed(self, batch: Any, trains: bool) -> None:
        if not trains or self._full():
            return
        if self.times > 1 and rows.leading(batch) is None:
            self.problem = UNEVEN
            return
        made = batch if self.times == 1 else rows.mapped(batch, self._repeated)
        self._bytes += sum(t.nbytes for t in tensors_in(made))
        self._kept.append((made, rows.copied(made), _versions(made)))

    def _full(self) -> bool:
        return len(self._kept) >= KEPT or self._bytes > MOST_BYTES or self.problem != EMPTY

    def _repeated(self, tensor: Tensor) -> Tensor:
        return torch.cat([tensor] * self.times) if tensor.dim() else tensor

    def fetch(self, loader: Any, iterator: Any, original: Any) -> Any:
        if not self._full() or not self._kept:
            batch = original()
            self.passed(batch, trains=True)
            return batch
        return self.next_one()

    def next_one(self) -> Any:
        self.touch()
        self._turn = (self._turn + 1) % len(self._kept)
        held, copy, versions = self._kept[self._turn]
        return held if _versions(held) == versions else rows.copied(copy)


class _Held:
    """An epoch of held batches; from the moment that they are held no longer, of the loader's own."""

    def __init__(self, holder: HoldBatch, loader: Any, begin: Callable[[], Any]) -> None:
        self.holder, self.begin = holder, begin
        self.length = len(loader) if hasattr(loader.dataset, "__len__") else None
        self.given = 0
        self.own: Any = None

    def __iter__(self) -> Self:
        return self

    def __len__(self) -> int:
        return self.length or 0

    def __next__(self) -> Any:
        if self.own is not None or not self.holder.on:
            self.own = self.own or self.begin()
            return next(self.own)
        if self.given == self.length:
            raise StopIteration
        self.given += 1
        return self.holder.next_one()


def _versions(batch: Any) -> list[int]:
    return [t._version for t in tensors_in(batch) if not t.is_inference()]
