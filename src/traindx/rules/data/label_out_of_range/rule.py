"""Targets lie outside the range that the loss is made for.

What it is:
Binary cross-entropy gets targets below 0 or above 1 (labels -1 and 1, masks of 0 and 255, standardised images), a margin loss gets 0 and
1 in place of -1 and 1, or cross-entropy ignores an index that is a real class.

Why it is silent:
These losses check shapes, not values. Outside its range the formula goes on, and has no lowest value.

What you see:
A loss that becomes negative and falls without end, scores that grow, or one class that is never predicted.

Look-alikes:
Smoothed labels within 0 and 1, ignored padding in sequences and masks.

Fix:
Map the labels to the range of the loss.

Before:
    loss = bce(logits, mask)
After:
    loss = bce(logits, mask / 255)

Experiment:
Map the labels: the loss gets a floor at 0.

Source:
PyTorch documentation of BCEWithLogitsLoss, SoftMarginLoss and CrossEntropyLoss. Values of the targets: measured.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.program import LossCall
from traindx.core.text import Text, number
from traindx.signals.feeding import Feeding, sites

ZH = """目标超出了损失函数规定的范围

是什么：
二元交叉熵拿到小于 0 或大于 1 的目标（标签是 -1 和 1、掩码是 0 和 255、标准化过的图像）；间隔损失本该拿 -1 和 1，却拿到 0 和 1；
或者交叉熵忽略的编号其实是一个真正的类别。

为什么不报错：
这些损失只检查形状，不检查数值。超出范围后公式照样能算，而且没有最小值。

你会看到：
损失变成负数并一直往下掉、分数越来越大，或者某个类别从来预测不到。

容易混淆的情况：
平滑到 0 和 1 之间的标签、序列和掩码里忽略的填充位，都不算。

怎么改：
把标签换算到损失要求的范围。

改前：
    loss = bce(logits, mask)
改后：
    loss = bce(logits, mask / 255)

对照实验：
换算之后，损失的下限是 0。

来源：
PyTorch 文档：BCEWithLogitsLoss、SoftMarginLoss、CrossEntropyLoss。目标的数值属实测。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "numeric/gradient-explosion", "loss/wrong-direction", "data/class-never-seen", "numeric/nonfinite", "init/*",
            "optim/lr-too-high")

SIGNS = ("soft_margin_loss", "hinge_embedding_loss")

CAUSE = Text("{function} is given targets from {low} to {high}; it is made for {range}.",
             "{function} 拿到的目标从 {low} 到 {high}；它要求 {range}。")
IGNORED = Text("{function} ignores class {index}, one of its {classes} class{classes:|es}: {ignored} of {rows} sample{rows:|s} of this "
               "batch {ignored:does|do} not count.",
               "{function} 忽略了类别 {index}，而它是 {classes} 个类别之一：这个 batch 的 {rows} 个样本里，有 {ignored} 个不计入损失。")
FIX = Text("Map the targets to {range}.", "把目标换算到 {range}。")
KEEP = Text("Leave ignore_index out, or give the index to padding only.", "去掉 ignore_index，或者只把它用于填充的位置。")
TARGETS = Text("lowest and highest target", "目标的最小值和最大值")
COUNTED = Text("samples left out of the loss", "没有计入损失的样本数")


def check(losses: list[LossCall], feeding: Feeding | None) -> Iterator[Finding]:
    for call in losses:
        if (wanted := _wanted(call)) is not None:
            yield _outside(call, wanted)
            return
    for call in losses:
        if feeding is not None and _ignores_a_class(call, feeding) and not _one_of_many(call, losses):
            yield _ignoring(call)
            return


def _wanted(call: LossCall) -> str | None:
    """The range that this call's targets leave; None where they are in order."""
    low, high = call.target_min, call.target_max
    if low is None or high is None or not call.grad:
        return None
    if call.function.startswith("binary_cross_entropy") or (call.function == "cross_entropy" and "float" in call.target_dtype):
        return "0 .. 1" if low < -1e-3 or high > 1 + 1e-3 else None
    if call.function in SIGNS:
        return "-1, 1" if low >= 0 and high <= 1 and low < high else None
    return None


def _ignores_a_class(call: LossCall, feeding: Feeding) -> bool:
    """One label for each sample, and some are left out although their index is a class."""
    if call.function != "cross_entropy" or not call.grad or len(call.input_shape) != 2 or call.ignore_index is None:
        return False
    per_sample = any(feed.train.batch_size == call.input_shape[0] and len(feed.train.row_shape) >= 1 for feed in feeding)
    return per_sample and 0 <= call.ignore_index < call.input_shape[1] and call.ignored >= 1


def _one_of_many(call: LossCall, losses: list[LossCall]) -> bool:
    """Called more than once in a step, for one place of a sequence after the other: then what it leaves out is padding."""
    return any(other.grad and other.site == call.site and other.step == call.step and other.call != call.call for other in losses)


def _outside(call: LossCall, wanted: str) -> Finding:
    low, high = number(call.target_min or 0.0), number(call.target_max or 0.0)
    places = sites(call.site, call.made_at)
    return Finding(cause=CAUSE.fill(function=call.function, low=low, high=high, range=wanted), fix=FIX.fill(range=wanted),
                   where=places[0] if places else None, also=places[1:], first_step=call.step,
                   evidence=(Evidence(TARGETS, f"{low}, {high}", wanted, step=call.step),))


def _ignoring(call: LossCall) -> Finding:
    places = sites(call.made_at, call.site)
    return Finding(cause=IGNORED.fill(function=call.function, index=call.ignore_index, classes=call.input_shape[1], ignored=call.ignored,
                                      rows=call.input_shape[0]), fix=KEEP, where=places[0] if places else None, also=places[1:],
                   first_step=call.step, evidence=(Evidence(COUNTED, call.ignored, "0", step=call.step),), confidence="likely",
                   because=Text("leaving a class out may be meant", "也可能有意不训练这个类别"))
