"""Where the time of a step goes, as far as it is waiting."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class LoaderTime(Observation):
    """Of one loader (``loader`` is its id): over ``batches`` that followed another one of the same iteration, the ``seconds``
    from batch to batch, and how many of them were spent ``waiting`` for the next. ``queued`` of those seconds the thread was ready to
    run while the machine worked for others (0 where the system does not tell). ``elapsed``: since the first batch of any loader.

    ``fetch_site`` is where the dataset's ``__getitem__`` (or collate function) of the user begins.
    """

    loader: int
    batches: int
    seconds: float
    waiting: float
    queued: float = 0.0
    elapsed: float = 0.0
    fetch_site: Site | None = None

    @property
    def own_waiting(self) -> float:
        """Seconds waited for the loader itself: without its part of the time in which the machine worked for others."""
        return self.waiting * max(0.0, 1 - self.queued / self.seconds) if self.seconds else 0.0


@dataclass(frozen=True, kw_only=True)
class Reads(Observation):
    """Values read out of tensors (``item()``, ``float()``) by one line: over ``steps`` detailed steps, the median ``count`` a step and
    the ``share`` of those steps' time that the reads blocked (on a GPU: waiting for it). ``key`` names the line."""

    site: Site | None
    steps: int
    count: int
    share: float
    device: str
