"""The six monitors: train loss, validation loss, gradient norm, activation std, update ratio, weight norm.

Bands are experience values (a rule of thumb, not a law): outside is worth a look, never a verdict. Losses and the
weight norm have no band that would hold for every model, only a direction.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from traindx.core.findings import Origin
from traindx.core.judge import Absent
from traindx.core.recording import Recording
from traindx.core.text import Text

_UNSEEN = Text("{title} was not recorded", "没有记录到{title}")
_ANY = Text("any of the six monitors", "六个监控量中的任何一个")
Points = list[tuple[int, float]]


@dataclass(frozen=True)
class Band:
    """What sound trainings usually show."""

    low: float
    high: float
    origin: Origin = "rule of thumb"


@dataclass(frozen=True)
class Quantity:
    """One of the six: the ``name`` used in reports, the ``series`` of the recording that carries it."""

    name: str
    series: str
    title: Text
    band: Band | None = None
    kind: Literal["curve", "level"] = "level"


SIX = (
    Quantity("train_loss", "loss", Text("train loss", "训练损失"), kind="curve"),
    Quantity("val_loss", "val_loss", Text("validation loss", "验证损失"), kind="curve"),
    Quantity("grad_norm", "grad_norm", Text("gradient norm", "梯度范数"), Band(1e-2, 1e1)),
    Quantity("activation_std", "activation_std", Text("activation std", "激活标准差"), Band(0.1, 10.0)),
    Quantity("update_ratio", "update_ratio", Text("update ratio", "参数更新比例"), Band(1e-3, 1e-2)),
    Quantity("weight_norm", "weight_norm", Text("weight norm", "权重范数")),
)


@dataclass(frozen=True)
class Monitor:
    """A quantity's points ``[(step, value), ...]`` over one run, never empty."""

    quantity: Quantity
    points: Points

    @property
    def finite(self) -> list[float]:
        return [value for _, value in self.points if math.isfinite(value)]

    @property
    def nonfinite(self) -> int:
        return len(self.points) - len(self.finite)

    @property
    def last(self) -> float:
        return self.points[-1][1]

    @property
    def range(self) -> tuple[float, float] | None:
        """Over the finite values."""
        return (min(self.finite), max(self.finite)) if self.finite else None

    def shares(self) -> tuple[float, float]:
        """Shares of the finite points below and above the band."""
        band, values = self.quantity.band, self.finite
        if band is None or not values:
            return 0.0, 0.0
        return sum(v < band.low for v in values) / len(values), sum(v > band.high for v in values) / len(values)

    def change(self) -> float | None:
        """Mean of the last tenth minus mean of the first, in units of the first's size; None for too few points."""
        values = self.finite
        if len(values) < 3:
            return None
        tenth = max(1, len(values) // 10)
        before, after = sum(values[:tenth]) / tenth, sum(values[-tenth:]) / tenth
        return (after - before) / max(abs(before), 1e-12)


@dataclass(frozen=True)
class Monitors:
    """Those of the six that were recorded."""

    monitors: tuple[Monitor, ...]

    @classmethod
    def of(cls, recording: Recording) -> Monitors | Absent:
        found = cls.in_series(recording.series)
        return found if found.monitors else Absent(_UNSEEN.fill(title=_ANY))

    @classmethod
    def in_series(cls, series: dict[str, Points]) -> Monitors:
        return cls(tuple(Monitor(quantity, series[quantity.series]) for quantity in SIX if series.get(quantity.series)))


class _One:
    """A rule asks for one monitor by one of the classes below."""

    quantity: Quantity

    def __init__(self, monitor: Monitor) -> None:
        self.monitor = monitor

    @classmethod
    def of(cls, recording: Recording) -> _One | Absent:
        points = recording.series.get(cls.quantity.series)
        return cls(Monitor(cls.quantity, points)) if points else Absent(_UNSEEN.fill(title=cls.quantity.title))


class TrainLoss(_One):
    quantity = SIX[0]


class ValidationLoss(_One):
    quantity = SIX[1]


class GradNorm(_One):
    quantity = SIX[2]


class ActivationStd(_One):
    quantity = SIX[3]


class UpdateRatio(_One):
    quantity = SIX[4]


class WeightNorm(_One):
    quantity = SIX[5]
