"""The training and validation loss as curves: robust, scale-free views, and whether they may be read as "must fall"."""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from traindx.core.judge import Absent
from traindx.core.observed import Site
from traindx.core.observed.mode import ForwardPass
from traindx.core.observed.program import BackwardCall, LossCall, OptimizerMade, Window
from traindx.core.recording import Recording
from traindx.core.text import Text
from traindx.signals.evaluation import is_rare

Points = list[tuple[int, float]]
CLASSES = frozenset(("cross_entropy", "nll_loss"))
BINARY = frozenset(("binary_cross_entropy", "binary_cross_entropy_with_logits"))
DISTANCES = frozenset(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"))
GROWTH = 1e3  # a loss that many times its start has blown up
SHORTEST = 8  # points without which a curve says nothing

_NO_LOSS = Text("too few losses were seen to speak of a curve", "看到的损失太少，谈不上曲线")
_NO_VALIDATION = Text("too few validation passes with a torch loss were seen",
                      "用 torch 损失函数做的验证太少，看不出走势")


@dataclass(frozen=True)
class LossCurve:
    """Finite backward roots ``[(step, value), ...]``, and what is known of their kind.

    ``supervised``: one optimizer, and every training loss is a torch loss against fixed targets (class ids of more
    than one class, labels or numbers that no copy of the model made); such a loss must fall. GANs, RL, contrastive,
    VAE and diffusion losses need not, hand-written ones are not known. ``chance`` is the loss of the best constant
    answer: the entropy of the class mix, or the variance of the targets (None: unknown).
    """

    points: Points
    nonfinite: int
    supervised: bool
    chance: float | None
    loss_site: Site | None
    backward_site: Site | None
    step_site: Site | None

    @classmethod
    def of(cls, recording: Recording) -> LossCurve | Absent:
        series = recording.series.get("loss", [])
        points = [(step, value) for step, value in series if math.isfinite(value)]
        if len(points) < SHORTEST:
            return Absent(_NO_LOSS)
        calls = [call for call in recording.of(LossCall) if call.grad and call.requires_grad]
        backward = recording.last(BackwardCall)
        return cls(points, len(series) - len(points), _supervised(recording, calls), _chance(calls),
                   calls[-1].site if calls else None, backward.site if backward else None, step_site(recording))

    @property
    def where(self) -> Site | None:
        return self.loss_site or self.backward_site or self.step_site

    @cached_property
    def values(self) -> list[float]:
        return [value for _, value in self.points]

    def blocks(self, count: int = 20, least: int = 8) -> Points:
        """Means over equal stretches of at least ``least`` points, with the first step of each: batch noise is gone."""
        size = max(least, math.ceil(len(self.points) / count))
        parts = [self.points[i:i + size] for i in range(0, len(self.points) - size + 1, size)]
        return [(part[0][0], sum(value for _, value in part) / len(part)) for part in parts]

    @cached_property
    def start(self) -> float:
        """Median of the first points, at most a fortieth of the run."""
        return median(self.values[:max(1, min(10, len(self.points) // 40))])

    @cached_property
    def end(self) -> float:
        """Median of the last tenth."""
        return median(self.values[-max(3, len(self.points) // 10):])


@dataclass(frozen=True)
class ValidationCurve:
    """Validation losses ``(step, value)`` and, for each, the mean training loss just before it."""

    points: Points
    training: list[float]
    supervised: bool
    site: Site | None
    training_site: Site | None

    @classmethod
    def of(cls, recording: Recording) -> ValidationCurve | Absent:
        points = [(step, value) for step, value in recording.series.get("val_loss", []) if math.isfinite(value)]
        losses = [(step, value) for step, value in recording.series.get("loss", []) if math.isfinite(value)]
        if len(points) < 4 or len(losses) < SHORTEST:
            return Absent(_NO_VALIDATION)
        calls = [call for call in recording.of(LossCall) if call.grad and call.requires_grad]
        unseen = [call for call in recording.of(LossCall) if not call.grad]
        return cls(points, _between(points, losses), _supervised(recording, calls) and _alike(calls, unseen),
                   unseen[-1].site if unseen else None, calls[-1].site if calls else None)

    @cached_property
    def values(self) -> list[float]:
        return [value for _, value in self.points]


def _between(points: Points, losses: Points) -> list[float]:
    """Mean training loss of the last quarter of the steps before each pass; where there are none, the one before."""
    means: list[float] = []
    at = 0
    for step, _ in points:
        part = []
        while at < len(losses) and losses[at][0] <= step:
            part.append(losses[at][1])
            at += 1
        part = part[-max(1, len(part) // 4):]  # an epoch's first steps are those of a worse model
        means.append(sum(part) / len(part) if part else means[-1] if means else losses[0][1])
    return means


def _alike(calls: list[LossCall], unseen: list[LossCall]) -> bool:
    """Both measure the same: one function, a mean, and in training the whole of what goes backward."""
    def kinds(of: list[LossCall]) -> set[tuple[object, ...]]:
        return {(call.function, call.reduction, call.label_smoothing, call.weight is None) for call in of}
    whole = all(call.weight_in_root is None or abs(call.weight_in_root - 1) < 0.1 for call in calls)
    return whole and len(kinds(calls)) == 1 and kinds(calls) == kinds(unseen) and calls[0].reduction == "mean"


def step_site(recording: Recording) -> Site | None:
    """The line of the latest optimizer step."""
    for window in reversed(recording.of(Window)):
        for event in reversed(window.events):
            if event.what == "step":
                return event.site
    return None


def _supervised(recording: Recording, calls: list[LossCall]) -> bool:
    optimizers = {event.who for window in recording.of(Window) for event in window.events if event.what == "step"}
    if not calls or len(optimizers or recording.of(OptimizerMade)) != 1:
        return False
    if len({(call.function, call.site) for call in calls}) != 1:
        return False
    return all(_fixed_target(call) for call in calls) and not _chases_a_copy(recording)


def _chases_a_copy(recording: Recording) -> bool:
    """An older copy of the learner runs in most steps, as in temporal differences: the numbers to be met move with what is learnt."""
    return any(each.twin_of and each.idle_windows >= SHORTEST and not is_rare(each, recording.steps) for each in recording.of(ForwardPass))


def _fixed_target(call: LossCall) -> bool:
    if call.weight_in_root is not None and call.weight_in_root <= 0:
        return False
    if call.function in CLASSES:
        return call.target_counts is None or not _contrastive(call)
    if call.function in BINARY:
        return call.target_std is None or call.target_std > 0
    return call.function in DISTANCES


def _contrastive(call: LossCall) -> bool:
    """Every sample is a class of its own: the labels are row numbers."""
    counts, shape = call.target_counts or {}, call.input_shape
    return len(shape) == 2 and shape[0] == shape[1] and len(counts) == shape[0] > 1 and set(counts.values()) == {1}


def _chance(calls: list[LossCall]) -> float | None:
    """Loss of the best answer that does not look at the input, from all targets seen. None where it cannot be told."""
    kinds = {call.function for call in calls}
    if len(kinds) != 1 or any(_unlike_mean(call) for call in calls):
        return None
    function = kinds.pop()
    if function in CLASSES:
        return _class_entropy(calls)
    if any(call.target_mean is None or call.target_std is None for call in calls):
        return None
    mean = sum(call.target_mean or 0.0 for call in calls) / len(calls)
    if function in BINARY:
        low, high = min(call.target_min or 0.0 for call in calls), max(call.target_max or 0.0 for call in calls)
        hard = 0 < mean < 1 and low == 0 and high == 1
        return -mean * math.log(mean) - (1 - mean) * math.log(1 - mean) if hard else None
    if function == "mse_loss":
        squares = sum((call.target_std or 0.0) ** 2 + (call.target_mean or 0.0) ** 2 for call in calls)
        return squares / len(calls) - mean * mean
    return None


def _unlike_mean(call: LossCall) -> bool:
    """Weighted, summed or smoothed: chance is another number there."""
    return bool(call.reduction != "mean" or call.weight or call.pos_weight or call.label_smoothing)


def _class_entropy(calls: list[LossCall]) -> float | None:
    counts: dict[int, int] = {}
    for call in calls:
        for label, number in (call.target_counts or {}).items():
            counts[label] = counts.get(label, 0) + number
    total = sum(counts.values())
    if len(counts) < 2 or any(call.target_counts is None for call in calls):
        return None
    return -sum(n / total * math.log(n / total) for n in counts.values())


def blew_up_before(recording: Recording, step: int) -> float | None:
    """How many times its start the loss was just before a step, where that is a divergence (beyond 1000 times)."""
    before = [abs(value) for at, value in recording.series.get("loss", []) if at < step and math.isfinite(value)]
    if len(before) < 2:
        return None
    start = median(before[:max(1, min(10, len(before) - 1))])
    growth = max(before[-3:]) / max(start, 1e-12)
    return growth if growth > GROWTH else None
