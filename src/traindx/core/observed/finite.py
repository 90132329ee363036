"""Where numbers stopped being numbers, and what half precision lost."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class Nonfinite(Observation):
    """NaN or infinity in a backward root or in gradients, and the operation that made it as far as it could be told.

    ``phase``: ``input`` (it came in with the data), ``forward`` (the loss), ``backward`` (gradients of a finite
    loss), ``step`` (weights after a step with finite gradients). ``op`` is the operation in plain words (log, sqrt,
    division ...), ``reason`` the key of what was wrong with its operand: zero, negative, overflow, edge, empty-row,
    single, ignored, factor or "". ``low``/``high`` are over the operand's finite elements, ``bad`` of ``count``
    elements are the wrong ones. ``exact``: the line is the operation's own; otherwise it is one of ``candidates``.
    ``parameters`` name tensors whose gradient (phase step: value) is not finite.
    """

    phase: str
    value: float | None = None
    op: str = ""
    reason: str = ""
    low: float | None = None
    high: float | None = None
    bad: int = 0
    count: int = 0
    shape: tuple[int, ...] = ()
    dtype: str = ""
    site: Site | None = None
    exact: bool = False
    candidates: tuple[Site, ...] = ()
    backward_site: Site | None = None
    loss_site: Site | None = None
    step_site: Site | None = None
    parameters: tuple[str, ...] = ()
    scaled: bool = False


@dataclass(frozen=True, kw_only=True)
class FiniteSummary(Observation):
    """The finite checks of the whole run (``key`` "finite"): steps looked at, and those with a non-finite root or
    gradient.

    ``taken`` counts optimizer steps taken with non-finite gradients, or with what the backward of a non-finite loss left
    (finite, not all zero: a ReLU can stop a NaN on its way back), ``weights_bad`` is the first step
    after which sampled weights were not finite (0: never), ``last_bad`` the last step with any sign of it.
    """

    steps: int = 0
    bad_roots: int = 0
    bad_gradients: int = 0
    taken: int = 0
    weights_bad: int = 0
    last_bad: int = 0


@dataclass(frozen=True, kw_only=True)
class HalfGradients(Observation):
    """Gradients on a detailed step as they left backward, where fp16 is in use.

    Per parameter tensor, of sampled elements: ``zero`` share that is exactly 0, ``tiny`` share of the others below
    fp16's smallest normal number (6.1e-5) that are whole multiples of its spacing there (2**-24): proof that they
    were rounded in fp16.
    """

    names: tuple[str, ...]
    zero: tuple[float, ...]
    tiny: tuple[float, ...]
    autocast: bool
    loss_site: Site | None = None
    backward_site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class StuckWeights(Observation):
    """Half-precision weights in an optimizer over a window of steps.

    Of the sampled elements that had a gradient other than 0 at both ends of the window, ``stuck`` is the share whose
    bits are the same at both ends; ``steps`` is the window's length.
    """

    optimizer: int
    dtype: str
    stuck: float
    elements: int
    steps: int
    lr: float | None = None
    site: Site | None = None
