"""Whether padding reaches what is computed of the real tokens, and whether the end of a sequence is ever learned."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class PaddingReplay(Observation):
    """What a replay of a root in eval mode showed: the same short rows, once as wide as the batch and once cut to their own length.

    ``token`` fills the ends of the rows: ``width`` columns were cut to ``length``. ``change`` is the mean difference of the outputs of
    real tokens, in standard deviations of the output over rows (None where it could not be told: ``why``). ``op`` is the first
    operation whose result differs. ``widths`` counts the widths that batches have had so far. ``key`` is ``padding-<model>``.
    """

    model: int
    class_name: str
    site: Site | None
    token: int
    width: int
    length: int
    change: float | None
    why: str = ""
    op: str = ""
    op_site: Site | None = None
    widths: int = 1
