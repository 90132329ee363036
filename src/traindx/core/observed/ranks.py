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
    ``finds_unused`` is the wrapper's setting. ``key`` is ``wrapper-<id>``.
    """

    world: int
    made_at: Site | None
    through: int
    around: int
    around_site: Site | None = None
    backwards: int = 0
    unused: tuple[str, ...] = ()
    finds_unused: bool = False
