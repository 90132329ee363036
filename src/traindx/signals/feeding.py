"""What each model was fed with: its training rows, its places of evaluation, its labels."""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.core.judge import Absent
from traindx.core.observed import Site
from traindx.core.observed.fed import Fed, FirstWeights, Labels
from traindx.core.observed.mode import ForwardPass
from traindx.core.observed.program import LossCall
from traindx.core.recording import Recording
from traindx.core.text import Text
from traindx.signals.evaluation import is_rare

RICH = 64.0  # bits: two continuous columns; below, equal rows by chance are no wonder
SEEN_TO_FEED = 3  # forwards; it is looked for on detailed steps only
_NOTHING = Text(
    "no inputs of a trained module were seen (plain tensors, a compiled model or a device without a loader)",
    "没有看到送进所训练模块的输入（只用裸张量、模型已编译，或数据在设备上又没有 DataLoader）")


@dataclass(frozen=True)
class Feed:
    """One model: ``train`` is its training stream, ``evaluations`` the places where it ran without being trained."""

    train: Fed
    evaluations: tuple[Fed, ...]
    labels: Labels | None
    first: FirstWeights | None

    @property
    def coverage(self) -> float:
        """Share of the rows trained on that are known: all of them when no batch was passed over."""
        return 1.0 if not self.train.skipped and self.train.distinct < 60_000 else self.train.known

    @property
    def places(self) -> tuple[Site | None, Site | None]:
        """Where the training data enter: the loader's construction, the forward."""
        return self.train.loader_site, self.train.site


@dataclass(frozen=True)
class Feeding:
    """Every trained model's feed, the most fed first."""

    feeds: tuple[Feed, ...]

    def __iter__(self) -> Iterator[Feed]:
        return iter(self.feeds)

    @classmethod
    def of(cls, recording: Recording) -> Feeding | Absent:
        passes = recording.of(ForwardPass)
        fed = [seen for seen in recording.of(Fed) if seen.group == "train" or not _feeds_a_learner(seen, passes, recording.steps)]
        labels = {seen.model: seen for seen in recording.of(Labels)}
        firsts = {seen.model: seen for seen in recording.of(FirstWeights)}
        feeds = [Feed(seen, tuple(other for other in fed if other.model == seen.model and other.group != "train"),
                      labels.get(seen.model), firsts.get(seen.model)) for seen in fed if seen.group == "train"]
        if not feeds:
            return Absent(_NOTHING)
        return cls(tuple(sorted(feeds, key=lambda feed: -feed.train.rows)))


def _feeds_a_learner(group: Fed, passes: list[ForwardPass], steps: int) -> bool:
    """A frozen part that another model is trained upon: its output goes on into that one, step by step. It is not being evaluated."""
    return any(each.site == group.site and each.input_shape[1:] == group.row_shape and each.training and each.idle
               and each.fed_on >= SEEN_TO_FEED and not is_rare(each, steps) for each in passes)


@dataclass(frozen=True)
class Progress:
    """The training loss at its beginning and end, beside what guessing would give.

    ``chance`` is the loss of a model that knows only the mix of labels: its entropy for classes, the variance for
    squared errors; None where the loss is of another kind.
    """

    first: float
    last: float
    steps: int
    chance: float | None
    function: str

    @property
    def stuck(self) -> bool:
        """The loss ends no better than guessing."""
        return self.chance is not None and self.last > 0.85 * self.chance

    @property
    def starts_high(self) -> bool:
        """The first loss is that of a model that is very sure and wrong."""
        return self.chance is not None and self.first > 3 * self.chance + 1

    @classmethod
    def of(cls, recording: Recording) -> Progress | Absent:
        losses = [value for _, value in recording.series.get("loss", []) if math.isfinite(value)]
        if len(losses) < 8:
            return Absent(Text("fewer than 8 training steps with a finite loss", "损失是有限数的训练步不足 8 步"))
        tail = losses[-max(3, len(losses) // 10):]
        calls = _mean_losses(recording)
        return cls(losses[0], sum(tail) / len(tail), len(losses), chance_of(recording), calls[0].function if calls else "")


def _mean_losses(recording: Recording) -> list[LossCall]:
    return [call for call in recording.of(LossCall) if call.grad and call.reduction == "mean"]


def chance_of(recording: Recording) -> float | None:
    """What guessing by the mix of labels alone would lose; None where the loss is of another kind."""
    calls = _mean_losses(recording)
    if not calls:
        return None
    function = calls[0].function
    if function in ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"):
        counts: dict[int, int] = {}
        for call in calls:
            for label, count in (call.target_counts or _binary_counts(call)).items():
                counts[label] = counts.get(label, 0) + count
        return entropy(counts) or None
    if function == "mse_loss":
        spreads = [call.target_std ** 2 for call in calls if call.target_std is not None]
        return sum(spreads) / len(spreads) if spreads else None
    return None


def _binary_counts(call: LossCall) -> dict[int, int]:
    low, high = call.target_min, call.target_max
    if call.target_mean is None or low is None or high is None or low < 0 or high > 1:
        return {}
    ones = round(1000 * call.target_mean)
    return {0: 1000 - ones, 1: ones}


def entropy(counts: dict[int, int]) -> float:
    """Of a mix of labels, in nats: the loss of a model that knows nothing but this mix."""
    total = sum(counts.values())
    return -sum(n / total * math.log(n / total) for n in counts.values() if n) if total else 0.0


def sites(*places: Site | None) -> tuple[Site, ...]:
    """Those that are known, each once."""
    found: list[Site] = []
    for place in places:
        if place is not None and place not in found:
            found.append(place)
    return tuple(found)
