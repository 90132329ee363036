"""The seam of the DataLoader: batches, the time spent waiting for them, and how the loader was built."""
from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from traindx.core.observed import Site, changed
from traindx.core.observed.data import LoaderMade
from traindx.probes import patching, sites
from traindx.probes.session import Probe, Session

LOADERS = 200  # described; a program that makes one a step makes them all alike

_made_at: weakref.WeakKeyDictionary[Any, Site | None] = weakref.WeakKeyDictionary()
_owner: weakref.WeakKeyDictionary[Any, tuple[Callable[[], Any], int]] = weakref.WeakKeyDictionary()


def made_at(loader: Any) -> Site | None:
    """Where a loader was constructed."""
    return _made_at.get(loader)


def owner_of(iterator: Any) -> tuple[Callable[[], Any], int] | None:
    """``(its loader while that is alive, the loader's id)`` of an iterator over a loader."""
    return _owner.get(iterator)


def install(session: Session) -> None:
    patching.replace(session.stack, DataLoader, "__init__", lambda original: _observed_init(original, session))
    patching.replace(session.stack, DataLoader, "__iter__", lambda original: _observed_iter(original, session))
    patching.replace(session.stack, _BaseDataLoaderIter, "__next__", lambda original: _observed_next(original, session))
    session.add(Loaders)


def _observed_init(original: Any, session: Session) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if session.watching:
            _made_at[self] = sites.here(2)
        original(self, *args, **kwargs)
    return patching.dressed(__init__, original)


def _observed_iter(original: Any, session: Session) -> Any:
    def __iter__(self: Any) -> Any:
        began = time.perf_counter()
        iterator = original(self)
        if session.watching:
            try:
                id = Loaders.instance.started(self, sites.here(2), time.perf_counter() - began)
                _owner[iterator] = _kept(self), id
            except Exception:
                pass  # an iterator that cannot be weakly held: its batches stay without a loader
        return iterator
    return patching.dressed(__iter__, original)


def _kept(loader: Any) -> Callable[[], Any]:
    """The loader lives as long as its iterator (``for batch in DataLoader(...)``), except where it holds the iterator itself."""
    return weakref.ref(loader) if loader.persistent_workers else lambda: loader


def _observed_next(original: Any, session: Session) -> Any:
    def __next__(self: Any) -> Any:
        if not session.watching:
            return original(self)
        began = time.perf_counter()
        batch = original(self)
        seconds = time.perf_counter() - began
        ref, id = _owner.get(self, (None, 0))
        Loaders.instance.counted(id, seconds)
        session.call("on_batch", ref() if ref is not None else None, batch, seconds)
        return batch
    return patching.dressed(__next__, original)


class Loaders(Probe):
    """Loaders and their waiting time."""

    areas = ("data", "speed")
    instance: Loaders

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._seen: dict[int, LoaderMade] = {}
        self._said: dict[int, LoaderMade] = {}
        self.latest: LoaderMade | None = None  # whose batch came last
        Loaders.instance = self

    def started(self, loader: Any, site: Site | None, seconds: float) -> int:
        id = self.session.ids.of(loader)
        seen = self._seen.get(id)
        if seen is None:
            if len(self._seen) >= LOADERS:
                return id
            seen = self._describe(loader, id, site)
        self._seen[id] = changed(seen, iterations=seen.iterations + 1, start_seconds=seen.start_seconds + seconds)
        if seen.iterations == 0:
            self.session.emit(self._seen[id])
        return id

    def iteration(self, loader: Any) -> tuple[int, int]:
        """``(id, how often it was iterated)``: tells one pass over a loader from the next."""
        id = self.session.ids.of(loader)
        seen = self._seen.get(id)
        return id, seen.iterations if seen is not None else 0

    def _describe(self, loader: Any, id: int, site: Site | None) -> LoaderMade:
        sampler = _order(loader)
        shuffle = True if isinstance(sampler, RandomSampler) else False if isinstance(sampler, SequentialSampler) else None
        return LoaderMade(
            step=self.session.step, key=f"loader-{id}", id=id, site=_made_at.get(loader), iter_site=site,
            dataset_class=type(loader.dataset).__name__, dataset_size=_length(loader.dataset), batch_size=loader.batch_size,
            shuffle=shuffle, sampler=type(sampler).__name__, workers=loader.num_workers, drop_last=bool(loader.drop_last))

    def counted(self, id: int, seconds: float) -> None:
        """A batch came out of a loader; seconds as waited for it."""
        self.latest = self._seen.get(id)
        seen = self._seen.get(id)
        if seen is not None:
            self._seen[id] = changed(seen, batches=seen.batches + 1, wait_seconds=seen.wait_seconds + seconds)

    def on_tick(self, step: int) -> None:
        if self.session.detailed:
            self.at_end()

    def at_end(self) -> None:
        for id, seen in self._seen.items():
            if self._said.get(id) is not seen:
                self._said[id] = seen
                self.session.emit(seen)


def _order(loader: Any) -> Any:
    """What decides the order: the sampler, unless a batch sampler of the user's own stands in for it."""
    batches = getattr(loader, "batch_sampler", None)
    return getattr(loader, "sampler", None) if batches is None or type(batches) is BatchSampler else batches


def written(loader: Any) -> Iterator[CodeType]:
    """What the user wrote of how a batch is made: the dataset's methods (also behind a Subset), the collate function."""
    dataset = loader.dataset
    for _ in range(3):
        dataset = getattr(dataset, "dataset", dataset)
    for function in (type(dataset).__dict__.get("__getitem__"), type(dataset).__dict__.get("__iter__"), loader.collate_fn):
        code = getattr(function, "__code__", None)
        if code is not None and sites.is_user(code.co_filename):
            yield code


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:
        return None
