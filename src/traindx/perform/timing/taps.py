"""The seams that the stage does not have: fetching, reading values, copies between devices, logging."""
from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from traindx.core.observed import Site
from traindx.interventions.tools import logs
from traindx.interventions.tools.handmade import HandMade
from traindx.interventions.tools.stage import loader_of
from traindx.perform.timing.clock import Clock
from traindx.probes import patching, sites
from traindx.probes.loaders import written

READS = ("item", "__float__", "__int__", "__bool__", "tolist", "numpy")
MOVES = ("to", "cuda", "cpu")
AWAY = ("optimizer", "backward", "input", "logging", "evaluation")  # what is read or moved in there is part of it


@dataclass
class Loaders:
    """What is known of the program's loaders: how often they are made and begun, at which lines, and how the last was set."""

    made: dict[Site, int] = field(default_factory=dict)
    begun: dict[Site, list[float]] = field(default_factory=dict)  # line -> [starts, seconds]
    batches: int = 0
    by_hand: int = 0  # times that the program's own lines made (part of) a batch
    settings: dict[str, Any] = field(default_factory=dict)
    fetch_site: Site | None = None
    made_site: Site | None = None


class Taps:
    """All patches of one trial. They count nothing unless the clock runs."""

    def __init__(self, clock: Clock, stack: ExitStack) -> None:
        self.clock, self.stack = clock, stack
        self.loaders = Loaders()
        self._sites: weakref.WeakKeyDictionary[Any, Site] = weakref.WeakKeyDictionary()
        replace = patching.replace
        replace(stack, DataLoader, "__init__", self._made)
        replace(stack, DataLoader, "__iter__", self._begun)
        replace(stack, _BaseDataLoaderIter, "__next__", self._fetched)
        replace(stack, HandMade, "give", self._made_by_hand)
        for name in READS:
            replace(stack, Tensor, name, partial(self._phase, "sync"))
        for name in MOVES:
            replace(stack, Tensor, name, self._moved)
        replace(stack, Optimizer, "zero_grad", partial(self._phase, "optimizer"))
        replace(stack, torch.nn.Module, "zero_grad", partial(self._phase, "optimizer"))
        replace(stack, torch.cuda, "synchronize", partial(self._phase, "sync"))

    def watch_logs(self) -> None:
        """Of the libraries that the program has loaded by now."""
        logs.install(self.stack, lambda original, name: self._phase("logging", original))

    @property
    def watching(self) -> bool:
        return self.clock.running and self.clock.stage.watching and self.clock.phase not in AWAY

    # -- loaders ----------------------------------------------------------------------------------------------------------

    def _made(self, original: Any) -> Any:
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
            site = sites.here(2)
            if site is not None:
                self._sites[loader] = site
            if not self.watching:
                original(loader, *args, **kwargs)
                return
            if site is not None:
                self.loaders.made[site] = self.loaders.made.get(site, 0) + 1
            self.clock.timed("input", original, (loader, *args), kwargs)
        return patching.dressed(__init__, original)

    def _begun(self, original: Any) -> Any:
        def __iter__(loader: Any) -> Any:
            if not self.watching:
                return original(loader)
            began = time.perf_counter()
            iterator = self.clock.timed("input", original, (loader,), {})
            row = self.loaders.begun.setdefault(self._sites.get(loader) or sites.here(2) or _NOWHERE, [0, 0.0])
            row[0] += 1
            row[1] += time.perf_counter() - began
            return iterator
        return patching.dressed(__iter__, original)

    def _fetched(self, original: Any) -> Any:
        def __next__(iterator: Any) -> Any:
            if not self.watching or not torch.is_grad_enabled():
                return original(iterator)
            self.loaders.batches += 1
            if (loader := loader_of(iterator)) is not None:
                self._look_at(loader)
            return self.clock.timed("input", original, (iterator,), {})
        return patching.dressed(__next__, original)

    def _made_by_hand(self, original: Any) -> Any:
        def give(made: HandMade, key: int, make: Callable[[], Any]) -> Any:
            if not self.watching:
                return original(made, key, make)
            self.loaders.by_hand += 1
            return self.clock.timed("input", original, (made, key, make), {})
        return give

    def _look_at(self, loader: Any) -> None:
        found = self.loaders
        if found.settings and found.settings.get("id") == id(loader):
            return
        code = next(written(loader), None)
        found.fetch_site = sites.at(code.co_filename, code.co_firstlineno, code.co_name) if code is not None else None
        found.made_site = self._sites.get(loader)
        found.settings = {
            "id": id(loader), "num_workers": loader.num_workers, "prefetch_factor": loader.prefetch_factor, "pin_memory": loader.pin_memory,
            "persistent_workers": loader.persistent_workers, "batch_size": loader.batch_size,
            "iterable": isinstance(loader.dataset, torch.utils.data.IterableDataset)}

    # -- the rest ---------------------------------------------------------------------------------------------------------

    def _phase(self, phase: str, original: Any) -> Any:
        def timed(*args: Any, **kwargs: Any) -> Any:
            if not self.watching:
                return original(*args, **kwargs)
            return self.clock.timed(phase, original, args, kwargs, sites.here(2))
        return patching.dressed(timed, original)

    def _moved(self, original: Any) -> Any:
        def move(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.watching:
                return original(tensor, *args, **kwargs)
            target = _target(original.__name__, args, kwargs)
            if target is None or target == tensor.device.type:
                return original(tensor, *args, **kwargs)
            return self.clock.timed("sync" if target == "cpu" else "transfer", original, (tensor, *args), kwargs, sites.here(2))
        return patching.dressed(move, original)


_NOWHERE = Site("", 0)


def _target(name: str, args: Any, kwargs: Any) -> str | None:
    """The kind of device that a copy goes to; None where it goes to none."""
    if name in ("cuda", "cpu"):
        return name
    for value in (kwargs.get("device"), kwargs.get("other"), *args[:1]):
        if isinstance(value, torch.device):
            return value.type
        if isinstance(value, str):
            return value.partition(":")[0]
        if isinstance(value, Tensor):
            return value.device.type
    return None
