"""What a loader's workers draw: whether their random numbers are alike."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class WorkerDraws(Observation):
    """What a replay of a loader's ``workers`` showed. ``generator`` names the source of random numbers that samples depend on
    (``self.rng``, ``numpy.random`` ...), made at ``made_at``; "" where none was found to matter.

    ``across_workers``: two workers start it in the same state. ``across_epochs``: one worker starts it in the same state in every
    epoch (which persistent workers do not meet). ``draw_at`` is where the dataset's ``__getitem__`` begins, ``init_at`` the
    worker_init_fn. ``key`` is ``workers-<loader>``.
    """

    loader: int
    loader_site: Site | None
    workers: int
    persistent: bool
    generator: str = ""
    across_workers: bool = False
    across_epochs: bool = False
    made_at: Site | None = None
    draw_at: Site | None = None
    init_at: Site | None = None
    why: str = ""
