"""Looking at tensors without touching them: what may be looked at, and small facts of it."""
from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.parameter import is_lazy

_PLAIN = (Tensor, torch.nn.Parameter)
_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
_strided = torch.strided
item, total = torch._C.TensorBase.item, torch._C.TensorBase.sum  # past whoever watches them
SAMPLE = 4096
FSDP = "torch.distributed.fsdp"  # as long as it is not imported, nobody frees what may be looked at


def plain(value: Any) -> bool:
    """A strided, materialised tensor that may be read: not a subclass, not under vmap or grad transforms, not meta or sparse."""
    return (type(value) in _PLAIN and value.layout is _strided and not value.is_meta and not _is_wrapped(value)
            and not value.is_quantized and not value.is_nested and not (FSDP in sys.modules and is_freed(value)))


def readable(value: Any) -> bool:
    """Plain and on the CPU: reading it costs no device synchronisation."""
    return (type(value) in _PLAIN and value.is_cpu and value.layout is _strided and not _is_wrapped(value)
            and not value.is_quantized and not value.is_nested  # asking for ``device`` costs ten times as much
            and not (FSDP in sys.modules and is_freed(value)))


def is_freed(value: Tensor) -> bool:
    """FSDP takes the memory of gathered parameters away after use and leaves the tensors: reading one would end the process."""
    return value.untyped_storage().nbytes() == 0 and value.numel() > 0


def tensors_in(value: Any, limit: int = 16) -> Iterator[Tensor]:
    """Tensors in nested tuples, lists, dicts and output objects, depth first, at most ``limit``."""
    stack, count = [value], 0
    while stack and count < limit:
        value = stack.pop()
        kind = type(value)
        if kind is tuple or kind is list or isinstance(value, (list, tuple)):
            stack.extend(value[63::-1])
        elif kind is Tensor or isinstance(value, Tensor):
            if not value.is_nested:  # which has no shape to tell
                count += 1
                yield value
        elif kind is dict or isinstance(value, dict):
            if value:
                stack.extend(list(value.values())[63::-1])
        elif (fields := getattr(kind, "__dataclass_fields__", None)) is not None:  # the object itself may answer anything
            stack.extend(vars(value).get(name) for name in reversed(list(fields)) if hasattr(value, "__dict__"))


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a tensor; () for anything else, and for parameters of lazy layers that have none yet."""
    return tuple(int(n) for n in value.shape) if isinstance(value, Tensor) and not is_lazy(value) else ()


def dtype_of(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.") if isinstance(value, Tensor) else type(value).__name__


def number(value: Any) -> float | None:
    """A one-element CPU tensor as a float; None for anything else (a device is never waited for)."""
    if not readable(value) or value.numel() != 1:
        return None
    number = item(value)
    return number if type(number) is float else number.real if isinstance(number, complex) else float(number)


def number_of(value: Any) -> float | None:
    """A number, or a tensor of one, as a float."""
    if type(value) is float:
        return value
    if isinstance(value, Tensor):
        return number(value)
    return float(value) if isinstance(value, (int, float)) else None


def sample(value: Tensor, limit: int = SAMPLE) -> Tensor:
    """At most ``limit`` elements, flat, evenly strided (odd stride, lest it fall on one channel); a view where possible."""
    flat = value.detach().reshape(-1)
    stride = max(1, flat.numel() // limit)
    return flat[:: stride | 1] if stride > 1 else flat


class Marks:
    """Facts pinned to the memory of tensors: found again through views and detach, forgotten when the memory dies or is written to.

    Keyed on the Python storage object weakly: neither ids nor data pointers (both are reused), nor torch's own weak storage
    references (those keep the memory itself).
    """

    def __init__(self) -> None:
        self._marks: dict[int, tuple[weakref.ref[Any], int, Any]] = {}

    def put(self, tensor: Tensor, fact: Any) -> None:
        storage = tensor.untyped_storage()
        key = id(storage)
        version = -1 if tensor.is_inference() else tensor._version
        self._marks[key] = (weakref.ref(storage, lambda ref, key=key: self._forget(key, ref)), version, fact)  # type: ignore[misc]

    def get(self, tensor: Tensor) -> Any:
        storage = tensor.untyped_storage()
        entry = self._marks.get(id(storage))
        if entry is None or entry[0]() is not storage:
            return None
        return entry[2] if entry[1] < 0 or tensor.is_inference() or entry[1] == tensor._version else None

    def _forget(self, key: int, ref: weakref.ref[Any]) -> None:
        entry = self._marks.get(key)
        if entry is not None and entry[0] is ref:
            del self._marks[key]
