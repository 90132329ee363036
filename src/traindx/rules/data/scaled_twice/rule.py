"""Images were scaled down twice.

What it is:
Pixels that had been divided by 255 are divided by 255 again, so that all inputs lie within 0.004 of each other.

Why it is silent:
Small numbers are numbers; with a bias in each layer the net still gives answers.

What you see:
A loss that leaves the level of guessing slowly or never.

Look-alikes:
Sparse one-hot rows, measurements in small units, inputs that a norm layer scales up again.

Fix:
Scale once: ToTensor divides uint8 images by 255 already.

Before:
    x = ToTensor()(image) / 255
After:
    x = ToTensor()(image)

Experiment:
Multiply the input by 255: the loss falls at once.

Source:
torchvision documentation of ToTensor. The grid of the values (steps of 1/255²) is exact arithmetic: formula.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import Columns, FirstWeights
from traindx.core.text import Text, number
from traindx.signals.feeding import Feed, Feeding, sites

ZH = """图像缩小了两次

是什么：
已经除以 255 的像素又除了一次 255，所有输入都挤在 0.004 的范围里。

为什么不报错：
小数也是数；每层都有偏置，网络照样给出答案。

你会看到：
损失离开瞎猜的水平很慢，或根本不动。

容易混淆的情况：
稀疏的 one-hot、单位很小的测量值、前面有归一化层会重新放大的输入，都不算。

怎么改：
只缩放一次：ToTensor 已经把 uint8 图像除以 255 了。

改前：
    x = ToTensor()(image) / 255
改后：
    x = ToTensor()(image)

对照实验：
把输入乘 255：损失马上下降。

来源：
torchvision 文档 ToTensor。取值的网格（步长 1/255²）是精确的算术，由公式算出。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("curve/*", "optim/lr-too-low", "init/activation-collapse", "init/gradient-vanishing", "init/dead-units", "data/class-imbalance")

STEPS = (255, 256, 16, 15)  # grey levels of images
CRUSHED = 0.05

CAUSE = Text("Inputs have {levels} different value{levels:|s} between {low} and {high}, {spacing} apart: {steps} grey level{steps:|s}, "
             "divided by {steps} twice.",
             "输入在 {low} 到 {high} 之间有 {levels} 种取值，间隔 {spacing}：{steps} 级灰度除以 {steps}，除了两次。")
FIX = Text("Divide once.", "只除一次。")
RANGE = Text("range of the inputs", "输入的取值范围")
UNIT = Text("0 to 1, or standard deviation 1", "0 到 1，或标准差为 1")


def check(feeding: Feeding) -> Iterator[Finding]:
    for feed in feeding:
        columns = feed.train.columns
        if columns is not None and not _normed(feed.first) and (steps := _twice(columns)):
            yield _finding(feed, columns, steps)


def _normed(first: FirstWeights | None) -> bool:
    return first is not None and "Norm" in first.module_class


def _twice(columns: Columns) -> int:
    """The number of grey levels by which the values were divided twice, as their grid shows; 0 where they were not."""
    width = columns.high - columns.low
    if columns.total < 64 or columns.levels < 8 or columns.spacing <= 0 or not 0 < width < 0.08:
        return 0
    for steps in STEPS:
        grid = abs(columns.spacing * steps * steps - 1) < 0.02 and columns.low >= -1e-9 and columns.high < 1.02 / steps
        if grid or _coarse(columns, steps):
            return steps
    levels = width / columns.spacing
    return 255 if width < CRUSHED and 60 <= levels <= 255.5 and 16 <= columns.levels <= 256 else 0


def _coarse(columns: Columns, steps: int) -> bool:
    """Only some of the grey levels occur, the highest of them does: 0, 16, 32, .. 255, each divided twice."""
    gap = columns.spacing * steps * steps
    return abs(columns.low) < 1e-9 and abs(columns.high * steps - 1) < 1e-4 and 1 <= round(gap) <= steps / 8 and abs(gap - round(gap)) < 0.01


def _finding(feed: Feed, columns: Columns, steps: int) -> Finding:
    places = sites(feed.train.loader_site, feed.train.site, feed.first.site if feed.first else None)
    return Finding(
        cause=CAUSE.fill(levels=columns.levels, low=number(columns.low), high=number(columns.high), spacing=number(columns.spacing),
                         steps=steps), fix=FIX, where=places[0] if places else None, also=places[1:],
        evidence=(Evidence(RANGE, f"{number(columns.low)} .. {number(columns.high)}", UNIT),))
