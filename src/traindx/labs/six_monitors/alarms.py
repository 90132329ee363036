"""When a monitor speaks: its band, and for the losses and the weights a direction. All limits are rules of thumb."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.text import Text, number
from traindx.labs.six_monitors.runs import Curves
from traindx.signals.monitors import SIX, Monitor, Quantity

OFTEN = 0.25  # share of the steps outside the band
SPIKE = 10.0  # times the upper end of the band: once is enough
JUMP = 10.0  # times its start: a loss that is there once has jumped
FALLEN, RISEN, GROWN = -0.05, 1.15, 1.5  # train loss at least 5 % lower; validation 15 % above its lowest; weights half as large again


@dataclass(frozen=True)
class Alarm:
    """What is seen, and what it may mean."""

    quantity: Quantity
    what: Text
    meaning: Text


MEANINGS = {
    "train_loss": Text("code, learning rate or data", "代码、学习率或数据"),
    "val_loss": Text("overfitting, or a loss that diverges", "过拟合，或者损失发散"),
    ("grad_norm", "low"): Text("dead units or a cut gradient", "神经元死亡，或者梯度断了"),
    ("grad_norm", "high"): Text("bad batch, wrong initialisation, gradients not cleared", "坏 batch、初始化不对、梯度没清零"),
    ("activation_std", "low"): Text("vanishing signals or dead units", "信号消失，或者神经元死亡"),
    ("activation_std", "high"): Text("initialisation or learning rate too large", "初始化尺度或学习率太大"),
    ("update_ratio", "low"): Text("learning rate too small, or no gradient", "学习率太小，或者没有梯度"),
    ("update_ratio", "high"): Text("learning rate too large", "学习率太大"),
    "weight_norm": Text("learning rate too large, no weight decay", "学习率太大，没有权重衰减")}


def alarms(curves: Curves) -> list[Alarm]:
    """Those of the six that speak; of several layers the last one that does, where what grows or shrinks has gone furthest."""
    found = [next(filter(None, (_alarm(Monitor(quantity, list(enumerate(line)))) for line in reversed(curves[quantity.name]))), None)
             for quantity in SIX]
    return [alarm for alarm in found if alarm]


def _alarm(monitor: Monitor) -> Alarm | None:
    name = monitor.quantity.name
    if monitor.nonfinite:
        step = next(step for step, value in monitor.points if not abs(value) < float("inf"))
        what = Text("no finite number from step {step} on", "从第 {step} 步起不是有限数").fill(step=step)
        return Alarm(monitor.quantity, what, MEANINGS.get(name) or MEANINGS[name, "high"])
    if monitor.quantity.band:
        return _outside(monitor)
    moved = _direction(monitor)
    return Alarm(monitor.quantity, moved, MEANINGS[name]) if moved else None


def _outside(monitor: Monitor) -> Alarm | None:
    band = monitor.quantity.band
    assert band is not None
    below, above = monitor.shares()
    peak = max(monitor.finite)
    high = MEANINGS[monitor.quantity.name, "high"]
    if peak > SPIKE * band.high and above <= OFTEN:
        place = next(step for step, value in monitor.points if value > SPIKE * band.high)
        return Alarm(monitor.quantity, Text("a spike at step {place}, up to {peak}", "第 {place} 步有一个尖峰，最高 {peak}").fill(
            place=place, peak=number(peak)), high)
    if above > OFTEN:
        first = next(step for step, value in monitor.points if value > band.high)
        what = Text("above its band from step {first} on, up to {peak}", "第 {first} 步起高于正常范围，最高 {peak}")
        return Alarm(monitor.quantity, what.fill(first=first, peak=number(peak)), high)
    if below > OFTEN:
        what = Text("below its band at {share} % of the steps, down to {low}", "{share} % 的步数低于正常范围，最低 {low}")
        what = what.fill(share=number(100 * below, 2), low=number(min(monitor.finite)))
        return Alarm(monitor.quantity, what, MEANINGS[monitor.quantity.name, "low"])
    return None


def _direction(monitor: Monitor) -> Text | None:
    values, change = monitor.finite, monitor.change() or 0.0
    tenth = max(1, len(values) // 10)
    late = sum(values[-tenth:]) / tenth
    if monitor.quantity.kind == "curve" and max(values) > JUMP * values[0]:
        return Text("jumps from {before} up to {peak}", "从 {before} 跳到 {peak}").fill(before=number(values[0]), peak=number(max(values)))
    if monitor.quantity.name == "train_loss" and change > FALLEN:
        return Text("does not fall: {before} → {after}", "不降：{before} → {after}").fill(before=number(values[0]), after=number(late))
    if monitor.quantity.name == "val_loss" and late > RISEN * min(values):
        return Text("rises again: {low} → {late}", "先降后升：{low} → {late}").fill(low=number(min(values)), late=number(late))
    if monitor.quantity.name == "weight_norm" and values[-1] > GROWN * values[0]:
        return Text("grows: {before} → {after}", "一直在涨：{before} → {after}").fill(before=number(values[0]), after=number(values[-1]))
    return None
