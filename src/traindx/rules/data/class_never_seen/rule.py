"""An output class never occurs in training.

What it is:
The model has more outputs than the training labels use: labels that start at 1, a class lost in the split, or one output too many.

Why it is silent:
The loss pushes the unused output down and goes on.

What you see:
A class that is never predicted; if the held-out part has it, all its samples are wrong.

Look-alikes:
A background class kept in reserve, large vocabularies, tasks that are learned one after the other.

Fix:
Count the labels of both parts; split with stratify, and let the number of outputs follow from the labels.

Before:
    train, test = x[:800], x[800:]
After:
    train, test = train_test_split(x, y, stratify=y)

Experiment:
Split with all classes in both parts: the missing class is recognised.

Source:
Label counts over the whole run: measured.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import Labels
from traindx.core.text import Text, number
from traindx.signals.feeding import Feeding, sites

ZH = """有的输出类别在训练里从没出现过

是什么：
模型的输出比训练标签用到的多：标签从 1 开始、划分时丢了一个类别，或者输出多写了一个。

为什么不报错：
损失把没用到的输出压下去，照常训练。

你会看到：
有个类别从来预测不到；留出集里若有它，全部判错。

容易混淆的情况：
备用的背景类、很大的词表、一个接一个学的任务。

怎么改：
数一数两边的标签；按类别分层划分，输出个数由标签决定。

改前：
    train, test = x[:800], x[800:]
改后：
    train, test = train_test_split(x, y, stratify=y)

对照实验：
让两边都有全部类别再划分：缺的类别就认得出来了。

来源：
整个运行中的标签计数，属实测。
"""
LEVEL = "note"
STEP = 1
EXPLAINS = ("curve/train-val-gap", "curve/overfitting")

CAUSE = Text("Of {classes} output class{classes:|es}, class {missing} never occurred among {total} training label{total:|s}.",
             "{classes} 个输出类别里，类别 {missing} 在 {total} 个训练标签中从没出现过。")
HELD_OUT = Text(" The held-out part has {count} sample{count:|s} of them ({share} %).", "留出集里却有 {count} 个这样的样本（{share} %）。")
FIX = Text("Count the labels by class in both parts, and split so that each class is in both.",
           "两边的标签都按类别数一数，划分时让每个类别两边都有。")
COUNT = Text("training labels of these classes", "这些类别的训练标签数")


def check(feeding: Feeding) -> Iterator[Finding]:
    for feed in feeding:
        labels = feed.labels
        if labels is not None and (missing := _missing(labels)):
            yield _finding(labels, missing)


def _missing(labels: Labels) -> list[int]:
    total = sum(labels.counts.values())
    if labels.function not in ("cross_entropy", "nll_loss") or not 3 <= labels.classes <= 64 or total < 20 * labels.classes:
        return []
    return [label for label in range(labels.classes) if label not in labels.counts]


def _finding(labels: Labels, missing: list[int]) -> Finding:
    held_out = labels.held_out or {}
    count, all_ = sum(held_out.get(label, 0) for label in missing), max(sum(held_out.values()), 1)
    loud = count >= 5 and count >= 0.05 * all_
    total = sum(labels.counts.values())
    shown = ", ".join(map(str, missing[:8]))
    cause = CAUSE.fill(classes=labels.classes, missing=shown, total=total)
    places = sites(labels.loader_site, labels.site, labels.first_forward)
    return Finding(cause=cause + HELD_OUT.fill(count=count, share=number(100 * count / all_)) if count else cause, fix=FIX,
                   where=places[0] if places else None, also=places[1:], level="warning" if loud else "note",
                   evidence=(Evidence(COUNT, 0, "> 0"),))
