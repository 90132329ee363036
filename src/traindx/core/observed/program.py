"""What the program did: models, forwards, losses, backwards, optimizer steps, in order."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True)
class Parameter:
    """A trainable tensor. ``module`` is the dotted path of its module in the root ("" for the root itself)."""

    id: int
    name: str
    shape: tuple[int, ...]
    dtype: str
    requires_grad: bool
    module: str = ""
    module_class: str = ""
    made_at: Site | None = None


@dataclass(frozen=True, kw_only=True)
class ModelSeen(Observation):
    """A root module (one that the program calls itself), at its first forward and whenever its parameters changed.

    ``key`` is ``model-<id>``; ``modules`` are ``(dotted path, class name)`` of its tree.
    """

    id: int
    class_name: str
    parameters: tuple[Parameter, ...]
    modules: tuple[tuple[str, str], ...]
    site: Site | None = None
    made_at: Site | None = None


@dataclass(frozen=True, kw_only=True)
class ForwardSeen(Observation):
    """Forwards of a root module that are alike: same call site, mode and gradient mode. ``key`` joins those.

    ``training`` is the root's own flag; ``dropout`` / ``batchnorm`` count modules of that kind in the tree *by mode*:
    ``(in train mode, in eval mode)``. Dropout with p = 0 is not counted. ``backward`` counts how many of them were followed by a
    backward before the next forward of the same root. ``switched_at`` is the last ``train()`` / ``eval()`` call on it.
    """

    model: int
    site: Site | None
    training: bool
    grad: bool
    dropout: tuple[int, int]
    batchnorm: tuple[int, int]
    count: int
    backward: int
    first_step: int
    last_step: int
    input_shape: tuple[int, ...] = ()
    switched_at: Site | None = None
    inference: bool = False


@dataclass(frozen=True, kw_only=True)
class OptimizerMade(Observation):
    """An optimizer, as built. ``parameters`` are ids, one tuple a group; ``settings`` one dict a group. ``key`` is ``optimizer-<id>``."""

    id: int
    class_name: str
    site: Site | None
    parameters: tuple[tuple[int, ...], ...]
    settings: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True)
class Event:
    """One thing that happened between two optimizer steps.

    ``what``: forward, loss, backward, zero_grad, clip, step, scheduler, unscale, scaler-step, scaler-update, train, eval, load.
    ``who`` is the id of the optimizer, model or scheduler concerned; ``count`` folds repeats that follow each other.
    ``detail`` of a scheduler is "epoch" where it was told the epoch.
    """

    what: str
    site: Site | None
    who: int = 0
    detail: str = ""
    count: int = 1


@dataclass(frozen=True, kw_only=True)
class Window(Observation):
    """The events from just after one optimizer step up to and including the next; windows that are alike are one, counted.

    ``key`` numbers the pattern; ``step`` is the first step that looked so.
    """

    events: tuple[Event, ...]
    count: int
    last_step: int


@dataclass(frozen=True, kw_only=True)
class BackwardCall(Observation):
    """A backward on a scheduled step: its roots, and whether it was ``autograd.grad`` (``accumulate`` False)."""

    site: Site | None
    value: float | None
    root_op: str
    accumulate: bool
    create_graph: bool
    keep_graph: bool


@dataclass(frozen=True, kw_only=True)
class LossCall(Observation):
    """A call of a torch loss function.

    ``origin`` names the activation that the input came from (softmax, log_softmax, sigmoid, logsigmoid) where the tensor itself, or a
    view of it, is that activation's output, ``origin_made_at`` where its module was made. ``weight_in_root`` is d(backward root) /
    d(this loss), measured in backward: its sign tells the direction, its size the share (1/k under averaged accumulation, the loss
    scale under a GradScaler).
    ``class_dim`` is the dimension of the classes; row sums are over it. Target facts: class ids -> ``target_min``/``target_max`` and
    ``target_counts`` (by class id, at most 64 classes, ``ignore_index`` left out); floats -> ``target_mean``/``target_std``.
    """

    call: int
    function: str
    site: Site | None
    made_at: Site | None
    grad: bool
    model_training: bool | None
    value: float | None
    reduction: str
    input_shape: tuple[int, ...]
    target_shape: tuple[int, ...]
    input_dtype: str
    target_dtype: str
    input_min: float = 0.0
    input_max: float = 0.0
    input_mean: float = 0.0
    input_std: float = 0.0
    row_sum_min: float | None = None
    row_sum_max: float | None = None
    row_logsumexp: float | None = None
    class_dim: int | None = None
    target_min: float | None = None
    target_max: float | None = None
    target_mean: float | None = None
    target_std: float | None = None
    target_counts: dict[int, int] | None = None
    ignored: int = 0
    ignore_index: int | None = None
    weight: tuple[float, ...] | None = None
    pos_weight: bool = False
    pos_weights: tuple[float, ...] | None = None
    label_smoothing: float = 0.0
    origin: str | None = None
    origin_site: Site | None = None
    origin_made_at: Site | None = None
    requires_grad: bool = False
    weight_in_root: float | None = None


@dataclass(frozen=True, kw_only=True)
class SchedulerMade(Observation):
    """A learning-rate scheduler. ``key`` is ``scheduler-<id>``; ``calls`` counts its steps, ``fed`` what ReduceLROnPlateau was given."""

    id: int
    class_name: str
    site: Site | None
    optimizer: int
    calls: int = 0
    call_site: Site | None = None
    mode: str = ""
    fed: tuple[float, ...] = ()
    settings: dict[str, str] | None = None
