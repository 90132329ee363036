"""Which data a run was fed: digests of what the datasets hold, of the split, of the code that prepares a sample.

Nothing of the user's is run for it: no ``__getitem__``, which may draw random numbers, and no ``__len__`` beyond the loader's own.
"""
from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from types import CodeType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Subset

from traindx.core.observed.record import DataSeen, FirstInputs
from traindx.probes import patching, sites
from traindx.probes.session import ForwardRun, Probe, Session
from traindx.probes.tensors import readable, shape_of

LOADERS = 32
WHOLE = 32 * 2**20  # bytes of a dataset that are digested whole; of more, a sample
SAMPLE = 4096  # elements of one array
FORWARDS = 8
DEPTH = 4  # of Subset in Subset
PREPARING = ("transform", "transforms", "target_transform", "augment", "preprocess", "tokenizer")


def install(session: Session) -> None:
    session.add(Datasets)
    probe = next((probe for probe in session.probes if isinstance(probe, Datasets)), None)
    if probe is not None:
        patching.replace(session.stack, DataLoader, "__iter__", lambda original: _observed(original, probe))


def _observed(original: Any, probe: Datasets) -> Any:
    def __iter__(self: Any) -> Any:
        if probe.session.watching:
            probe.session.guard(probe, probe.iterated, self)
        return original(self)
    return patching.dressed(__iter__, original)


class Datasets(Probe):
    """Each loader once, when it is first iterated; the first inputs of training."""

    areas = ("data", "record")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._seen: set[int] = set()
        self._inputs: Any = hashlib.blake2b(digest_size=16)
        self._forwards = 0
        self._shape: tuple[int, ...] = ()

    def iterated(self, loader: Any) -> None:
        number = self.session.ids.of(loader)
        if number not in self._seen and len(self._seen) < LOADERS:
            self._seen.add(number)
            self.session.emit(describe(loader, number, self.session.step))

    def before_forward(self, run: ForwardRun) -> None:
        if self._forwards >= FORWARDS or not run.grad or not run.training:
            return
        for value in (*run.args, *run.kwargs.values()):
            if readable(value) and not value.requires_grad:
                self._shape = self._shape or shape_of(value)
                self._inputs.update(_tensor_bytes(value, SAMPLE))
        self._forwards += 1
        if self._forwards == FORWARDS:
            self._say()

    def at_end(self) -> None:
        if 0 < self._forwards < FORWARDS:
            self._say()

    def _say(self) -> None:
        if self._shape:
            self.session.emit(FirstInputs(step=self.session.step, key="first-inputs", digest=self._inputs.hexdigest(),
                                          forwards=self._forwards, shape=self._shape))


def describe(loader: Any, number: int, step: int) -> DataSeen:
    dataset, indices, subset = loader.dataset, None, None
    for _ in range(DEPTH):
        if not isinstance(dataset, Subset):
            break
        if indices is None:
            indices, subset = _digest([np.asarray(list(dataset.indices)).astype(np.int64).tobytes()]), len(dataset.indices)
        dataset = dataset.dataset
    try:
        content, coverage = content_of(dataset)
    except Exception:  # a tensor or a list of the user's own kind
        content, coverage = None, "none"
    generator = getattr(loader, "generator", None) or getattr(getattr(loader, "sampler", None), "generator", None)
    return DataSeen(step=step, key=f"data-{number}", loader=number, dataset_class=type(dataset).__name__, size=_size(dataset),
                    content=content, coverage=coverage, indices=indices, subset=subset, transforms=transforms_of(loader, dataset),
                    code=_class_code(type(dataset)), generator_seed=str(generator.initial_seed()) if generator is not None else None,
                    site=sites.here(2))


def _size(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:
        return None


def content_of(dataset: Any) -> tuple[str | None, str]:
    """A digest of the arrays that a dataset holds, and whether of all of them or of samples."""
    told = getattr(dataset, "_fingerprint", None)  # Hugging Face datasets know their own
    if isinstance(told, str):
        return told, "whole"
    held = list(_held(dataset))
    if not held:
        return None, "none"
    whole = sum(_bytes_of(value) for _, value in held) <= WHOLE
    parts = [part for name, value in held for part in (name.encode(), _bytes(value, None if whole else SAMPLE))]
    return _digest(parts), "whole" if whole else "sampled"


def _held(dataset: Any, depth: int = 2) -> Iterator[tuple[str, Any]]:
    """Tensors, arrays and lists in the attributes of a dataset, and of datasets inside it."""
    for name, value in sorted(getattr(dataset, "__dict__", {}).items()):
        if isinstance(value, (Tensor, np.ndarray)):
            yield name, value
        elif isinstance(value, (list, tuple)) and value:
            if isinstance(value[0], (Tensor, np.ndarray)):
                yield from ((f"{name}.{i}", item) for i, item in enumerate(value[:1000]) if isinstance(item, (Tensor, np.ndarray)))
            elif _is_plain(value[0]):
                yield name, value
            elif depth:
                yield from ((f"{name}.{i}.{inner}", item) for i, part in enumerate(value[:100]) for inner, item in _held(part, depth - 1))


def _is_plain(value: Any) -> bool:
    """A name, a number, or a few of them, as in ``[("cat/1.png", 0), ...]``."""
    each = value if isinstance(value, (tuple, list)) else (value,)
    return all(isinstance(item, (str, int, float)) for item in each[:8])


def _bytes_of(value: Any) -> int:
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    return int(value.nbytes) if isinstance(value, np.ndarray) else 512 * len(value)  # a list is digested by its text, which is slow


def _bytes(value: Any, limit: int | None) -> bytes:
    if isinstance(value, Tensor):
        return _tensor_bytes(value, limit)
    if isinstance(value, np.ndarray):
        head = f"{value.dtype}{value.shape}".encode()
        if value.dtype == object:
            return head
        return head + (value.tobytes() if limit is None else value.reshape(-1)[:: max(1, value.size // limit)].tobytes())
    step = 1 if limit is None else max(1, len(value) // limit)
    return f"{len(value)}{value[::step]!r}"[: 8 * WHOLE].encode("utf-8", "replace")


def _tensor_bytes(value: Tensor, limit: int | None) -> bytes:
    """Shape, type and values (at most ``limit`` of them, evenly spread); shape and type alone on a device."""
    head = f"{value.dtype}{shape_of(value)}".encode()
    if not readable(value) or value.is_conj() or value.is_neg():
        return head
    flat = value.detach().reshape(-1) if limit is None else value.detach().flatten()[:: max(1, value.numel() // limit)]
    return head + flat.contiguous().view(torch.uint8).numpy().tobytes() if flat.numel() else head


def transforms_of(loader: Any, dataset: Any) -> dict[str, str]:
    """What prepares a sample: the dataset's transforms and the collate function, each as its text and the digest of its code."""
    found = {name: _shown(value) for name in PREPARING if (value := getattr(dataset, "__dict__", {}).get(name)) is not None}
    if _code(loader.collate_fn) is not None and sites.is_user(loader.collate_fn.__code__.co_filename):
        found["collate_fn"] = _shown(loader.collate_fn)
    return found


def _shown(value: Any) -> str:
    """Text without addresses in memory, then the digest of the code where there is some."""
    try:
        text = re.sub(r" at 0x[0-9a-f]+", "", repr(value)).replace("\n", " ")[:300]
    except Exception:  # a text of the user's own making
        text = f"<{type(value).__qualname__}>"
    code = _code(value)
    return f"{text} {_code_digest(code)}" if code is not None else text


def _code(value: Any) -> CodeType | None:
    code = getattr(value, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _class_code(kind: type) -> str | None:
    """Of the methods that the user wrote."""
    codes = [code for function in vars(kind).values() if (code := _code(function)) is not None and sites.is_user(code.co_filename)]
    return _digest([_code_digest(code).encode() for code in codes]) if codes else None


def _code_digest(code: CodeType) -> str:
    """Of bytecode, names and constants: the same when only comments or blank lines changed."""
    constants = [_code_digest(c) if isinstance(c, CodeType) else repr(sorted(map(repr, c)) if isinstance(c, frozenset) else c)
                 for c in code.co_consts]  # a set's order is another one in every process
    return _digest([code.co_code, repr(code.co_names).encode(), repr(constants).encode()])


def _digest(parts: list[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
