"""Three ways to hold a batch: at the loader, at the model's inputs and the loss's target, at the rows cut out by hand.

All look on during the first step and hold from the second step on.
"""
from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools import rows
from traindx.interventions.tools.stage import LossCall, RootCall, Stage
from traindx.probes import sites
from traindx.probes.tensors import plain, tensors_in

INPUT_NEEDS_GRADIENT = Text("The model's input needs a gradient itself: it cannot be exchanged.", "模型的输入本身要求梯度，不能替换。")
MADE_IN_STEP = Text("What goes into the model was made by another one in the same step: it cannot be held still.",
                    "模型的输入是同一步里另一个模型算出来的，没法固定。")


class LoaderPin:
    """Holds the batch of the loader whose iterator was the last to be read before the first backward."""

    def __init__(self, samples: int | None) -> None:
        self.samples = samples
        self.whole = False
        self._key: tuple[Any, ...] | None = None
        self._iterator: weakref.ref[Any] = lambda: None  # type: ignore[assignment]
        self._read = 0
        self._batch: Any = None
        self._dataset: Any = None

    def saw(self, iterator: Any, batch: Any) -> None:
        """Before the decision: the latest batch is kept, if gradients are on."""
        if not torch.is_grad_enabled() or next(iter(tensors_in(batch)), None) is None:
            return
        self._read = self._read + 1 if self._iterator() is iterator else 1
        self._iterator, self._key = weakref.ref(iterator), _key(iterator)
        self._dataset = iterator._dataset
        self._batch = rows.copied(batch)

    def decide(self) -> bool:
        """A loader that was read ahead (accelerate's is) is left to the other ways: its first batch is gone."""
        if self._key is None or self._read != 1:
            self._batch = self._key = None
            return False
        count = rows.leading(self._batch)
        self.whole = self.samples is not None and not count
        if self.samples is not None and count:
            few, number = self.samples, count
            self._batch = rows.mapped(self._batch, lambda t: rows.filled(t, few, number) if t.dim() else t)
        return True

    def pins(self, iterator: Any) -> bool:
        if not torch.is_grad_enabled() or self._key is None:
            return False
        return (iterator._dataset is self._dataset and _size(iterator) == self._key[0]) or _key(iterator) == self._key

    def batch_for(self, batch: Any) -> Any:
        """A fresh copy, for the program may write to it; of a smaller batch's size, where it can be cut."""
        count, held = rows.leading(batch), rows.leading(self._batch)
        pinned = rows.copied(self._batch)
        if count and held and count < held:
            pinned = rows.mapped(pinned, lambda t: t[:count] if t.dim() else t)
        return pinned


def _key(iterator: Any) -> tuple[Any, ...]:
    """A loader, or a data set, that is built anew each epoch is still the same one: read in the same line, of the same size."""
    dataset = iterator._dataset
    try:
        length = len(dataset)
    except TypeError:
        length = None
    return _size(iterator), type(dataset), length, sites.here(2)


def _size(iterator: Any) -> int | None:
    size: int | None = getattr(iterator._index_sampler, "batch_size", None)
    return size


class InputsPin:
    """Holds the leaf tensors that root modules are called with, and those that losses get besides the prediction.

    Keyed by what was called and how often since the last step: accumulation and models with two views keep their roles.
    """

    def __init__(self, samples: int | None, stage: Stage) -> None:
        self.samples, self.stage = samples, stage
        self.problem: Text | None = None
        self.whole = False
        self._held: dict[tuple[Any, ...], Tensor] = {}
        self._count: dict[tuple[Any, ...], int] = {}
        self._kinds: set[tuple[Any, ...]] = set()
        self._first: dict[tuple[Any, ...], tuple[list[int | str], list[int | str]]] = {}  # names of arguments, of None
        self._modes: dict[int, bool] = {}
        self._decided = False
        self._live = True  # whether the latest model's call was one that is held: only its loss is
        self._targets = self._inputs = 0
        self._rows: int | None = None

    def new_step(self) -> None:
        self._count.clear()

    def decide(self) -> bool:
        self._decided = True
        return bool(self._inputs and self._targets) and self.problem is None

    def call(self, call: RootCall) -> Iterator[tuple[Tensor, Tensor]]:
        if not call.grad:
            return
        kind = ("call", id(call.module), call.training)
        self._new_phase(call)
        foreign = self._foreign(kind)
        self._live = self._live if foreign and not call.has_parameters else not foreign
        if foreign:
            return
        key = (*kind, self._next(kind))
        self._without_state(key, call)
        for name, value in _arguments(call):
            for position, tensor in enumerate(tensors_in(value)):
                pinned = self._exchange((*key, name, position), tensor)
                if pinned is not None:
                    self._put(call, name, tensor, pinned)
                    yield tensor, pinned

    def _new_phase(self, call: RootCall) -> None:
        """A validation with gradients on, before the first step: what it saw is forgotten when the mode changes."""
        before, self._modes[id(call.module)] = self._modes.get(id(call.module)), call.training
        if not self._decided and before not in (None, call.training):
            for kept in (self._held, self._count, self._kinds, self._first):
                kept.clear()  # type: ignore[attr-defined]
            self._inputs = self._targets = 0
            self._rows = None

    def _without_state(self, key: tuple[Any, ...], call: RootCall) -> None:
        """A hidden state that was absent in the first step (None, or not given at all) is absent in every one."""
        names, absent = self._first.setdefault(key, (_names(call), _absent(call)))
        for name in _names(call):
            if (name in absent or name not in names) and self._made_by_model(call, name):
                self._drop(call, name, name in absent)

    def _made_by_model(self, call: RootCall, name: int | str) -> bool:
        value = call.args[name] if isinstance(name, int) else call.kwargs[name]
        return any(self.stage.outputs.get(tensor) for tensor in tensors_in(value))

    @staticmethod
    def _drop(call: RootCall, name: int | str, as_none: bool) -> None:
        if isinstance(name, str):
            call.kwargs = {key: None if key == name else value for key, value in call.kwargs.items() if as_none or key != name}
        elif as_none:
            call.args = (*call.args[:name], None, *call.args[name + 1:])
        else:
            call.args = call.args[:name]

    def loss(self, call: LossCall) -> Iterator[tuple[Tensor, Tensor]]:
        if not self._live or not call.grad or not (isinstance(call.input, Tensor) and call.input.requires_grad):
            return
        kind = ("loss", call.function)
        if self._foreign(kind):
            return
        number = self._next(kind)
        for name in ("target", *call.arguments):
            value = call.target if name == "target" else call.arguments[name]
            if not isinstance(value, Tensor):
                continue
            pinned = self._exchange((*kind, number, name), value, target=True)
            if pinned is None:
                continue
            call.changed = True
            if name == "target":
                call.target = pinned
            else:
                call.arguments[name] = pinned
            yield value, pinned

    def _foreign(self, kind: tuple[Any, ...]) -> bool:
        """After the decision, only what was part of the first step is held: a validation with gradients on is not."""
        if not self._decided:
            self._kinds.add(kind)
        return kind not in self._kinds

    def _next(self, kind: tuple[Any, ...]) -> int:
        number = self._count.get(kind, 0)
        self._count[kind] = number + 1
        return number

    def _exchange(self, key: tuple[Any, ...], tensor: Tensor, target: bool = False) -> Tensor | None:
        """What to give in its place; None: leave it (it is the prediction, or not to be exchanged)."""
        if not plain(tensor) or tensor.grad_fn is not None:
            return None
        if tensor.requires_grad:
            self.problem = self.problem or INPUT_NEEDS_GRADIENT
            return None
        if not target and self.stage.outputs.get(tensor) == (self.stage.steps, True):
            self.problem = self.problem or MADE_IN_STEP  # a detached fake, for example
            return None
        if key not in self._held:
            self._hold(key, tensor, target)
        return self._fitting(self._held[key], tensor) if self.stage.steps else None

    def _hold(self, key: tuple[Any, ...], tensor: Tensor, target: bool) -> None:
        held = tensor.detach().clone()
        count = int(held.shape[0]) if held.dim() else 0
        if not target and self._rows is None and count:
            self._rows = count
        if self.samples is not None and count:
            if count == self._rows:
                held = rows.filled(held, self.samples, count)
            else:
                self.whole = True  # rows of tokens, or time first: which of them are one sample cannot be told
        self._held[key] = held
        self._inputs += not target
        self._targets += target

    @staticmethod
    def _fitting(held: Tensor, tensor: Tensor) -> Tensor:
        """A copy, for the program may write to it; with as many rows as the current tensor has."""
        if tensor.dim() and held.dim() and tensor.shape[0] != held.shape[0] and tensor.shape[1:] == held.shape[1:]:
            return rows.filled(held, len(held), tensor.shape[0])
        return held.clone()

    @staticmethod
    def _put(call: RootCall, name: int | str, before: Tensor, after: Tensor) -> None:
        def exchanged(tensor: Tensor) -> Tensor:
            return after if tensor is before else tensor
        if isinstance(name, int):
            call.args = (*call.args[:name], rows.mapped(call.args[name], exchanged), *call.args[name + 1:])
        else:
            call.kwargs = {**call.kwargs, name: rows.mapped(call.kwargs[name], exchanged)}


def _arguments(call: RootCall) -> list[tuple[int | str, Any]]:
    return [*enumerate(call.args), *call.kwargs.items()]


def _names(call: RootCall) -> list[int | str]:
    return [name for name, _ in _arguments(call)]


def _absent(call: RootCall) -> list[int | str]:
    return [name for name, value in _arguments(call) if value is None]


class RowsPin:
    """Holds the rows that the program cuts out of its data by hand: ``x[rows]``, ``x[i:i + n]``, in its own lines.

    The same index serves inputs, targets and weights: the j-th different index of a step is replaced by the second
    step's j-th, for tensors of the same length. The first step would bring with it all that was cut before the loop.
    """

    def __init__(self, samples: int | None, stage: Stage) -> None:
        self.samples, self.stage = samples, stage
        self.exchanged: Callable[[Any, Any], None] = lambda before, after: None
        self.any_cut = False
        self.held: dict[tuple[int, int], Tensor] = {}
        self._seen: dict[int, list[Tensor]] = {}  # by the length of what was cut

    def install(self, stack: ExitStack) -> None:
        original = Tensor.__getitem__

        def __getitem__(tensor: Tensor, index: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(tensor, index)
            if type(index) in (Tensor, slice, list) and self.stage.watching and not self.stage.depth and torch.is_grad_enabled():
                with self.stage.quiet():
                    index = self._index_for(tensor, index)
            return original(tensor, index)
        Tensor.__getitem__ = __getitem__  # type: ignore[assignment]
        stack.callback(delattr, Tensor, "__getitem__")

    def new_step(self) -> None:
        self._seen.clear()

    def _index_for(self, tensor: Tensor, index: Any) -> Any:
        rows_of = self._rows(tensor, index)
        if rows_of is None or len(rows_of) >= len(tensor) or not sites.is_user(sys._getframe(2).f_code.co_filename):
            return index
        self.any_cut = True
        if not self.stage.steps:
            return index
        key = (len(tensor), self._ordinal(len(tensor), rows_of))
        if key not in self.held:
            self.held[key] = rows_of if self.samples is None else rows.filled(rows_of, self.samples, len(rows_of))
        held = self.held[key]
        pinned = rows.filled(held, len(held), len(rows_of))
        self.exchanged(rows_of, pinned)
        return pinned

    @staticmethod
    def _rows(tensor: Tensor, index: Any) -> Tensor | None:
        """The numbers of the rows that are cut; None where this is no cut of a batch out of data."""
        if not plain(tensor) or not tensor.dim() or tensor.requires_grad:
            return None
        if isinstance(index, slice):
            cut = range(*index.indices(len(tensor)))
            return torch.tensor(list(cut)) if cut and index.step in (None, 1) else None
        if isinstance(index, list):
            return torch.tensor(index) if index and all(type(i) is int for i in index) else None
        if not plain(index) or index.dim() != 1 or index.dtype not in (torch.int64, torch.int32) or not len(index):
            return None
        return index.detach().clone()

    def _ordinal(self, length: int, index: Tensor) -> int:
        seen = self._seen.setdefault(length, [])
        for number, other in enumerate(seen):
            if torch.equal(other, index):
                return number
        seen.append(index)
        return len(seen) - 1
