"""Settings and calls that change how kernels run, not what they compute."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class KernelSettings(Observation):
    """At the end of the run. ``benchmark`` and ``deterministic`` are cuDNN's flags, ``forced`` tells that deterministic algorithms are
    asked for; ``seeded_at`` is where torch was seeded (None: nowhere), ``set_at`` the line that switches the benchmark on; ``cuda``
    tells that a GPU was in use. ``key`` is ``kernels``.
    """

    benchmark: bool
    deterministic: bool
    forced: bool
    cuda: bool
    seeded_at: Site | None = None
    set_at: Site | None = None


@dataclass(frozen=True, kw_only=True)
class CacheEmptied(Observation):
    """Calls of ``torch.cuda.empty_cache`` on one line: ``calls`` of them in ``steps`` different steps. ``key`` names the line."""

    site: Site | None
    calls: int
    steps: int
    first_step: int
