"""What becomes of gradients between a backward and the next: used by a step, used twice, or cleared unused."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True)
class Gathered:
    """Steps that used the gradients of ``backwards`` passes of one and the same line (and loss, and forward).

    ``count`` steps looked so; ``weight`` is the mean over them of the summed factors with which the passes' batch
    means entered their roots: about 1 where each loss was divided, ``backwards`` where none was; None where it cannot
    be read off the graph.
    """

    backwards: int
    count: int
    weight: float | None
    backward_site: Site | None


@dataclass(frozen=True, kw_only=True)
class GradientUse(Observation):
    """What the steps of one optimizer found in the gradients. ``key`` is ``gradients-<optimizer>``; 0 gathers
    hand-written updates.

    Up to eight of its ``parameters`` are followed on every step, all of them on detailed steps. ``passes`` counts
    backwards that reached them, ``steps`` its steps (for hand-written updates: changes of values between two
    backwards). ``stale_steps`` used gradients in which an earlier step's were still contained: ``stale`` of the
    ``fresh`` parameters that took part, at the last such step. ``clean_steps`` used fresh gradients only.
    ``starved_steps`` found nothing: what backwards had left since the step before had been cleared (``wiped_at``).
    ``empty_steps`` found nothing, and nothing had come. ``edited_steps`` found gradients that the program had written
    itself. ``moved`` says whether values changed although it never stepped (None: not known). ``backwards_in_program``
    counts all backwards, whatever they reached.
    """

    optimizer: int
    class_name: str
    made_at: Site | None
    step_site: Site | None
    backward_site: Site | None
    parameters: int
    passes: int
    steps: int
    first_step: int = 0
    last_step: int = 0
    stale_steps: int = 0
    clean_steps: int = 0
    stale: int = 0
    fresh: int = 0
    stale_first: int = 0
    starved_steps: int = 0
    starved_first: int = 0
    wiped_at: Site | None = None
    empty_steps: int = 0
    edited_steps: int = 0
    moved: bool | None = None
    backwards_in_program: int = 0
    gathered: tuple[Gathered, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PassUse(Observation):
    """What became of the backwards of one line (told apart by the loss and forward lines before them). ``key`` numbers
    them.

    Of ``count`` backwards, ``used`` had what they left used by a step in at least one parameter, ``lost`` had all of it
    cleared unused. ``excused``: cleared on purpose, as far as one can tell (a loss or a norm not finite, a clip
    just before, values that had moved by hand, gradients written by the program itself). ``reached`` are the ids of the
    optimizers whose parameters they came to. ``wiped_at`` is the ``zero_grad`` that cleared them, where one was called.
    """

    site: Site | None
    count: int
    reached: tuple[int, ...]
    used: int
    lost: int
    excused: int
    first_lost: int = 0
    wiped_at: Site | None = None
    step_site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class ClipUse(Observation):
    """Calls of a gradient clip at one line. ``key`` is the line.

    ``in_time`` acted on gradients that no step had used yet; ``after_step`` on those that one had; ``before_backward``
    on none. ``scaled`` of the timely ones acted on gradients that still carried the scale of a GradScaler (``scale``,
    the last). ``bites`` counts calls, of those measured, whose norm was above ``limit``; ``norm`` is the largest
    finite one, ``useless_bites`` and ``useless_norm`` the same for clips that were not timely.
    """

    site: Site | None
    function: str
    calls: int = 0
    in_time: int = 0
    after_step: int = 0
    before_backward: int = 0
    scaled: int = 0
    measured: int = 0
    bites: int = 0
    useless_bites: int = 0
    limit: float | None = None
    norm: float | None = None
    useless_norm: float | None = None
    scaled_norm: float | None = None
    scale: float | None = None
    step_site: Site | None = None
    backward_site: Site | None = None
    first: int = 0


@dataclass(frozen=True, kw_only=True)
class ScalerUse(Observation):
    """How a GradScaler was used. ``key`` is ``scaler-<id>``.

    ``unscaled_steps``: ``scaler.step`` on gradients none of whose backwards began at a scaled loss; ``mixed_steps``: some did,
    some (the latest of them at ``mixed_site``) did not. ``direct_steps``: ``optimizer.step`` itself, on gradients that were scaled
    and not unscaled.
    """

    id: int
    scales: int = 0
    steps: int = 0
    updates: int = 0
    unscaled_steps: int = 0
    mixed_steps: int = 0
    direct_steps: int = 0
    scale: float | None = None
    scale_site: Site | None = None
    step_site: Site | None = None
    direct_site: Site | None = None
    backward_site: Site | None = None
    mixed_site: Site | None = None
    first: int = 0


@dataclass(frozen=True, kw_only=True)
class HalfPrecision(Observation):
    """Work under a float16 autocast. ``key`` is ``float16``.

    ``backwards`` counts backwards that came after such work; ``weight`` is the largest factor with which a loss
    entered its root there (a scale applied by hand).
    """

    device: str
    site: Site | None
    backward_site: Site | None = None
    backwards: int = 0
    weight: float | None = None


@dataclass(frozen=True, kw_only=True)
class Rebuilt(Observation):
    """An optimizer built again and again at one line, for the very same parameters. ``key`` names the line.

    ``steps`` are those of each instance but the last, at most 50 of them. ``kept_state`` counts instances that began
    with a loaded state, ``moved_between`` those between which the parameters were written (loaded, averaged, reset)
    or another share of them was frozen (phases of fine-tuning),
    ``other_data`` those fed by another dataset than the one before. ``memory`` is the number of steps that the
    optimizer's slowest first moment looks back (1/(1 - beta)), 0 where it keeps none.
    """

    site: Site | None
    class_name: str
    instances: int
    steps: tuple[int, ...]
    kept_state: int = 0
    moved_between: int = 0
    other_data: int = 0
    memory: float = 0.0
    step_site: Site | None = None
