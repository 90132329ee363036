"""Random generators: who seeded them, and who draws from them."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class SeedsAtStart(Observation):
    """When the first module was built: which of torch, numpy and random had been seeded. ``made_at`` is where the module was built.

    ``late`` names those that were seeded only afterwards, with the place of the first such call.
    """

    torch: bool
    numpy: bool
    random: bool
    made_at: Site | None
    late: tuple[str, ...] = ()
    late_site: Site | None = None
    numpy_used: bool = False
    random_used: bool = False


@dataclass(frozen=True, kw_only=True)
class EvaluationDraws(Observation):
    """A forward without gradients between two steps: whether torch's global generator moved in it.

    ``shuffles``: a loader takes its order from that generator. ``key`` names the line.
    """

    site: Site | None
    moved: bool
    shuffles: bool
