"""An input column is the target itself.

What it is:
One column of the input equals the target, lies on an exact straight line with it, or is the target behind a logarithm or a rate: the label column was not dropped, an identifier was
given out by class, a total contains the value to be foretold, a window of a series ends on it.

Why it is silent:
The model becomes perfect.

What you see:
An error near zero after a few steps, in validation too, and failure wherever the column is not there.

Look-alikes:
Autoencoders and denoisers, language models, tasks with one input column, series whose next value is close to the last one.

Fix:
Drop the column, and ask of each column whether it is known at the time of the prediction.

Before:
    x = table.values
After:
    x = table.drop(columns="target").values

Experiment:
Set the column to zero: the score falls to what the others can do.

Source:
Kaufman et al., Leakage in data mining (2012). The straight line is exact to 1e-3 of the target's spread on every row: measured.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import Giveaway, Labels
from traindx.core.text import Text, number
from traindx.signals.feeding import Feed, Feeding, sites

ZH = """输入里有一列就是目标

是什么：
输入的某一列等于目标，与目标正好在一条直线上，或者只是对目标取了对数、乘了比率：标签列没删掉、编号按类别发放、总数里含有要预测的值、序列的窗口末尾就是它。

为什么不报错：
模型只会变得「完美」。

你会看到：
几步之后误差就接近 0，验证集也是；一旦没有这一列就失灵。

容易混淆的情况：
自编码和去噪、语言模型、只有一列输入的任务、下一个值本来就接近上一个值的序列，都不算。

怎么改：
删掉这一列；对每一列都问一句：预测的那个时刻，它已知吗？

改前：
    x = table.values
改后：
    x = table.drop(columns="target").values

对照实验：
把这一列置 0：分数会降到其他列能达到的水平。

来源：
Kaufman 等，Leakage in data mining（2012）。直线在每一行上的误差都小于目标散布的 1e-3，属实测。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*",)

EXACT = 1e-3

CAUSE = Text("Column {column} of the input gives the target away: over {rows} different row{rows:|s} it lies on one straight line with it.",
             "输入的第 {column} 列直接泄露了目标：{rows} 个不同的样本，它和目标全落在同一条直线上。")
ORDERED = Text("Column {column} of the input gives the target away: {rows} different row{rows:|s} stand in exactly the same order (or its "
               "reverse) by this column and by the target.",
               "输入的第 {column} 列直接泄露了目标：{rows} 个不同的样本，按这一列排和按目标排，顺序完全一致（或正好相反）。")
PAIRS = Text("neighbours in the target's order that this column puts the other way round", "按目标排序后，相邻两个样本在这一列上次序相反的次数")
MANY = Text("many", "很多")
FIX = Text("Drop this column from the input.", "从输入中删掉这一列。")
FIX_WINDOW = Text("Take the target from behind the window: series[i + span], not its last value.", "目标要取窗口之后的值：series[i + span]，不是窗口里的最后一个。")
ERROR = Text("largest distance from that line, in standard deviations of the target", "离这条直线的最大距离（以目标的标准差计）")
BECAUSE = Text("a target that depends on one column alone looks the same", "如果目标本来就只取决于这一列，看起来也一样")


def check(feeding: Feeding) -> Iterator[Finding]:
    for feed in feeding:
        labels = feed.labels
        if labels is not None and labels.giveaway is not None and _given_away(feed, labels, labels.giveaway):
            yield _finding(labels, labels.giveaway, FIX if len(feed.train.row_shape) == 1 else FIX_WINDOW)
        elif labels is not None and labels.giveaway is not None and _in_order(feed, labels, labels.giveaway):
            yield _of_order(labels, labels.giveaway)


def _table(feed: Feed, found: Giveaway) -> bool:
    columns = feed.train.columns
    return columns is not None and columns.total >= 3 and found.rows >= 60 and len(feed.train.row_shape) == 1


def _newest(shape: tuple[int, ...], place: int) -> bool:
    """In a window [time, features] or [channels, time] the place is in the last step, with which the forecast is to begin.

    >>> _newest((24, 2), 47), _newest((24, 2), 44), _newest((1, 24), 23)
    (True, False, True)
    """
    if len(shape) != 2 or shape[0] == shape[1] or max(shape) < 4:
        return False
    return place // shape[1] == shape[0] - 1 if shape[0] > shape[1] else place % shape[1] == shape[1] - 1


def _in_order(feed: Feed, labels: Labels, found: Giveaway) -> bool:
    """One column alone stands in the target's order: the target behind a logarithm, a root, a rate."""
    return _table(feed, found) and not labels.classes and labels.value_columns == 1 and len(found.in_order) == 1 and found.rows >= 100


def _given_away(feed: Feed, labels: Labels, found: Giveaway) -> bool:
    columns = feed.train.columns
    if columns is None or found.columns != 1 or found.error > EXACT:
        return False
    if not _table(feed, found):
        newest = not labels.classes and not feed.train.whole and _newest(feed.train.row_shape, found.column)
        return newest and found.rows >= 60 and labels.value_columns == 1 and found.values >= 10
    if labels.classes:  # among columns that take many values, one takes as many as there are classes
        return found.one_to_one and columns.levels > 8 * found.values and not feed.train.whole
    return labels.value_columns == 1 and found.values >= 10


def _of_order(labels: Labels, found: Giveaway) -> Finding:
    places = sites(labels.loader_site, labels.first_forward, labels.site)
    return Finding(
        cause=ORDERED.fill(column=found.in_order[0], rows=found.rows), fix=FIX, where=places[0] if places else None, also=places[1:],
        confidence="likely", because=BECAUSE, evidence=(Evidence(PAIRS, 0, MANY),))


def _finding(labels: Labels, found: Giveaway, fix: Text) -> Finding:
    places = sites(labels.loader_site, *labels.written[:1], labels.first_forward, labels.site)
    return Finding(
        cause=CAUSE.fill(column=found.column, rows=found.rows), fix=fix, where=places[0] if places else None, also=places[1:],
        confidence="likely", because=BECAUSE, evidence=(Evidence(ERROR, float(number(found.error)), "> 0.1"),))
