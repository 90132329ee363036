"""The seams of torch.distributed within one process: the sampler's epochs, and whether forwards pass through the wrapper."""
from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

from traindx.core.observed import Site
from traindx.core.observed.ranks import SamplerEpochs, WrapperUse
from traindx.probes import modules, patching, sites
from traindx.probes.loaders import made_at
from traindx.probes.session import BackwardRun, ForwardRun, Probe, Session

NAMES = 8


def install(session: Session) -> None:
    session.add(Epochs)
    if torch.distributed.is_available():
        session.add(Wrappers)


class Epochs(Probe):
    """Counts how often a sampler began again with the same epoch number."""

    areas = ("rank",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._made: weakref.WeakKeyDictionary[Any, Site | None] = weakref.WeakKeyDictionary()
        self._seen: dict[int, SamplerEpochs] = {}
        self._latest: tuple[int, Any] = 0, None  # sampler of the last batch, and where its loader was made
        self._trained: set[int] = set()
        patching.replace(session.stack, DistributedSampler, "__init__", self._observed_init)
        patching.replace(session.stack, DistributedSampler, "__iter__", self._observed_iter)

    def _observed_init(self, original: Any) -> Any:
        def __init__(sampler: Any, *args: Any, **kwargs: Any) -> None:
            original(sampler, *args, **kwargs)
            if self.session.watching:
                self._made[sampler] = sites.here(2)
        return patching.dressed(__init__, original)

    def _observed_iter(self, original: Any) -> Any:
        def __iter__(sampler: Any) -> Any:
            if self.session.watching and sampler.shuffle:
                self.session.guard(self, self._began, sampler, sites.here(2))
            return original(sampler)
        return patching.dressed(__iter__, original)

    def _began(self, sampler: Any, site: Site | None) -> None:
        id = self.session.ids.of(sampler)
        seen = self._seen.get(id)
        if seen is None:
            self._seen[id] = SamplerEpochs(step=self.session.step, key=f"epochs-{id}", iterations=1, same=0, epoch=sampler.epoch,
                                           replicas=sampler.num_replicas, made_at=self._made.get(sampler), iter_site=site)
        else:
            self._seen[id] = replace(seen, iterations=seen.iterations + 1, same=seen.same + (seen.epoch == sampler.epoch), epoch=sampler.epoch)

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        sampler = getattr(loader, "sampler", None)
        if isinstance(sampler, DistributedSampler):
            self._latest = self.session.ids.of(sampler), made_at(loader)
        else:
            self._latest = 0, None

    def before_backward(self, run: BackwardRun) -> None:
        id, loader_site = self._latest
        if id and id not in self._trained and id in self._seen:
            self._trained.add(id)
            self._seen[id] = replace(self._seen[id], loader_site=loader_site)

    def on_tick(self, step: int) -> None:
        if self._trained and step & (step - 1) == 0:
            self.at_end()

    def at_end(self) -> None:
        for id in self._trained:
            self.session.emit(self._seen[id])


class Wrappers(Probe):
    """Follows the modules that were wrapped."""

    areas = ("rank",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._wrappers: weakref.WeakKeyDictionary[nn.Module, weakref.ref[DistributedDataParallel]] = weakref.WeakKeyDictionary()
        self._seen: dict[int, WrapperUse] = {}
        self._open: list[tuple[DistributedDataParallel, Site | None]] = []  # forwards since the last backward; the site of one around
        patching.replace(session.stack, DistributedDataParallel, "__init__", self._observed)

    def _observed(self, original: Any) -> Any:
        def __init__(wrapper: Any, module: nn.Module, *args: Any, **kwargs: Any) -> None:
            original(wrapper, module, *args, **kwargs)
            if self.session.watching:
                self.session.guard(self, self._wrapped, wrapper, module)
        return patching.dressed(__init__, original)

    def _wrapped(self, wrapper: DistributedDataParallel, module: nn.Module) -> None:
        self._wrappers[module] = weakref.ref(wrapper)
        id = self.session.ids.of(wrapper)
        self._seen[id] = WrapperUse(
            step=self.session.step, key=f"wrapper-{id}", world=torch.distributed.get_world_size(),
            made_at=modules.made_at(wrapper) or sites.here(3), through=0, around=0, finds_unused=bool(wrapper.find_unused_parameters))

    def before_forward(self, run: ForwardRun) -> None:
        if not self._seen or not (run.grad and run.training):
            return
        if isinstance(run.module, DistributedDataParallel):
            self._open.append((run.module, None))
        elif (ref := self._wrappers.get(run.module)) is not None and (wrapper := ref()) is not None:
            self._open.append((wrapper, run.site))

    def after_backward(self, run: BackwardRun) -> None:
        opened, self._open = self._open, []
        for wrapper, around in opened if run.accumulate else ():
            id = self.session.ids.of(wrapper)
            seen = self._seen.get(id)
            if seen is not None:
                unused = tuple(name for name, p in wrapper.module.named_parameters() if p.requires_grad and p.grad is None)
                kept = unused if seen.backwards == 0 else tuple(name for name in seen.unused if name in unused)
                self._seen[id] = replace(
                    seen, through=seen.through + (around is None), around=seen.around + (around is not None),
                    around_site=seen.around_site or around, backwards=seen.backwards + 1, unused=kept)

    def at_end(self) -> None:
        for seen in self._seen.values():
            self.session.emit(replace(seen, unused=seen.unused[:NAMES]))
