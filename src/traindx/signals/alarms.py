"""Alarms of the six monitors: what is out of the ordinary, from which step on, and what that usually means.

The limits are rules of thumb. An alarm is a reason to look, not a finding: rules find.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from traindx.core.text import Text
from traindx.signals.monitors import Monitor, Points

ENOUGH = 20  # points, to speak of a course
FALL = 0.02  # a loss that has fallen by less has not fallen
JUMP = 3.0  # times the highest of the ENOUGH points before
RISEN = 1.1  # of a validation loss above its minimum
THOUSANDS, UNUSUAL = 1e3, 100.0  # a gradient norm, and that many times its median so far
GROWN = 10.0  # a weight norm, against its first value
LASTING = 0.9  # share of the remaining points that stay outside of the band


@dataclass(frozen=True)
class Alarm:
    """``what`` is short enough to stand in a chart."""

    step: int
    what: Text
    meaning: Text


NOT_FINITE = (Text("NaN / Inf", "NaN / Inf"),
              Text("the numbers have overflowed: bisect to the first layer that is not finite", "数值已经溢出：二分定位第一个不是有限值的层"))
NO_FALL = (Text("does not fall", "不降"),
           Text("a bug, or a learning rate that is too small or far too large", "代码有 bug，或者学习率太小，或者大得离谱"))
JUMPS = (Text("jump", "突跳"), Text("a bad batch, or a learning rate at its limit", "遇到坏 batch，或者学习率到了极限"))
RISING = (Text("rising from here", "从这里开始上升"), Text("overfitting: the best checkpoint lies here", "过拟合：最好的检查点在这里"))
BAD_BATCH = (Text("thousands", "突然上千"), Text("a bad batch: look at the samples of this step", "坏 batch：去看这一步的样本"))
ZERO = (Text("zero", "为零"), Text("all units are dead, or the gradient is cut off", "神经元全部死亡，或者梯度断了"))
GROWTH = (Text("ten times the start", "已是开头的 10 倍"),
          Text("the learning rate is too high, or weight decay is missing", "学习率太高，或者没有权重衰减"))
BELOW, ABOVE = Text("below the band", "低于正常范围"), Text("above the band", "高于正常范围")
OUTSIDE: dict[str, tuple[Text, Text]] = {  # what lasting values below and above the band mean
    "grad_norm": (Text("gradients vanish, or training is done", "梯度消失，或者已经训练到头"),
                  Text("gradients are large: look at the scale of data and targets, then clip",
                       "梯度偏大：先看数据和目标的量级，再考虑梯度裁剪")),
    "activation_std": (Text("signals vanish from layer to layer", "信号逐层衰减"),
                       Text("signals grow from layer to layer: initialisation or learning rate", "信号逐层放大：初始化或学习率有问题")),
    "update_ratio": (Text("the learning rate is too small, or parameters are frozen", "学习率太小，或者参数冻结了"),
                     Text("the learning rate is too large", "学习率太大"))}


def alarms_of(monitor: Monitor) -> list[Alarm]:
    """At most one of each kind, in the order of their steps."""
    watch = WATCHED.get(monitor.quantity.name, ())
    found = [alarm for one in (_not_finite, *watch, _outside) for alarm in one(monitor)]
    return sorted(found, key=lambda alarm: alarm.step)


def _not_finite(monitor: Monitor) -> Iterator[Alarm]:
    step = next((step for step, value in monitor.points if not math.isfinite(value)), None)
    if step is not None:
        yield Alarm(step, *NOT_FINITE)


def _no_fall(monitor: Monitor) -> Iterator[Alarm]:
    change = monitor.change()
    if len(monitor.finite) >= ENOUGH and change is not None and change > -FALL:
        yield Alarm(monitor.points[-1][0], *NO_FALL)


def _jumps(monitor: Monitor) -> Iterator[Alarm]:
    finite = _finite(monitor.points)
    for at in range(ENOUGH, len(finite)):
        before = max(value for _, value in finite[at - ENOUGH:at])
        if before > 0 and finite[at][1] > JUMP * before:
            yield Alarm(finite[at][0], *JUMPS)
            return


def _rising(monitor: Monitor) -> Iterator[Alarm]:
    finite = _finite(monitor.points)
    if len(finite) < 4:
        return
    at, (step, low) = min(enumerate(finite), key=lambda item: item[1][1])
    later = [value for _, value in finite[-max(1, len(finite) // 4):]]
    if at < 0.75 * len(finite) and low > 0 and min(later) > RISEN * low:
        yield Alarm(step, *RISING)


def _bad_batch(monitor: Monitor) -> Iterator[Alarm]:
    seen: list[float] = []
    for step, value in _finite(monitor.points):
        if value > THOUSANDS and len(seen) >= ENOUGH and value > UNUSUAL * sorted(seen[-101:])[len(seen[-101:]) // 2]:
            yield Alarm(step, *BAD_BATCH)
            return
        seen.append(value)


def _zero(monitor: Monitor) -> Iterator[Alarm]:
    """To the end, for more than two points."""
    zeros = 0
    for _, value in reversed(monitor.points):
        if value != 0:
            break
        zeros += 1
    if zeros > 2:
        yield Alarm(monitor.points[-zeros][0], *ZERO)


def _growth(monitor: Monitor) -> Iterator[Alarm]:
    finite = _finite(monitor.points)
    step = next((step for step, value in finite if finite[0][1] > 0 and value > GROWN * finite[0][1]), None)
    if step is not None:
        yield Alarm(step, *GROWTH)


def _outside(monitor: Monitor) -> Iterator[Alarm]:
    """The first step from which on nearly all values lie on the same side of the band."""
    band, finite = monitor.quantity.band, _finite(monitor.points)
    if band is None or len(finite) < ENOUGH:
        return
    below, above = OUTSIDE[monitor.quantity.name]
    for what, meaning, outside in ((BELOW, below, lambda value: value < band.low), (ABOVE, above, lambda value: value > band.high)):
        at = _lasting([outside(value) for _, value in finite])
        if at is not None:
            yield Alarm(finite[at][0], what, meaning)


def _lasting(outside: list[bool]) -> int | None:
    """The earliest index that is outside, from which on LASTING of all are; for at least ENOUGH points."""
    count, found = 0, None
    for back, is_out in enumerate(reversed(outside), 1):
        count += is_out
        if is_out and back >= ENOUGH and count >= LASTING * back:
            found = len(outside) - back
    return found


def _finite(points: Points) -> Points:
    return [(step, value) for step, value in points if math.isfinite(value)]


Watch = Callable[[Monitor], Iterator[Alarm]]
WATCHED: dict[str, tuple[Watch, ...]] = {"train_loss": (_no_fall, _jumps), "val_loss": (_rising,), "grad_norm": (_bad_batch, _zero),
                                         "weight_norm": (_growth,)}
