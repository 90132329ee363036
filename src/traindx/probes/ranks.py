"""The seams of torch.distributed within one process: which rank it is, the sampler's epochs, and whether forwards pass through the wrapper."""
from __future__ import annotations

import weakref
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

from traindx.core.observed import Site
from traindx.core.observed.ranks import RankSeen, SamplerEpochs, WrapperUse
from traindx.probes import modules, patching, sites
from traindx.probes.loaders import made_at
from traindx.probes.session import BackwardRun, ForwardRun, Probe, Session

NAMES = 8


def install(session: Session) -> None:
    session.add(Epochs)
    if torch.distributed.is_available():
        session.add(Membership)
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


class Membership(Probe):
    """Says which rank this process is, once it is one."""

    areas = ("rank",)
    instance: Membership | None = None

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.rank, self.world = 0, 1
        Membership.instance = self
        for owner in (torch.distributed, torch.distributed.distributed_c10d):
            patching.replace(session.stack, owner, "init_process_group", self._observed)

    def _observed(self, original: Any) -> Any:
        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self.session.guard(self, self._joined, sites.here(2))
            return result
        return patching.dressed(init_process_group, original)

    def on_tick(self, step: int) -> None:
        if self.world == 1 and step == 1 and torch.distributed.is_initialized():  # by another door
            self._joined(None)

    def _joined(self, site: Site | None) -> None:
        if self.world > 1 or not torch.distributed.is_initialized():
            return
        self.rank, self.world = torch.distributed.get_rank(), torch.distributed.get_world_size()
        self.session.emit(RankSeen(step=self.session.step, key="rank", rank=self.rank, world=self.world,
                                   backend=str(torch.distributed.get_backend()), site=site))


def world() -> int:
    """How many ranks this process trains with; 1 until it has joined them."""
    return Membership.instance.world if Membership.instance is not None else 1


def power_of_two(step: int) -> bool:
    """The steps that are compared across ranks: the same on each of them."""
    return step & (step - 1) == 0 or step <= 8


@dataclass
class Known:
    """A parameter as the wrapper took it: the node of autograd that its hook sits on."""

    parameter: Any
    node: Any
    trained: bool


class Wrappers(Probe):
    """Follows the modules that were wrapped."""

    areas = ("rank",)
    instance: Wrappers | None = None

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._wrappers: weakref.WeakKeyDictionary[nn.Module, weakref.ref[DistributedDataParallel]] = weakref.WeakKeyDictionary()
        self._known: weakref.WeakKeyDictionary[nn.Module, dict[str, Known]] = weakref.WeakKeyDictionary()
        self._seen: dict[int, WrapperUse] = {}
        self._open: list[tuple[DistributedDataParallel, Site | None]] = []  # forwards since the last backward; the site of one around
        self._converting = False
        self._local: set[int] = set()  # wrappers whose hook averages within a part of the group
        Wrappers.instance = self
        patching.replace(session.stack, DistributedDataParallel, "__init__", self._observed)
        patching.replace(session.stack, DistributedDataParallel, "register_comm_hook", self._observed_hook)
        patching.replace(session.stack, nn.Module, "_apply", self._observed_apply)
        from torch.distributed.algorithms.join import Join  # not there where torch was built without
        patching.replace(session.stack, Join, "__enter__", self._observed_join)

    def _observed(self, original: Any) -> Any:
        def __init__(wrapper: Any, module: nn.Module, *args: Any, **kwargs: Any) -> None:
            original(wrapper, module, *args, **kwargs)
            if self.session.watching:
                self.session.guard(self, self._wrapped, wrapper, module)
        return patching.dressed(__init__, original)

    def _observed_apply(self, original: Any) -> Any:
        def _apply(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self._converting or not self._seen:
                return original(module, *args, **kwargs)
            self._converting = True
            try:
                return original(module, *args, **kwargs)
            finally:
                self._converting = False
                self.session.guard(self, self._converted, module, sites.here(2))
        return patching.dressed(_apply, original)

    def _observed_hook(self, original: Any) -> Any:
        def register_comm_hook(wrapper: Any, state: Any, hook: Any) -> Any:
            if "local" in getattr(hook, "__name__", "").lower():  # torch's post_localSGD_hook, or one made after it
                self._local.add(self.session.ids.of(wrapper))
            return original(wrapper, state, hook)
        return patching.dressed(register_comm_hook, original)

    def _observed_join(self, original: Any) -> Any:
        def __enter__(join: Any) -> Any:
            self.session.guard(self, self._joined, list(getattr(join, "_joinables", ())))
            return original(join)
        return patching.dressed(__enter__, original)

    def _wrapped(self, wrapper: DistributedDataParallel, module: nn.Module) -> None:
        self._wrappers[module] = weakref.ref(wrapper)
        id = self.session.ids.of(wrapper)
        self._known[wrapper] = {name: Known(p, node_of(p), p.requires_grad) for name, p in module.named_parameters()}
        self._seen[id] = WrapperUse(
            step=self.session.step, key=f"wrapper-{id}", world=torch.distributed.get_world_size(),
            made_at=modules.made_at(wrapper) or sites.here(3), through=0, around=0, finds_unused=bool(wrapper.find_unused_parameters),
            ranks=tuple(torch.distributed.get_process_group_ranks(wrapper.process_group)))

    def _converted(self, module: nn.Module, site: Site | None) -> None:
        """The whole wrapper or its module; the first such line since it was made counts."""
        ref = self._wrappers.get(module)
        wrapper = module if isinstance(module, DistributedDataParallel) else ref() if ref is not None else None
        seen = self._seen.get(self.session.ids.of(wrapper)) if wrapper is not None else None
        if seen is not None and seen.lost_site is None:
            self._seen[self.session.ids.of(wrapper)] = replace(seen, lost_site=site)

    def _joined(self, joinables: list[Any]) -> None:
        for wrapper in joinables:
            seen = self._seen.get(self.session.ids.of(wrapper))
            if seen is not None:
                self._seen[self.session.ids.of(wrapper)] = replace(seen, joins=True)

    def wrappers(self) -> list[DistributedDataParallel]:
        """Those that are alive, in the order in which they were made."""
        return [wrapper for ref in self._wrappers.values() if (wrapper := ref()) is not None]

    def averages_all(self, wrapper: DistributedDataParallel) -> bool:
        """Whether each backward averages over the whole group: not under local SGD."""
        return self.session.ids.of(wrapper) not in self._local

    def use_of(self, wrapper: DistributedDataParallel) -> WrapperUse | None:
        return self._seen.get(self.session.ids.of(wrapper))

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
                self._seen[id] = self._used(self._counted(seen, wrapper, around), wrapper)

    def _counted(self, seen: WrapperUse, wrapper: DistributedDataParallel, around: Site | None) -> WrapperUse:
        unused = tuple(name for name, p in wrapper.module.named_parameters() if p.requires_grad and p.grad is None)
        return replace(
            seen, through=seen.through + (around is None), around=seen.around + (around is not None), around_site=seen.around_site or around,
            backwards=seen.backwards + 1, unused=unused if seen.backwards == 0 else tuple(n for n in seen.unused if n in unused),
            synced=seen.synced + bool(wrapper.require_backward_grad_sync))

    def _used(self, seen: WrapperUse, wrapper: DistributedDataParallel) -> WrapperUse:
        """With the parameters that the wrapper's hooks do not reach, looked for until there are some."""
        if seen.lost or not power_of_two(seen.backwards):
            return seen
        lost = lost_by(wrapper, self._known.get(wrapper, {}))
        return replace(seen, lost=tuple(lost), how=next(iter(lost.values()), ""))

    def on_tick(self, step: int) -> None:
        if self._seen and power_of_two(step):
            self.at_end()

    def at_end(self) -> None:
        for seen in self._seen.values():
            self.session.emit(replace(seen, unused=seen.unused[:NAMES], lost=seen.lost[:NAMES]))


def node_of(parameter: torch.Tensor) -> Any:
    """The node that accumulates a parameter's gradient, None where it has none: the hook of the wrapper sits on it."""
    if not parameter.requires_grad:
        return None
    with torch.enable_grad():
        function = parameter.view_as(parameter).grad_fn
    return function.next_functions[0][0] if function is not None else None


def lost_by(wrapper: DistributedDataParallel, known: dict[str, Known]) -> dict[str, str]:
    """Parameters with a gradient that the wrapper does not average, and what became of them since it was made."""
    ignored = getattr(wrapper, "parameters_to_ignore", ())
    lost: dict[str, str] = {}
    for name, parameter in wrapper.module.named_parameters():
        if parameter.grad is None or not parameter.requires_grad or name in ignored:
            continue
        before = known.get(name)
        if before is None:
            lost[name] = "added"
        elif before.parameter is not parameter:
            lost[name] = "replaced"
        elif not before.trained:
            lost[name] = "unfrozen"
        elif node_of(parameter) is not before.node:
            lost[name] = "converted"
    return lost
