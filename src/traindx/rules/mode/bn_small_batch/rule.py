"""BatchNorm normalises by too few values.

What it is:
BatchNorm in train mode estimates mean and variance of each channel from fewer than eight values, because the batch is
small and no spatial positions add to it.

Why it is silent:
Two values already have a mean and a variance. Only a single one raises an error.

What you see:
A loss that jumps from batch to batch, and eval results far worse than training, for the running statistics describe no
batch that the net has met.

Look-alikes:
Convolutions over large maps have thousands of values per channel even with two images. A last, partial batch is short
once per epoch only.

Fix:
Use GroupNorm or LayerNorm, or a larger batch (accumulating gradients does not help BatchNorm).

Before:
    nn.Linear(32, 64), nn.BatchNorm1d(64)
After:
    nn.Linear(32, 64), nn.LayerNorm(64)

Experiment:
Train once with a batch eight times as large, or with GroupNorm: if validation improves, the small batch was the cause.

Source:
Wu, He 2018: Group Normalization (error of BatchNorm grows as the batch shrinks); the limit of eight is a rule of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.amounts import percent
from traindx.core.findings import Evidence, Finding
from traindx.core.observed.data import LoaderMade
from traindx.core.observed.mode import BatchNormSeen
from traindx.core.text import Text

ZH = """BatchNorm 用太少的值做归一化

是什么：
训练模式下，BatchNorm 每个通道的均值和方差只由不到 8 个值估计：batch 小，又没有空间位置来补充。

为什么不报错：
两个值就能算出均值和方差；只有剩下一个值时才会报错。

你会看到：
损失在 batch 之间来回跳；推理结果比训练差很多，因为滑动统计量描述的不是网络见过的任何一个 batch。

容易混淆的情况：
大特征图上的卷积，即使只有两张图，每个通道也有几千个值。每轮最后那个不满的 batch 只短一次，不算。

怎么改：
改用 GroupNorm 或 LayerNorm，或者加大 batch（梯度累积帮不了 BatchNorm）。

改前：
    nn.Linear(32, 64), nn.BatchNorm1d(64)
改后：
    nn.Linear(32, 64), nn.LayerNorm(64)

对照实验：
把 batch 加大到 8 倍，或换成 GroupNorm，再训练一次：验证变好，病因就是 batch 太小。

来源：
Wu、He 2018《Group Normalization》：batch 越小，BatchNorm 的误差越大。「8」是经验值。
"""
LEVEL = "warning"
STEP = 3
EXPLAINS = ("curve/oscillating", "curve/train-val-gap", "mode/bn-stats-diverge")

FEWEST = 8  # values per channel; rule of thumb
MOST = 0.8  # of the training calls must be so small
CALLS = 10
CAUSE = Text(
    "This BatchNorm estimates mean and variance from {values} value{values:|s} per channel (input {shape}) in {share} of its training calls.",
    "{share} 的训练调用里，这个 BatchNorm 每个通道只用 {values} 个值来估计均值和方差（输入 {shape}）。")
FIX = Text("Replace it by GroupNorm or LayerNorm, or train with a larger batch.", "换成 GroupNorm 或 LayerNorm，或者加大 batch。")
VALUES = Text("values per channel", "每个通道的值的个数")
CALLS_SEEN = Text("training calls with so few values", "值这么少的训练调用")


def check(norms: list[BatchNormSeen] | None, loaders: list[LoaderMade] | None) -> Iterator[Finding]:
    for norm in norms or []:
        few = sum(calls for values, calls in norm.values.items() if 1 < values < FEWEST)
        if norm.calls >= CALLS and few >= MOST * norm.calls:
            yield _finding(norm, few, loaders or [])


def _finding(norm: BatchNormSeen, few: int, loaders: list[LoaderMade]) -> Finding:
    values = max(norm.values, key=lambda n: norm.values[n])
    loader = next((each.site for each in loaders if each.batch_size == norm.shape[0]), None)
    places = [site for site in (norm.made_at, norm.site, loader) if site]
    return Finding(
        cause=CAUSE.fill(values=str(values), shape=str(list(norm.shape)), share=percent(few / norm.calls)), fix=FIX,
        where=places[0] if places else None, also=tuple(places[1:]),
        evidence=(Evidence(VALUES, values, f">= {FEWEST}", "rule of thumb"), Evidence(CALLS_SEEN, f"{few} / {norm.calls}")),
        first_step=norm.step)
