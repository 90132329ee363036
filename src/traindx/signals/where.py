"""Which of several places a finding points at."""
from __future__ import annotations

from traindx.core.observed import Site


def pointing(*sites: Site | None) -> tuple[Site | None, tuple[Site, ...]]:
    """``(where, also)``: the first place that is known, and the others, each once."""
    known = list(dict.fromkeys(site for site in sites if site is not None))
    return (known[0] if known else None), tuple(known[1:])
