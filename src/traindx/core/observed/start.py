"""How weights began and what became of units: symmetry, dead and pinned units, signals through depth."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class EqualUnits(Observation):
    """A weight whose units began exactly alike. ``key`` is ``equal-units-<id>``.

    ``units`` is its size along the units' dimension. At the last look, ``apart`` is the largest difference between its
    units and ``moved`` the largest change since the start, over a sample; ``graded`` tells whether its gradient was not
    all zero. ``set_by`` is the function of ``nn.init`` (or the method) that filled it last, at ``set_at``.
    """

    id: int
    name: str
    module_class: str
    shape: tuple[int, ...]
    units: int
    looks: int
    last_step: int
    moved: float
    apart: float
    graded: bool
    value: float = 0.0
    rate: float | None = None
    made_at: Site | None = None
    set_by: str = ""
    set_at: Site | None = None


@dataclass(frozen=True, kw_only=True)
class UnitsSeen(Observation):
    """Units behind one ReLU in one stretch of training. ``key`` names both; stretches end at powers of two.

    ``dead`` were zero for all ``samples`` of the ``looks`` in it, ``stayed`` of them in the stretch before as well.
    ``order`` counts the ReLUs of a forward. ``bias`` is the mean of the layer's bias, ``set_*`` tell who filled what.
    """

    layer: int
    site: Site | None
    units: int
    dead: int
    stayed: int
    samples: int
    looks: int
    first_step: int
    last_step: int
    dead_at_start: int = 0
    layer_class: str = ""
    made_at: Site | None = None
    bias: float | None = None
    bias_set_at: Site | None = None
    weight_set_at: Site | None = None
    optimizer_at: Site | None = None


@dataclass(frozen=True, kw_only=True)
class PinnedUnits(Observation):
    """A sigmoid or tanh on one detailed step: the share of outputs within 1 % of the ends of their range.

    ``slope`` is the mean derivative in units of its largest value; ``feeds`` tells that a weight follows, ``spread`` is
    the standard deviation of the input.
    """

    layer: int
    function: str
    site: Site | None
    pinned: float
    slope: float
    spread: float
    feeds: bool = False
    made_at: Site | None = None
    weight_set_at: Site | None = None


@dataclass(frozen=True)
class LayerFacts:
    """One weight of two or more dimensions on a detailed step: root mean squares of its gradient and of its output."""

    name: str
    module_class: str
    gradient: float | None
    output: float | None
    elements: int
    made_at: Site | None = None
    set_by: str = ""
    set_at: Site | None = None


@dataclass(frozen=True, kw_only=True)
class DepthProfile(Observation):
    """Layers of one root in the order in which a forward ran them, on a detailed step."""

    model: int
    class_name: str
    layers: tuple[LayerFacts, ...]
    site: Site | None = None
    activations: tuple[str, ...] = ()
    normalised: bool = False
    residual: bool = False
