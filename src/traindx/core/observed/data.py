"""What the program was fed. Extended by the data probes."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class LoaderMade(Observation):
    """A DataLoader, at its first iteration. ``key`` is ``loader-<id>``; ``wait_seconds`` of ``batches`` so far, ``iterations`` started
    (which took ``start_seconds``: that is where workers are launched)."""

    id: int
    site: Site | None
    iter_site: Site | None
    dataset_class: str
    dataset_size: int | None
    batch_size: int | None
    shuffle: bool | None
    sampler: str
    workers: int
    drop_last: bool
    batches: int = 0
    iterations: int = 0
    wait_seconds: float = 0.0
    start_seconds: float = 0.0
