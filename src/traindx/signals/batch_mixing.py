"""What the rules on mixed samples share."""
from __future__ import annotations

from traindx.core.observed.layout import BatchMixing, LeadSizes

MANY_SIZES = 4  # a batch has one size and a smaller rest; lengths of sequences have many


def certain_batch(mixing: BatchMixing, sizes: list[LeadSizes]) -> bool:
    """Whether the dimension that holds the samples is known well enough to accuse anyone of mixing it."""
    if mixing.evidence in ("loader", "gather"):
        return True
    seen = next((each.sizes for each in sizes if each.model == mixing.model), ())
    return len(seen) < MANY_SIZES


def shown(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
