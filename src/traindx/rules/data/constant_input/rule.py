"""The model's input never changes.

What it is:
Every row of every batch is the same, often all zeros: a file that could not be read, a buffer that is never filled, a dataset that ignores
its index, while the targets differ.

Why it is silent:
The model learns what can be learned from a constant: the mix of the labels.

What you see:
A loss that falls to the level of guessing and stays there.

Look-alikes:
Targets that are constant too, learned constants with further inputs that vary, and single-sample fits (one image, one field).

Fix:
Look at one batch before training; follow a sample from the file to the model.

Before:
    def __getitem__(self, i): return self.buffer, self.labels[i]
After:
    def __getitem__(self, i): return self.read(i), self.labels[i]

Experiment:
Feed random inputs: if the loss does not care, the input carried nothing.

Source:
Karpathy, A recipe for training neural networks (2019): become one with the data. Rows are compared by content: measured.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text, number
from traindx.signals.feeding import Feed, Feeding, sites

ZH = """模型的输入从不变化

是什么：
每个 batch 的每一行都一样，常常全是 0：文件没读进来、缓冲区从未填充、数据集不理会下标，而目标却各不相同。

为什么不报错：
模型学会了从常数里能学到的一切：标签的比例。

你会看到：
损失降到瞎猜的水平就不动了。

容易混淆的情况：
目标也是常数的；输入是可学的常数、另有变化的输入的；只拟合一个样本（一张图、一个场）的，都不算。

怎么改：
训练前先看一个 batch；跟着一个样本，从文件一直看到模型。

改前：
    def __getitem__(self, i): return self.buffer, self.labels[i]
改后：
    def __getitem__(self, i): return self.read(i), self.labels[i]

对照实验：
换成随机输入：损失若没有变化，说明原来的输入什么都没说。

来源：
Karpathy，A recipe for training neural networks（2019）：先和数据打成一片。样本按内容比较，属实测。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "data/same-batch-forever", "data/duplicates", "data/conflicting-labels", "data/labels-misaligned", "init/*",
            "data/split-overlap", "optim/lr-too-low", "data/scaled-twice", "data/class-imbalance")
EXPERIMENT = "zero-input"

CAUSE = Text("All {rows} row{rows:|s} fed in {batches} batch{batches:|es} are one and the same (values {low} to {high}), while the targets "
             "vary.",
             "{batches} 个 batch 共 {rows} 个样本，输入完全相同（取值 {low} 到 {high}），目标却在变化。")
FIX = Text("Follow one sample from its source to the model and find where its content is lost.",
           "跟着一个样本，从来源一直走到模型，找出它的内容丢在哪里。")
DISTINCT = Text("different rows", "不同的样本数")


def check(feeding: Feeding) -> Iterator[Finding]:
    for feed in feeding:
        train = feed.train
        if train.distinct == 1 and train.rows >= 16 and train.batch_size >= 2 and train.inputs == 1 and _targets_vary(feed):
            places = sites(train.loader_site, train.site)
            low, high = (train.columns.low, train.columns.high) if train.columns else (0.0, 0.0)
            yield Finding(cause=CAUSE.fill(rows=train.rows, batches=train.batches, low=number(low), high=number(high)), fix=FIX,
                          where=places[0] if places else None, also=places[1:], evidence=(Evidence(DISTINCT, 1, str(train.rows)),))


def _targets_vary(feed: Feed) -> bool:
    labels = feed.labels
    return labels is not None and (len(labels.counts) > 1 or labels.value_distinct > 1)
