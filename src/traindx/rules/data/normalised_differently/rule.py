"""Training and validation inputs were scaled in different ways.

What it is:
One split went through a normalisation that the other did not get, or got with other constants: two transforms, a forgotten call,
a scaler fitted a second time on the test rows.

Why it is silent:
The shapes agree, and a net gives an answer for any numbers.

What you see:
A training loss that is excellent and a validation loss that is large from the first epoch on.

Look-alikes:
Data that truly differ (another site, a later time) shift too, but seldom by a common factor in all columns: said as "likely". Augmentation
changes single samples, hardly the scale of the whole.

Fix:
Let both splits use one function for everything that is not augmentation.

Before:
    eval_transform = ToTensor()
After:
    eval_transform = Compose([ToTensor(), Normalize(mean, std)])

Experiment:
Evaluate on training rows sent through the validation transform: if the loss jumps, the transform is the cause.

Source:
Scikit-learn user guide, common pitfalls: inconsistent preprocessing. Limits (3 x in scale, 1 standard deviation): rule of thumb.
"""
from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import Columns, Fed, ScalerFitted
from traindx.core.text import Text, number
from traindx.signals.feeding import Feed, Feeding, sites

ZH = """训练集和验证集的输入缩放方式不同

是什么：
一边做了归一化，另一边没做，或者用了别的常数：两套 transform、漏掉一次调用，或在测试样本上又拟合了一次 scaler。

为什么不报错：
形状一致，什么数网络都能给出答案。

你会看到：
训练损失很好，验证损失从第一轮起就很大。

容易混淆的情况：
数据本身不同（另一个采集点、更晚的时间）也会偏移，但很少所有列都差同一个倍数，所以只说「很可能」。数据增强改变单个样本，几乎不改变整体尺度。

怎么改：
除了数据增强，两边用同一个函数处理。

改前：
    eval_transform = ToTensor()
改后：
    eval_transform = Compose([ToTensor(), Normalize(mean, std)])

对照实验：
让训练样本走一遍验证集的 transform 再评估：损失若猛增，病因就是 transform。

来源：
scikit-learn 用户指南，common pitfalls：预处理不一致。阈值（尺度 3 倍、偏移 1 个标准差）为经验值。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/train-val-gap", "curve/overfitting", "curve/val-better-than-train", "record/metric-mistake")

CAUSE = Text("Evaluated inputs have {ratio} times the spread of the training inputs and lie {shift} standard deviation{shift:|s} away "
             "(median over {columns} column{columns:|s}).",
             "评估输入的散布是训练输入的 {ratio} 倍，中心相差 {shift} 个标准差（{columns} 列的中位数）。")
REFITTED = Text("A scaler was fitted on the {train} training row{train:|s} and once more on the {rows} evaluated row{rows:|s}; their "
                "statistics differ by {shift} standard deviation{shift:|s}.",
                "归一化器（scaler）先在 {train} 个训练样本上拟合，又在 {rows} 个评估样本上拟合了一次；两次的统计量相差 {shift} 个标准差。")
FIX = Text("Apply the training split's normalisation, with its constants, to the evaluated split.",
           "评估的那一部分，也用训练集的归一化，连常数也用同一套。")
ONE_FIT = Text("Call fit on the training rows only; the others get transform.", "只对训练样本调用 fit，其余的只调用 transform。")
TRAIN = Text("training inputs (lowest, highest, median standard deviation)", "训练输入（最小值、最大值、标准差的中位数）")
EVALUATED = Text("evaluated inputs (likewise)", "评估输入（同样三项）")
ALIKE = Text("about the same in both", "两边大致相同")
SHIFTED = Text("data from another source can differ in this way too", "来源不同的数据也可能这样")


@dataclass(frozen=True)
class _Difference:
    """Medians over columns; ``unlike`` is how far their ratios lie apart, as a median log factor (0: one common factor)."""

    ratio: float
    shift: float
    unlike: float
    columns: int


def check(feeding: Feeding, scalers: list[ScalerFitted] | None) -> Iterator[Finding]:
    for feed in feeding:
        for group in feed.evaluations:
            refit = _refit(feed, group, scalers or [])
            if refit is not None:
                yield refit
            difference = _difference(feed.train.columns, group.columns)
            if difference is not None and not _same_rows(group) and _other_scaling(feed, group, difference):
                yield _finding(feed, group, difference)


def _same_rows(group: Fed) -> bool:
    return group.trained > 0.1 * group.distinct


def _difference(train: Columns | None, other: Columns | None) -> _Difference | None:
    if train is None or other is None or train.total != other.total or min(train.rows, other.rows) < 16:
        return None
    top = max(train.std)
    usable = [j for j in range(len(train.std)) if train.std[j] > 1e-3 * top and other.std[j] > 0]
    if len(usable) < max(1, 0.3 * len(train.std)):
        return None
    ratios = [other.std[j] / train.std[j] for j in usable]
    shifts = [abs(other.mean[j] - train.mean[j]) / train.std[j] for j in usable]
    middle = statistics.median(ratios)
    unlike = statistics.median(abs(math.log(ratio / middle)) for ratio in ratios)
    return _Difference(middle, statistics.median(shifts), unlike, len(usable))


def _other_scaling(feed: Feed, group: Fed, difference: _Difference) -> bool:
    train, other = feed.train.columns, group.columns
    assert train is not None and other is not None
    if not 1 / 3 < difference.ratio < 3:
        return difference.unlike < 0.5 or _standardised(train) != _standardised(other)
    bounded = min(train.at_low, other.at_low) > 0.02 or min(train.at_high, other.at_high) > 0.02
    width = max(train.high - train.low, 1e-12)
    moved = max(abs(other.low - train.low), abs(other.high - train.high)) / width
    if bounded and moved > 0.3 and difference.columns >= 16:
        return difference.unlike < 0.5 and difference.shift > 0.3
    return difference.shift > 1 and _standardised(train) != _standardised(other) and difference.unlike > 0.7


def _standardised(columns: Columns) -> bool:
    """Every column near mean 0 and standard deviation 1."""
    used = [j for j in range(len(columns.std)) if columns.std[j] > 1e-6]
    return bool(used) and statistics.median(abs(columns.mean[j]) for j in used) < 0.3 and all(0.3 < columns.std[j] < 3 for j in used)


def _refit(feed: Feed, group: Fed, scalers: list[ScalerFitted]) -> Finding | None:
    first = next((fit for fit in scalers if _fits(fit, feed.train)), None)
    second = next((fit for fit in scalers if _fits(fit, group)), None)
    if first is None or second is None or first.id == second.id or first.class_name != second.class_name:
        return None
    if first.columns != second.columns or first.rows == second.rows:
        return None
    shifts = [abs(a - b) / s for a, b, s in zip(first.centre, second.centre, first.scale) if s > 1e-9]
    shift = max(shifts, default=0.0)
    if shift < max(0.3, 6 / math.sqrt(second.rows)):
        return None
    places = sites(second.site, first.site, group.site)
    return Finding(cause=REFITTED.fill(train=first.rows, rows=second.rows, shift=number(shift)), fix=ONE_FIT, where=places[0],
                   also=places[1:], first_step=group.step)


def _fits(fit: ScalerFitted, fed: Fed) -> bool:
    return 0.97 * fit.rows <= fed.distinct <= fit.rows and fed.row_shape[-1:] == (fit.columns,)


def _finding(feed: Feed, group: Fed, difference: _Difference) -> Finding:
    places = sites(group.loader_site, group.site, feed.train.loader_site, feed.train.site)
    assert feed.train.columns is not None and group.columns is not None
    return Finding(
        cause=CAUSE.fill(ratio=number(difference.ratio), shift=number(difference.shift), columns=difference.columns), fix=FIX,
        where=places[0] if places else None, also=places[1:], first_step=group.step, confidence="likely", because=SHIFTED,
        evidence=(Evidence(TRAIN, _shown(feed.train.columns), ALIKE), Evidence(EVALUATED, _shown(group.columns), ALIKE)))


def _shown(columns: Columns) -> str:
    return f"{number(columns.low)}, {number(columns.high)}, {number(statistics.median(columns.std))}"
