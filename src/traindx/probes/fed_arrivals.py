"""What a DataLoader delivered last: described only once somebody asks, its tensors held weakly."""
from __future__ import annotations

import weakref
from dataclasses import dataclass
from types import CodeType
from typing import Any

from torch import Tensor

from traindx.core.observed import Site
from traindx.probes.loaders import Loaders, written
from traindx.probes.session import Session
from traindx.probes.tensors import readable, tensors_in


@dataclass
class Delivered:
    """The last batch of a DataLoader; its tensors weakly."""

    loader: int
    dataset: int
    iterations: int
    site: Site | None
    iter_site: Site | None
    sampler: str
    size: int | None
    workers: int
    tensors: list[weakref.ref[Tensor]]
    codes: tuple[CodeType, ...]  # what the user wrote of how it is made


class Arrivals:
    """The latest batch of any loader."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._arrived: tuple[weakref.ref[Any], list[weakref.ref[Tensor]]] | None = None  # loader and tensors
        self._described: Delivered | None = None  # what arrived, once somebody asked

    def take(self, loader: Any, batch: Any) -> None:
        self._described = None
        self._arrived = (weakref.ref(loader), [weakref.ref(t) for t in tensors_in(batch, 6)]) if loader is not None else None

    @property
    def latest(self) -> Delivered | None:
        if self._arrived is not None:
            (ref, tensors), self._arrived = self._arrived, None
            loader = ref()
            self._described = self._describe(loader, tensors) if loader is not None else None
        return self._described

    def _describe(self, loader: Any, tensors: list[weakref.ref[Tensor]]) -> Delivered | None:
        made = Loaders.instance._seen.get(self.session.ids.of(loader))
        if made is None:
            return None
        return Delivered(
            made.id,
            identity_of(self.session, loader.dataset),
            made.iterations,
            made.site,
            made.iter_site,
            made.sampler if not getattr(loader.sampler, "replacement", False) else "with replacement",
            made.dataset_size,
            made.workers,
            tensors,
            tuple(written(loader)),
        )

    def of(self, tensor: Tensor) -> Delivered | None:
        """The latest, where this tensor may have come from it."""
        delivered = self.latest
        if delivered is None:
            return None
        alive = [t for ref in delivered.tensors if (t := ref()) is not None]
        return delivered if any(t.dim() and t.shape[0] == tensor.shape[0] for t in alive) else None

    def on_host(self, tensor: Tensor) -> Tensor:
        """For an input on a device: the loader's own copy, where shapes agree (a device is never waited for)."""
        if tensor.device.type == "cpu" or self.latest is None:
            return tensor
        for ref in self.latest.tensors:
            other = ref()
            if other is not None and readable(other) and other.shape == tensor.shape:
                return other
        return tensor


def identity_of(session: Session, thing: Any) -> int:
    try:
        return session.ids.of(thing)
    except TypeError:
        return id(thing)  # lists cannot be held weakly
