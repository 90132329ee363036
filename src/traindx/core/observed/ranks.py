"""Training on several processes, as one of them sees it."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class SamplerEpochs(Observation):
    """A DistributedSampler that shuffles and whose batches are trained on. ``same`` of its ``iterations`` began with the epoch number of
    the one before. ``key`` is ``epochs-<sampler>``.
    """

    iterations: int
    same: int
    epoch: int
    replicas: int
    made_at: Site | None
    iter_site: Site | None
    loader_site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class WrapperUse(Observation):
    """A module under DistributedDataParallel: ``through`` counts training forwards through the wrapper that a backward followed,
    ``around`` those of the bare module. ``unused`` names parameters that had no gradient after any of the ``backwards``;
    ``finds_unused`` is the wrapper's setting. ``synced`` counts backwards whose gradients the wrapper was to average (not under
    ``no_sync``); ``joins``: the ``join`` context is in use. ``lost`` names trained parameters that the wrapper does not know (any more):
    ``how`` is ``converted``, ``unfrozen``, ``replaced`` or ``added``, ``lost_site`` the conversion where one was seen. ``ranks`` are those
    that hold the replicas. ``key`` is ``wrapper-<id>``.
    """

    world: int
    made_at: Site | None
    through: int
    around: int
    around_site: Site | None = None
    backwards: int = 0
    unused: tuple[str, ...] = ()
    finds_unused: bool = False
    synced: int = 0
    joins: bool = False
    lost: tuple[str, ...] = ()
    how: str = ""
    lost_site: Site | None = None
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReplicaSeen(Observation):
    """Parameters that this rank trains, as one set. ``held``: ``ddp`` (wrapped), ``local`` (wrapped, with a hook for local SGD),
    ``bare`` (not wrapped: what the optimizers hold), ``sharded`` (no rank has them whole).

    ``ranks`` are those of its group, () where that is not known. ``averaged`` of the ``steps`` of an optimizer that holds it: so much was
    reduced or broadcast by the program itself since the step before that it may have been these gradients or weights. ``sampler``: a
    DistributedSampler splits what it is trained on. ``key`` is ``replica-<number>``; numbers count up in the order in which they were met.
    """

    number: int
    held: str
    ranks: tuple[int, ...]
    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    made_at: Site | None = None
    step_site: Site | None = None
    buffers: tuple[str, ...] = ()
    sampler: bool = False
    averaged: int = 0
    steps: int = 0


@dataclass(frozen=True, kw_only=True)
class ReplicaWeights(Observation):
    """A replica just before optimizer step ``step``: a checksum of the bits of each parameter and buffer, and at most
    256 values. ``key`` joins number and step.
    """

    number: int
    bits: tuple[str, ...]
    buffers: tuple[str, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class RankBatch(Observation):
    """The first training batch of step ``step``: content hashes of its first rows, and how many rows it has. ``key`` is the step's."""

    rows: tuple[str, ...]
    size: int
    site: Site | None = None
    loader_site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class RankLoss(Observation):
    """The first training loss of step ``step`` with reduction "mean": over how many ``items`` (targets that count) it is taken. ``scale`` is
    backward root / loss. ``key`` is the step's.
    """

    function: str
    items: int
    scale: float | None
    site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class SampleDraws(Observation):
    """A batch was made in this process, and random numbers were drawn meanwhile from ``generators``: digests of the states ``before`` and
    ``after``. ``key`` is the step's.
    """

    generators: tuple[str, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    site: Site | None = None
    loader_site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class Collective(Observation):
    """The program's ``number``-th call of a collective over all ranks. ``numel`` is -1 where ranks may differ in it."""

    number: int
    name: str
    numel: int
    dtype: str
    reduction: str
    site: Site | None


@dataclass(frozen=True, kw_only=True)
class RankSeen(Observation):
    """This process has joined a process group of ``world`` ranks, as ``rank``."""

    rank: int
    world: int
    backend: str = ""
    site: Site | None = None
