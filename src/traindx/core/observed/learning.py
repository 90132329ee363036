"""Who takes part in the loss, who is moved, and which way."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True)
class Leaf:
    """A tensor that could learn: a parameter whose module ran, or a leaf that a backward graph reached.

    ``took_part`` counts the looked-at backwards whose graph reached it (steps ``first_step`` to ``last_step``),
    ``graded`` those after which it held a gradient that was not all zero, ``walks`` every one looked at since then.
    ``ran`` and ``ran_without_grad`` count forwards of its module by gradient mode, ``ran_in_train`` those in train
    mode. Its values were compared ``compared`` times, and differed ``changed`` times.
    ``pretrained``: loaded before it took part in any loss, or a copy of such a one or of a trained one.
    ``thawed`` is the step at which it was last found trainable after it had been frozen (0: never); ``thawed_compared`` and
    ``thawed_changed`` count as ``compared`` and ``changed`` do, since the first backward after that, ``thawed_graded`` as
    ``graded`` does.
    ``is_input``: it is what a root module was called with, or what ``autograd.grad`` was asked for.
    ``registered`` is False where its module (or the tensor itself, in an attribute) hangs on a root that does not
    hold it as a parameter. ``module`` names the class, ``owner`` the class of the root that used it.
    """

    id: int
    shape: tuple[int, ...]
    requires_grad: bool
    took_part: int = 0
    graded: int = 0
    walks: int = 0
    first_step: int = 0
    last_step: int = 0
    ran: int = 0
    ran_without_grad: int = 0
    ran_in_train: int = 0
    last_ran: int = 0
    compared: int = 0
    changed: int = 0
    ever_trainable: bool = False
    thawed: int = 0
    thawed_compared: int = 0
    thawed_changed: int = 0
    thawed_graded: int = 0
    pretrained: bool = False
    is_input: bool = False
    registered: bool = True
    is_parameter: bool = True
    name: str = ""
    module: str = ""
    owner: str = ""
    made_at: Site | None = None


@dataclass(frozen=True, kw_only=True)
class Leaves(Observation):
    """Every such tensor so far; ``key`` is ``leaves``.

    ``walks`` counts the backward graphs that were looked at, ``input_size`` is the largest absolute value among the
    first inputs of root modules.
    """

    leaves: tuple[Leaf, ...]
    walks: int
    input_size: float = 0.0


@dataclass(frozen=True, kw_only=True)
class UpdateSeen(Observation):
    """What one update did to the parameters it moved, over samples of a few tensors, on detailed steps.

    ``cosine`` is between the change and the gradient (below 0: downhill), ``toward_zero`` between the change and minus
    the weights.
    ``ratio`` is the median over matrices of |change| / |weights|, ``gradient`` and ``weight`` are root mean squares.
    ``site`` is the backward's; ``moved`` are the ids of those tensors.
    """

    site: Site | None
    cosine: float
    toward_zero: float
    ratio: float
    gradient: float
    weight: float
    moved: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Drift(Observation):
    """How far the sampled weights have come since they were first looked at: ``key`` is ``drift``.

    ``drift`` is |now - then| / |then|, ``scale`` |now| / |then|, over ``tensors`` tensors since step ``since``.
    """

    drift: float
    scale: float
    tensors: int
    since: int


@dataclass(frozen=True, kw_only=True)
class RateSeen(Observation):
    """One optimizer's learning rate over its own steps (the largest of its groups). ``key`` is ``rate-<optimizer>``.

    ``low_steps`` counts the steps since which (``low_since``) it has stayed below a thousandth of its ``peak`` and
    ``base`` (the rate that it was built with); ``still`` those at exactly 0 from the start;
    ``falls`` and ``rises`` changes.
    ``set_by_hand`` is a line of the program that assigns a group's ``lr``.
    """

    optimizer: int
    steps: int
    first_step: int
    last_step: int
    base: float
    first: float
    peak: float
    last: float
    lowest: float
    low_steps: int
    still: int
    falls: int
    rises: int
    low_since: int = 0
    set_by_hand: Site | None = None


@dataclass(frozen=True, kw_only=True)
class Written(Observation):
    """A line inside a user-defined optimizer that writes into its parameters. ``key`` names the place."""

    site: Site
    op: str


@dataclass(frozen=True, kw_only=True)
class FlagMissed(Observation):
    """``requires_grad`` was set where it does nothing: on a module, or misspelt on a tensor. ``key`` names the object.

    ``wanted`` is what was set; ``elements`` counts the parameters' elements whose flag differs from it, of ``total``.
    """

    attribute: str
    wanted: bool
    class_name: str
    path: str
    elements: int
    total: int
    site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class CheckpointCut(Observation):
    """A line that recomputes something in the backward (re-entrant checkpointing) although no input of it requires a gradient.

    ``key`` names the line; such calls under ``no_grad`` are among the ``count``.
    """

    site: Site | None
    count: int
