"""Several trainings in one program: which are alike but for their randomness, and what each came to."""
from __future__ import annotations

import math
from dataclasses import dataclass

from traindx.core.judge import Absent
from traindx.core.observed import Site
from traindx.core.observed.program import ModelSeen, OptimizerMade
from traindx.core.recording import Recording
from traindx.core.text import Text

LEAST = 2  # trainings of one variant whose spread is known

_ONE = Text("fewer than two variants that were trained at least twice each, with a validation loss",
            "没有两种各训练过至少两次、又有验证损失的方案")


@dataclass(frozen=True)
class Variant:
    """Trainings with the same layers, optimizer and settings. ``values`` are their best validation losses."""

    site: Site | None
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(self.values) / len(self.values)


@dataclass(frozen=True)
class Repeats:
    """Variants that were trained repeatedly, in the order of the program."""

    variants: tuple[Variant, ...]

    @classmethod
    def of(cls, recording: Recording) -> Repeats | Absent:
        found: dict[object, list[tuple[Site | None, float]]] = {}
        for made, value in _trainings(recording):
            found.setdefault(_identity(made, recording.of(ModelSeen)), []).append((made.site, value))
        variants = tuple(Variant(each[0][0], tuple(value for _, value in each)) for each in found.values() if len(each) >= LEAST)
        return cls(variants) if len(variants) > 1 else Absent(_ONE)


def _trainings(recording: Recording) -> list[tuple[OptimizerMade, float]]:
    """Every optimizer of new weights begins a training, which ends where the next begins. An evaluation is noted at the step that follows it."""
    begun: list[OptimizerMade] = []
    known: set[int] = set()
    for made in recording.of(OptimizerMade):
        mine = {parameter for group in made.parameters for parameter in group}
        if not mine & known and not (begun and begun[-1].step == made.step):  # two made at once train together
            begun.append(made)
        known |= mine
    points = [(step, value) for step, value in recording.series.get("val_loss", []) if math.isfinite(value)]
    ends = [made.step for made in begun[1:]] + [recording.steps + 1]
    best = [(made, [value for step, value in points if made.step < step <= end]) for made, end in zip(begun, ends)]
    return [(made, min(values)) for made, values in best if values]


def _identity(made: OptimizerMade, models: list[ModelSeen]) -> object:
    """What a variant is made of, as far as it was seen: the layers of its models, the shapes of its weights, the optimizer and its settings."""
    mine = {parameter for group in made.parameters for parameter in group}
    own = [model for model in models if any(parameter.id in mine for parameter in model.parameters)]
    layers = [(model.class_name, model.modules, [parameter.shape for parameter in model.parameters]) for model in own]
    return repr((made.class_name, made.settings, layers))
