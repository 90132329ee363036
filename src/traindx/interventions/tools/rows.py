"""Batches as nested structures of tensors: copied, cut to rows, filled with a few samples, told apart."""
from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from traindx.probes.tensors import plain, tensors_in

WHOLE = 1 << 20  # bytes of a tensor that are hashed in full; beyond, a sum over all and a sample
SAMPLED = 1 << 16


def mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same structure with each tensor replaced; what is neither tensor nor container stays the same object."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(item, change) for item in value))
    if type(value) in (list, tuple):
        return type(value)(mapped(item, change) for item in value)
    if isinstance(value, dict):
        return _like(value, {key: mapped(item, change) for key, item in value.items()})
    return value


def _like(value: dict[Any, Any], items: dict[Any, Any]) -> Any:
    if type(value) is dict:
        return items
    made = copy.copy(value)
    made.update(items)
    return made


def copied(value: Any) -> Any:
    """A copy that the program may write to: tensors cloned, other objects deep-copied where that works."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return mapped(value, lambda tensor: tensor.detach().clone())


def filled(tensor: Tensor, samples: int, rows: int) -> Tensor:
    """``rows`` rows that are the first ``samples`` ones in turn: as many as before, so nothing else has to fit anew."""
    index = torch.arange(rows, device=tensor.device) % min(samples, len(tensor))
    return tensor[index]


def leading(value: Any) -> int | None:
    """The number of rows that all tensors of a batch share; None where they do not."""
    sizes = {int(t.shape[0]) for t in tensors_in(value) if t.dim()}
    return sizes.pop() if len(sizes) == 1 else None


def digest(tensor: Tensor) -> str:
    """Short hash of shape, type and content."""
    words = hashlib.blake2b(f"{tuple(tensor.shape)} {tensor.dtype}".encode(), digest_size=8)
    if plain(tensor) and tensor.numel():
        words.update(_bytes(tensor.detach()))
    return words.hexdigest()


def _bytes(tensor: Tensor) -> bytes:
    flat = tensor.contiguous().cpu().reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat).reshape(-1)
    raw = flat.view(torch.uint8)
    if raw.numel() <= WHOLE:
        return bytes(raw.numpy().data)
    stride = (raw.numel() // SAMPLED) | 1
    total = int(raw.sum(dtype=torch.int64))
    return bytes(raw[::stride].contiguous().numpy().data) + total.to_bytes(8, "little")
