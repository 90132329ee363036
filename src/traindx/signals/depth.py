"""How the signal fares on its way through the layers of a model."""
from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from traindx.core.observed.start import DepthProfile

FACTOR = 1000.0  # rule of thumb: less is repaired by the first steps
LAYERS = 4
STEADY = 0.7  # of the layers go the same way: a trend through depth, no single odd layer


def spreads_of(profile: DepthProfile) -> list[float]:
    """Standard deviations over samples of all layers' outputs but the last's, which is the head."""
    return [layer.output for layer in profile.layers[:-1] if layer.output is not None]


def factor_of(profile: DepthProfile) -> float | None:
    """Spread of the last hidden layer over that of the first, where it changes steadily through depth."""
    spreads = spreads_of(profile)
    if len(spreads) < LAYERS or spreads[0] <= 0:
        return None
    factor = max(spreads[-1], 1e-30) / spreads[0]
    same_way = sum((after < before) == (factor < 1) for before, after in pairwise(spreads))
    return factor if same_way >= STEADY * (len(spreads) - 1) else 1.0


def size_of(factor: float) -> float:
    return max(factor, 1 / factor)


def lost_at_start(profiles: Iterable[DepthProfile]) -> bool:
    """A model's first look found its signal gone: what its units do later on follows from that."""
    firsts = {each.model: each for each in sorted(profiles, key=lambda each: -each.step)}.values()
    return any((factor := factor_of(each)) is not None and factor < 1 / FACTOR for each in firsts)
