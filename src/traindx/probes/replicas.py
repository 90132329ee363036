"""What ranks hold alike, as checksums: each writes down its own, and whoever judges compares them. Nothing is sent.

Looked at before steps 1 to 8 and every power of two, so that all ranks look at the same. Checksums on a GPU are copied without waiting and
written some steps later (not run on a GPU).
"""
from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

from traindx.core.observed import Site
from traindx.core.observed.ranks import ReplicaSeen, ReplicaWeights
from traindx.probes import collectives, ranks
from traindx.probes.modules import Forwards
from traindx.probes.monitors import READ_LATER
from traindx.probes.session import Probe, Session, StepRun
from traindx.probes.tensors import plain

VALUES = 256  # of a replica, beside the checksums: they say how far two are apart
MOST = 2048  # parameters of a replica
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
NEARLY_ALL = 0.9  # of the parameters reduced between backward and step: the program averages by hand


def install(session: Session) -> None:
    if torch.distributed.is_available():
        session.add(Replicas)


@dataclass
class Replica:
    seen: ReplicaSeen
    parameters: list[weakref.ref[Any]]
    buffers: list[weakref.ref[Any]]
    size: int  # elements
    optimizers: dict[int, bool] = field(default_factory=dict)  # whether they hold it
    steps: int = 0
    averaged: int = 0


class Replicas(Probe):
    """The wrapped modules; without any, what the optimizers hold."""

    areas = ("rank",)
    always = ("before_step",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._replicas: list[Replica] = []
        self._optimizers: dict[int, weakref.ref[Any]] = {}
        self._sampled = False  # the last batch came from a DistributedSampler
        self._written = 0
        self._sent: deque[tuple[ReplicaWeights, Tensor, Any]] = deque(maxlen=64)

    def attends(self) -> tuple[str, ...]:
        return self.always if ranks.world() > 1 else ()

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        self._sampled = isinstance(getattr(loader, "sampler", None), DistributedSampler)

    def before_step(self, run: StepRun) -> None:
        """Before, not after: what the program averages after a step is then averaged."""
        if ranks.world() == 1 or self.session.in_backward:  # an optimizer in backward steps when some gradients are not there yet
            return
        self._optimizers.setdefault(run.id, weakref.ref(run.optimizer))
        step = self.session.step
        due = ranks.power_of_two(step) and step != self._written
        if due:
            self._find(run.site)
        self._count(run)
        if due:
            self._write(step)
        self._collect()

    def at_end(self) -> None:
        if self._replicas and self._written != self.session.step:
            self._find(None)
            self._write(self.session.step)
        self._collect(wait=True)

    def _count(self, run: StepRun) -> None:
        """A step of the replicas that this optimizer holds, and whether as much was reduced before it as they have elements."""
        reduced = collectives.Collectives.instance.take() if collectives.Collectives.instance is not None else 0
        for replica in self._replicas:
            if run.id not in replica.optimizers:
                first = replica.parameters[0]()
                replica.optimizers[run.id] = any(p is first for group in run.optimizer.param_groups for p in group["params"])
            if replica.optimizers[run.id]:
                replica.steps += 1
                replica.averaged += reduced >= NEARLY_ALL * replica.size > 0

    # -- what there is ----------------------------------------------------------------------------------------------

    def _find(self, site: Site | None) -> None:
        known = {id(ref()) for replica in self._replicas for ref in replica.parameters}
        wrappers = ranks.Wrappers.instance.wrappers() if ranks.Wrappers.instance is not None else []
        for wrapper in wrappers:
            self._find_wrapped(wrapper, known, site)
        if not wrappers:
            self._find_bare(known, site)
        for replica in self._replicas:
            self._update(replica)

    def _find_wrapped(self, wrapper: DistributedDataParallel, known: set[int], site: Site | None) -> None:
        seam = ranks.Wrappers.instance
        own = [(n, p) for n, p in wrapper.module.named_parameters() if n not in getattr(wrapper, "parameters_to_ignore", ())]
        if seam is not None and own and id(own[0][1]) not in known:
            use, held = seam.use_of(wrapper), "ddp" if seam.averages_all(wrapper) else "local"
            self._add(held, own, list(wrapper.module.named_buffers()), use.ranks if use else (), use.made_at if use else None, site)

    def _find_bare(self, known: set[int], site: Site | None) -> None:
        held = [p for ref in self._optimizers.values() if (o := ref()) is not None for group in o.param_groups for p in group["params"]]
        if held and id(held[0]) not in known:
            names = {id(p): name for root in (Forwards.instance.roots() if Forwards.instance else ()) for name, p in root.named_parameters()}
            named = [(names.get(id(p), f"parameter {at}"), p) for at, p in enumerate(held)]
            sharded = any(not plain(p) for p in held) or _is_flattened()
            self._add("sharded" if sharded else "bare", named, [], shared_by() if sharded else tuple(range(ranks.world())), None, site)

    def _add(self, held: str, named: Sequence[tuple[str, Any]], buffers: Sequence[tuple[str, Any]], group: tuple[int, ...],
             made_at: Site | None, site: Site | None) -> None:
        named, buffers = list(named)[:MOST], [(name, b) for name, b in buffers if plain(b)][:MOST]
        number = len(self._replicas)
        seen = ReplicaSeen(
            step=self.session.step, key=f"replica-{number}", number=number, held=held, ranks=group, names=tuple(name for name, _ in named),
            shapes=tuple(tuple(p.shape) for _, p in named), made_at=made_at, step_site=site, buffers=tuple(name for name, _ in buffers))
        size = sum(p.numel() for _, p in named)
        self._replicas.append(Replica(seen, [weakref.ref(p) for _, p in named], [weakref.ref(b) for _, b in buffers], size))
        self.session.emit(seen)

    def _update(self, replica: Replica) -> None:
        seen = replica.seen
        now = replace(seen, averaged=replica.averaged, steps=replica.steps, sampler=seen.sampler or self._sampled)
        if now != seen:
            replica.seen = now
            self.session.emit(now)

    # -- what they hold ---------------------------------------------------------------------------------------------

    def _write(self, step: int) -> None:
        self._written = step
        for replica in self._replicas:
            parameters = [p for ref in replica.parameters if (p := ref()) is not None]
            buffers = [b for ref in replica.buffers if (b := ref()) is not None]
            if replica.seen.held == "sharded" or len(parameters) != len(replica.parameters) or not all(map(plain, parameters)):
                continue
            with torch.no_grad():
                sums = torch.stack([checksum(value) for value in (*parameters, *buffers)])
                values = values_of(parameters)
            weights = ReplicaWeights(step=step, key=f"replica-{replica.seen.number}-{step}", number=replica.seen.number,
                                     bits=("",) * len(parameters), buffers=("",) * len(buffers), values=())
            self._put(weights, torch.cat([sums.view(torch.float64), values]))

    def _put(self, weights: ReplicaWeights, numbers: Tensor) -> None:
        """``numbers`` [n + m + v], float64: the checksums, their bits unchanged, then the values."""
        if numbers.device.type not in READ_LATER:
            self._say(weights, numbers)
            return
        host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
        host.copy_(numbers, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record(torch.cuda.current_stream(numbers.device))
        self._sent.append((weights, host, arrived))

    def _collect(self, wait: bool = False) -> None:
        while self._sent and (wait or self._sent[0][2].query()):
            weights, host, arrived = self._sent.popleft()
            if wait:
                arrived.synchronize()
            self._say(weights, host)

    def _say(self, weights: ReplicaWeights, numbers: Tensor) -> None:
        count, buffers = len(weights.bits), len(weights.buffers)
        bits = [f"{word & 0xFFFFFFFFFFFFFFFF:x}" for word in numbers[:count + buffers].contiguous().view(torch.int64).tolist()]
        self.session.emit(replace(weights, bits=tuple(bits[:count]), buffers=tuple(bits[count:]),
                                  values=tuple(float(f"{value:.9g}") for value in numbers[count + buffers:].tolist())))


def shared_by() -> tuple[int, ...]:
    """The ranks over which FSDP shares parameters out: each of them has other data. () where another scheme does so."""
    for root in Forwards.instance.roots() if Forwards.instance is not None else ():
        for module in root.modules():
            if hasattr(module, "_get_fsdp_state"):
                groups = module._get_fsdp_state()._fsdp_param_groups if hasattr(module._get_fsdp_state(), "_fsdp_param_groups") else None
                group = groups[0] if groups else module._get_fsdp_state()._fsdp_param_group
                if group is not None:
                    return tuple(int(rank) for rank in group.mesh_info.mesh.mesh.flatten().tolist())
            if type(module).__name__ == "FullyShardedDataParallel":
                return tuple(torch.distributed.get_process_group_ranks(module.process_group))
    return ()


def _is_flattened() -> bool:
    """Under the older FSDP, parameters may look whole and are views of a rank's part."""
    roots = Forwards.instance.roots() if Forwards.instance is not None else []
    return any(type(module).__name__ == "FullyShardedDataParallel" for root in roots for module in root.modules())


def checksum(value: Tensor) -> Tensor:
    """The sum of a tensor's elements read as whole numbers, modulo 2^64: equal bits have equal sums. [] int64."""
    if value.is_complex():
        value = torch.view_as_real(value)
    flat = value.detach().contiguous().reshape(-1)
    if flat.is_floating_point():
        flat = flat.view(_INTEGERS[flat.element_size()])
    return flat.sum(dtype=torch.int64)


def values_of(parameters: Sequence[Tensor]) -> Tensor:
    """At most ``VALUES`` elements, always the same ones, from all parameters alike. [v] float64."""
    each = max(1, VALUES // len(parameters))
    parts = [flat[::max(1, flat.numel() // each) | 1][:each] for p in parameters[:VALUES] if (flat := p.detach().reshape(-1)).numel()]
    return torch.cat([part.to(torch.float64) for part in parts])
