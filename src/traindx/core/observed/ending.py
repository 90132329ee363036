"""Whether the token that ends a sequence is ever a target."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class EndToken(Observation):
    """A language model's targets and the token ``token`` that the program calls its end (``name``), over ``calls`` of a loss.

    ``taught`` counts the targets that are it, ``left_out`` the rows whose first target after the last token that counts would have
    been it and is ignored. ``rows`` counts rows that end in filler. ``named_at`` is the line that sets the name. ``key`` is
    ``ending-<token>``.
    """

    token: int
    name: str
    site: Site | None
    made_at: Site | None
    calls: int
    rows: int
    taught: int
    left_out: int
    named_at: Site | None = None
