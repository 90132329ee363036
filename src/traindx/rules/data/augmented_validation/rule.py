"""Validation inputs change from pass to pass.

What it is:
The evaluated split goes through the random augmentation of the training split, so that every pass sees other inputs.

Why it is silent:
Augmented samples are samples; the labels fit.

What you see:
A validation score that is worse than it could be and wobbles with the weights held still, so that the best epoch is partly luck.

Look-alikes:
Test-time augmentation that averages several views on purpose, sets that are generated anew with labels of their own.

Fix:
Give the evaluated split a transform without randomness.

Before:
    val = Subset(train_dataset_with_augmentation, rows)
After:
    val = Subset(plain_dataset, rows)

Experiment:
Evaluate twice without training in between: the score must not change.

Source:
Rows at the same places of two passes are compared by a 64-bit hash of their content: measured.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import Fed
from traindx.core.text import Text, number
from traindx.signals.feeding import Feeding, sites

ZH = """验证集的输入每次都不一样

是什么：
用来评估的那部分数据也走了训练集的随机增强，每次评估看到的输入都不同。

为什么不报错：
增强后的样本也是样本，标签也对得上。

你会看到：
验证分数偏低，权重不动也会晃，于是「最好的一轮」有一半靠运气。

容易混淆的情况：
测试时有意对多个视图取平均；每次重新生成、标签也随之改变的数据，都不算。

怎么改：
给评估的部分用不带随机性的 transform。

改前：
    val = Subset(train_dataset_with_augmentation, rows)
改后：
    val = Subset(plain_dataset, rows)

对照实验：
不训练，连续评估两次：分数不应变化。

来源：
两次评估中同一位置的样本按内容的 64 位哈希比较，属实测。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("curve/train-val-gap", "curve/oscillating")

CAUSE = Text("{changed} of {compared} evaluated row{compared:|s} ({share} %) differ from the row at the same place of the pass before, "
             "with the same labels.",
             "{compared} 个评估样本里，有 {changed} 个（{share} %）和上一次评估同一位置的样本不同，标签却一样。")
FIX = Text("Use a transform without randomness for the evaluated split.", "评估用的数据改用没有随机性的变换（transform）。")
ROWS = Text("evaluated rows that changed between passes", "两次评估之间发生变化的样本")
BECAUSE = Text("random views can be meant at test time", "也可能有意在测试时用随机变换过的样本")


def check(feeding: Feeding) -> Iterator[Finding]:
    for feed in feeding:
        for group in feed.evaluations:
            if group.loader and group.sampler == "SequentialSampler" and group.compared >= 30 and group.changed > 0.3 * group.compared:
                yield _finding(group)


def _finding(group: Fed) -> Finding:
    places = sites(group.loader_site, group.site)
    return Finding(
        cause=CAUSE.fill(changed=group.changed, compared=group.compared, share=number(100 * group.changed / group.compared)), fix=FIX,
        where=places[0] if places else None, also=places[1:], confidence="likely", because=BECAUSE, first_step=group.step,
        evidence=(Evidence(ROWS, group.changed, "0"),))
