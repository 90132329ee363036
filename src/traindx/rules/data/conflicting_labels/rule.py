"""Identical inputs carry different labels.

What it is:
The same row occurs in training more than once, and not always with the same label: two sources joined with different conventions, several
annotators, copies that were labelled twice.

Why it is silent:
Each pair by itself is in order; the loss averages over the contradiction.

What you see:
A training loss that stops above zero, however large the net.

Look-alikes:
Soft labels, tasks that label the same input for several heads, inputs that say so little that equal rows are no wonder, actions that a policy
drew at random.

Fix:
Join the copies, and settle the label by vote or as a probability.

Before:
    data = table_a + table_b
After:
    data = merge(table_a, table_b, key="id")

Experiment:
Drop the rows in conflict: the floor under the loss goes away.

Source:
Northcutt et al., Confident learning (2021). Rows are compared by a 64-bit hash of their content: measured.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import Labels
from traindx.core.text import Text, number
from traindx.signals.feeding import RICH, Feed, Feeding, sites

ZH = """相同的输入配了不同的标签

是什么：
同一个样本在训练里出现不止一次，标签却不总是一样：两份来源合并时约定不同、多人标注，或重复的样本标了两次。

为什么不报错：
单看每一对都没问题，损失只是把矛盾平均掉。

你会看到：
网络再大，训练损失也停在 0 以上降不下去。

容易混淆的情况：
软标签、同一个输入给多个任务头各标一次、信息量太小本来就会相同的输入、策略随机抽取的动作，都不算。

怎么改：
合并重复的样本，用投票定标签，或改成概率。

改前：
    data = table_a + table_b
改后：
    data = merge(table_a, table_b, key="id")

对照实验：
去掉互相矛盾的样本：损失下面的那道坎就没了。

来源：
Northcutt 等，Confident learning（2021）。样本按内容的 64 位哈希比较，属实测。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/plateau", "data/duplicates")

LEAST_ROWS = 5
LEAST_SHARE = 0.02

CAUSE = Text("{conflicting} of {distinct} different training row{distinct:|s} ({share} %) came with more than one label.",
             "{distinct} 个不同的训练样本里，有 {conflicting} 个（{share} %）配过不止一种标签。")
FIX = Text("Join rows with equal content and settle on one label, or train on the share of each label.",
           "合并内容相同的样本，给它定下一个标签；或者用各个标签的比例来训练。")
ROWS = Text("rows with more than one label", "有多种标签的样本数")


def check(feeding: Feeding) -> Iterator[Finding]:
    for feed in feeding:
        labels = feed.labels
        if labels is not None and _conflicts(feed, labels):
            yield _finding(feed, labels)


def _conflicts(feed: Feed, labels: Labels) -> bool:
    """Enough rows that cannot be equal by chance; labels otherwise hold from one time to the next."""
    if not labels.classes or labels.bits < (8 * RICH if feed.train.whole else RICH) or not labels.again:
        return False
    settled = labels.again_same / labels.again > labels.pure_expected + 0.15 * (1 - labels.pure_expected)
    return settled and labels.conflicting >= max(LEAST_ROWS, LEAST_SHARE * feed.train.distinct)


def _finding(feed: Feed, labels: Labels) -> Finding:
    places = sites(labels.loader_site, *labels.written[:1], labels.first_forward, labels.site)
    share = number(100 * labels.conflicting / max(feed.train.distinct, 1))
    return Finding(
        cause=CAUSE.fill(conflicting=labels.conflicting, distinct=feed.train.distinct, share=share), fix=FIX,
        where=places[0] if places else None, also=places[1:], evidence=(Evidence(ROWS, labels.conflicting, "0"),))
