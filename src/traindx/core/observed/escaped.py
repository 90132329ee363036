"""Switches that were set but did not reach what they were meant for."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class AutocastReach(Observation):
    """What ran inside the program's autocast regions: ``entered`` times at ``site``; forwards of roots with gradient inside (or that
    entered one themselves) and outside, and loss calls inside. ``key`` is ``autocast``.
    """

    site: Site | None
    device: str
    dtype: str
    entered: int
    forwards_inside: int
    forwards_outside: int
    losses_inside: int
    forward_site: Site | None = None
    loss_site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class SpectralCold(Observation):
    """A layer under ``torch.nn.utils.spectral_norm``. ``sigma``, where it ran in eval mode before any power iteration: the largest
    singular value of the weight that it used (1 where the estimate is right). ``key`` names the layer.
    """

    sigma: float | None
    shape: tuple[int, ...]
    site: Site | None
    made_at: Site | None
    updated: bool = False


@dataclass(frozen=True, kw_only=True)
class FreezeUncalled(Observation):
    """A root whose class freezes parameters in its own ``train()``, which nobody called. ``elements`` of ``total`` are trainable.
    ``key`` is ``freeze-<model>``."""

    class_name: str
    elements: int
    total: int
    site: Site | None
    forward_site: Site | None
