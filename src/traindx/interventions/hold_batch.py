"""A few batches that the program fetched itself are given again in turn, and nothing is fetched: what a step takes without its input.

They come from a DataLoader or, where there is none and it is known which, from lines of the program's own.

``times``: each of them this many times over in one batch, so that the same step is seen with a larger batch and nothing else. ``inputs``: where
the batch is always the same, what the model and the loss are given is made larger instead. Unlike ``pin_batch`` it is cheap, checks nothing
and is for timing only.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from traindx.core.text import EMPTY, Text
from traindx.interventions.tools import rows
from traindx.interventions.tools.handheld import HandHeld, versions_of
from traindx.interventions.tools.handmade import HandMade
from traindx.interventions.tools.stage import LossCall, RootCall, Stage
from traindx.interventions.tools.switched import Fetching
from traindx.probes import patching
from traindx.probes.tensors import tensors_in

KEPT = 8  # batches, for those of one program may be of different lengths
MOST_BYTES = 256 << 20
UNEVEN = Text("The batch could not be made larger: its tensors do not share their first size.",
              "batch 没法加大：里面各张量的第一维大小不一样。")


class HoldBatch(Fetching):
    """The first batches that were trained on are kept; a copy of them too, for a program that writes into its batch."""

    def __init__(self, stage: Stage, times: int = 1, inputs: bool = False) -> None:
        super().__init__(stage)
        if times < 1:
            raise ValueError("times: 1 or more")
        self.times, self.inputs = times, inputs
        self.hand = HandHeld(times, KEPT, MOST_BYTES)
        self._larger: dict[int, tuple[Tensor, int, Tensor]] = {}  # by the id of a tensor: itself, its version, what is given for it
        self._kept: list[tuple[Any, Any, list[int]]] = []  # what is handed out, an untouched copy, versions
        self._bytes = 0
        self._turn = -1

    def install(self) -> None:
        super().install()
        patching.replace(self.stack, DataLoader, "__iter__", self._iter)
        patching.replace(self.stack, HandMade, "give", self._give)

    # -- made by the program's own lines --------------------------------------------------------------------------------

    def _give(self, original: Any) -> Any:
        def give(made: HandMade, key: int, make: Callable[[], Any]) -> Any:
            if not self.stage.watching:
                return original(made, key, make)
            if self.on and self.hand.holds(key):
                self.touch()
                return self.hand.next_one(key)
            value = original(made, key, make)
            with self.stage.quiet():
                self.hand.saw(key, value)
            return value
        return give

    def on_root_call(self, call: RootCall) -> None:
        first = next((t for t in tensors_in([call.args, call.kwargs], 1) if t.dim()), None)
        if not (call.grad and call.has_parameters) or first is None:
            return
        if self.hand.rows is None:
            self.hand.rows = int(first.shape[0])
        if self.inputs and self.on:
            self.touch()
            call.args, call.kwargs = rows.mapped(call.args, self._larger_one), rows.mapped(call.kwargs, self._larger_one)
        elif self.times > 1 and self.hand.full and (self.hand.uneven or not self.hand.larger):
            self.problem = UNEVEN

    def on_loss_call(self, call: LossCall) -> None:
        if self.inputs and self.on and call.grad and isinstance(call.target, Tensor):
            call.target, call.changed = self._larger_one(call.target), True

    def _larger_one(self, tensor: Tensor) -> Tensor:
        """Data that are there before the loop, ``times`` over; the same tensor is made larger once."""
        if self.times == 1 or not tensor.dim() or tensor.shape[0] != self.hand.rows or tensor.requires_grad:
            return tensor
        known = self._larger.get(id(tensor))
        if known is None or known[0] is not tensor or known[1] != tensor._version:
            known = self._larger[id(tensor)] = tensor, tensor._version, torch.cat([tensor] * self.times)
        return known[2]

    def on_tick(self, step: int) -> None:
        self.hand.stepped()

    # -- fetched from a loader ------------------------------------------------------------------------------------------

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
        self._kept.append((made, rows.copied(made), versions_of(made)))

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
        return held if versions_of(held) == versions else rows.copied(copy)


class _Held:
    """An epoch of held batches; from the moment that they are held no longer, of the loader's own."""

    def __init__(self, holder: HoldBatch, loader: Any, begin: Callable[[], Any]) -> None:
        self.holder, self.begin = holder, begin
        self.length = len(loader) if hasattr(loader.dataset, "__len__") else None
        self.given = 0
        self.own: Any = None

    def __iter__(self) -> _Held:
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
