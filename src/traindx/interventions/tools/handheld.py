"""What the program's own lines made in a few whole steps, to be given again in turn instead of being made."""
from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from traindx.interventions.tools import rows
from traindx.probes.tensors import tensors_in

ALL = 10_000  # tensors of one value that are looked at
Kept = tuple[Any, Any, list[int]]  # what is handed out, an untouched copy, versions


class HandHeld:
    """All that was made in ``most`` steps, or until they are ``most_bytes``: whole steps, so that inputs and labels made by different lines
    stay together. ``times``: tensors of ``rows`` rows that many times over."""

    def __init__(self, times: int, most: int, most_bytes: int) -> None:
        self.times, self.most, self.most_bytes = times, most, most_bytes
        self.rows: int | None = None  # of the batch that the model was given
        self.full = False
        self.uneven = False
        self.larger = False  # something of a batch is in fact given ``times`` over
        self._kept: dict[int, list[Kept]] = {}
        self._unfit: set[int] = set()
        self._turn: Counter[int] = Counter()
        self._began = False
        self._steps = 0
        self._bytes = 0

    def saw(self, key: int, value: Any) -> None:
        if not self._began or self.full or key in self._unfit:
            return
        if not _is_data(value):
            self._unfit.add(key)
            self._kept.pop(key, None)
            return
        made = fresh(value) if self.times == 1 else self._repeated(value)
        self._bytes += sum(t.nbytes for t in tensors_in(made, ALL)) + int(getattr(value, "nbytes", 0))
        tensors = any(True for _ in tensors_in(made))
        self._kept.setdefault(key, []).append((made, rows.copied(made) if tensors else made, versions_of(made)))

    def stepped(self) -> None:
        """A step is over. The first shows how large a batch is."""
        self._steps += bool(self._kept)
        self._began = self._began or self.rows is not None
        self.full = self.full or self._steps >= self.most or self._bytes > self.most_bytes

    def _repeated(self, value: Any) -> Any:
        """Row counts other than the batch's belong to something else (an index into the data), unless both occur in one value."""
        sizes = {int(t.shape[0]) for t in tensors_in(value, ALL) if t.dim()}
        self.uneven |= self.rows in sizes and len(sizes) > 1
        if sizes != {self.rows}:
            return fresh(value)
        self.larger = True
        return rows.mapped(value, lambda tensor: torch.cat([tensor] * self.times) if tensor.dim() else tensor)

    def holds(self, key: int) -> bool:
        return self.full and key in self._kept

    def next_one(self, key: int) -> Any:
        kept = self._kept[key]
        held, copy, before = kept[self._turn[key] % len(kept)]
        self._turn[key] += 1
        return fresh(held) if versions_of(held) == before else rows.copied(copy)


def fresh(value: Any) -> Any:
    """A list or dict of the same things, for the program may fill what it was given."""
    return type(value)(value) if type(value) in (list, dict, set) else value


def versions_of(value: Any) -> list[int]:
    return [t._version for t in tensors_in(value, ALL) if not t.is_inference()]


def _is_data(value: Any) -> bool:
    """No part of the training itself, and nothing that hands out the next batch."""
    parts = value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict) else (value,)
    return not any(isinstance(part, (nn.Module, Optimizer)) or hasattr(part, "__next__") or _trained(part) for part in parts)


def _trained(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad
