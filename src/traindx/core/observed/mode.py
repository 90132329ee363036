"""What the mode of a module did: dropout and batch statistics that really ran, forward by forward."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class ForwardPass(Observation):
    """Forwards of a root module that are alike: same place, same modes, and the same random and statistical layers at
    work.

    ``dropping`` / ``resting`` count the dropouts of one forward that were active / idle (functional ones, attention and
    recurrent layers too), ``batch_stats`` / ``running_stats`` the BatchNorms that used the one or the other. ``idle``
    of the ``count`` forwards were followed by no backward until the next step, in ``idle_windows`` different steps,
    ``steps`` of the run lying between the first and the last. ``scored`` idle ones went into a torch loss,
    ``same_input`` ones were given the very tensor of the one before, ``train_input`` ones a tensor that a training
    forward had just been given, ``fed_on`` outputs went into another root. ``discarded``: the caller throws the result
    away. ``optimized``: an optimizer holds parameters of the root, ``learning``: it stepped since the first of these
    forwards; ``twin_of`` is a root of the same shape that learns, ``judged``: a model that learns to tell its outputs
    from other data. ``asked_at`` is the line outside any module whose call led to ``site`` through the method of one
    (``encoder.features(x)``), None where ``site`` itself is outside.
    """

    model: int
    class_name: str
    site: Site | None
    training: bool
    grad: bool
    dropping: int
    resting: int
    batch_stats: int
    running_stats: int
    count: int = 0
    backward: int = 0
    idle: int = 0
    idle_windows: int = 0
    steps: int = 1
    first_step: int = 0
    last_step: int = 0
    last_idle_step: int = 0
    scored: int = 0
    same_input: int = 0
    train_input: int = 0
    fed_on: int = 0
    discarded: bool = False
    optimized: bool = False
    learning: bool = False
    twin_of: int = 0
    parameters: int = 0
    asked_at: Site | None = None
    judged: bool = False
    switched_at: Site | None = None
    input_shape: tuple[int, ...] = ()


@dataclass(frozen=True)
class Stretch:
    """Steps in a row whose training forwards of a root ran in the same mode."""

    mode: str
    first_step: int
    steps: int
    site: Site | None = None
    switched_at: Site | None = None


@dataclass(frozen=True, kw_only=True)
class TrainedInMode(Observation):
    """In which modes a root was trained, one stretch after another; ``key`` is ``trained-<id>``.

    ``mode`` is ``train`` where dropout or batch statistics were at work, ``eval`` where the root is in eval mode and
    they rested.
    """

    model: int
    class_name: str
    stretches: tuple[Stretch, ...]
    dropout: bool
    batchnorm: bool


@dataclass(frozen=True, kw_only=True)
class DropInEval(Observation):
    """A functional dropout that was active although the module that called it is in eval mode. ``key`` is its place.

    ``forwards`` are those of the root in which it was so, ``repeats`` those of them that were given the very tensor of
    the one before.
    """

    model: int
    site: Site | None
    function: str
    rate: float
    forwards: int = 0
    repeats: int = 0
    module_class: str = ""
    forward_site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class BatchNormSeen(Observation):
    """A BatchNorm in training. ``values`` counts calls by the number of values per channel (small numbers only, others
    under 0).

    ``shape`` is that of its last input; ``key`` is ``batchnorm-<id>``. ``momentum`` is None for a cumulative average.
    """

    id: int
    made_at: Site | None
    site: Site | None
    calls: int
    values: dict[int, int]
    shape: tuple[int, ...]
    tracks: bool = True
    momentum: float | None = 0.1


@dataclass(frozen=True, kw_only=True)
class ModuleBuilt(Observation):
    """A module with weights or dropout that is constructed inside a forward. ``key`` is its place.

    ``forwards`` of the root's ``of_forwards`` since the first built it; ``weights`` are trainable elements; ``in_eval``
    counts forwards of the root in eval mode that built it with an active dropout.
    """

    model: int
    class_name: str
    site: Site | None
    forwards: int
    of_forwards: int
    weights: int
    dropout: bool
    in_eval: int
    forward_site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class FrozenNorms(Observation):
    """BatchNorms whose own weights and surroundings are frozen, but whose running statistics moved. ``key`` is
    ``frozen-norms-<root>``.

    ``moved`` is the median over channels of the mean's change since the first look, in standard deviations; ``names``
    are a few paths.
    """

    model: int
    class_name: str
    count: int
    names: tuple[str, ...]
    moved: float
    looks: int
    frozen_weights: int
    site: Site | None
    switched_at: Site | None = None
    made_at: Site | None = None


@dataclass(frozen=True, kw_only=True)
class NormGap(Observation):
    """Running statistics of a BatchNorm against those of the batch that trained it, on a detailed step.

    ``mean_gap`` is the median over channels of |batch mean - running mean| / batch std, ``spread`` that of batch
    variance / running variance.
    """

    id: int
    made_at: Site | None
    values: int
    mean_gap: float
    spread: float
    momentum: float | None
    updates: int
    shape: tuple[int, ...] = ()
