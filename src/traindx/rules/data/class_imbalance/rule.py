"""A rare class is never recognised.

What it is:
One class is more than ten times as frequent as another, every sample counts alike, and the model has settled for the frequent one.

Why it is silent:
Accuracy equals the share of the frequent class, which looks good.

What you see:
High accuracy, and a recall near zero for the rare class.

Look-alikes:
Weighted losses, balanced samplers, detection and segmentation maps, and nets that find the rare class all the same.

Fix:
Weight the classes in the loss, or sample them evenly; look at recall by class.

Before:
    criterion = nn.CrossEntropyLoss()
After:
    criterion = nn.CrossEntropyLoss(weight=total / (classes * counts))

Experiment:
Weight by inverse frequency: the recall of the rare class rises.

Source:
He and Garcia, Learning from imbalanced data (2009). The factor of ten: rule of thumb; recall on training batches: measured.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import Labels
from traindx.core.text import Text, number
from traindx.signals.feeding import Feeding, Progress, sites

ZH = """少数类从来认不出来

是什么：
一个类别比另一个多十倍以上，每个样本的分量相同，模型就只顾多数类。

为什么不报错：
准确率等于多数类的比例，看着很好。

你会看到：
准确率很高，少数类的召回率接近 0。

容易混淆的情况：
加了权的损失、做了均衡的采样器、检测和分割的逐点标签，以及照样能认出少数类的网络，都不算。

怎么改：
在损失里给类别加权，或均衡采样；按类别看召回率。

改前：
    criterion = nn.CrossEntropyLoss()
改后：
    criterion = nn.CrossEntropyLoss(weight=total / (classes * counts))

对照实验：
按频率的倒数加权：少数类的召回率会上升。

来源：
He 和 Garcia，Learning from imbalanced data（2009）。十倍为经验值；训练 batch 上的召回率属实测。
"""
LEVEL = "warning"
STEP = 4
EXPLAINS = ("curve/plateau",)

TIMES = 10
RECALL = 0.05

CAUSE = Text("Class {rare} has {count} of {total} training label{total:|s}, class {common} {times} times as many, unweighted; of its "
             "latest samples {recall} % were recognised.",
             "{total} 个训练标签里，类别 {rare} 只有 {count} 个，类别 {common} 是它的 {times} 倍，损失又没有加权；"
             "类别 {rare} 最近的样本只认出 {recall} %。")
FIX = Text("Weight the classes by inverse frequency, or draw them evenly, and watch recall by class.",
           "按频率的倒数给类别加权，或均衡采样，并分类别看召回率。")
SHARE = Text("frequency, common over rare class", "多数类与少数类的频数之比")
FOUND = Text("recall of the rare class on the latest training batches", "少数类在最近几个训练 batch 上的召回率")
BECAUSE = Text("other faults can also make a model settle for the frequent class", "别的毛病也会让模型只认多数类")


def check(feeding: Feeding, progress: Progress) -> Iterator[Finding]:
    for feed in feeding:
        labels = feed.labels
        if labels is not None and progress.steps >= 50 and (rare := _unrecognised(labels)) is not None:
            yield _finding(labels, rare)


def _unrecognised(labels: Labels) -> int | None:
    if labels.weighted or not labels.classes or len(labels.counts) < 2 or not labels.recall:
        return None
    top = max(labels.counts.values())
    rare = [label for label, count in labels.counts.items() if count >= 20 and top > TIMES * count
            and labels.recall.get(label, 1.0) < RECALL]
    return min(rare, key=lambda label: labels.counts[label]) if rare else None


def _finding(labels: Labels, rare: int) -> Finding:
    common = max(labels.counts, key=lambda label: labels.counts[label])
    times = number(labels.counts[common] / labels.counts[rare])
    recall = 100 * (labels.recall or {}).get(rare, 0.0)
    places = sites(labels.site, labels.loader_site, labels.first_forward)
    return Finding(
        cause=CAUSE.fill(rare=rare, count=labels.counts[rare], total=sum(labels.counts.values()), common=common, times=times,
                         recall=number(round(recall, 1))), fix=FIX, where=places[0] if places else None, also=places[1:], confidence="suspected",
        because=BECAUSE, evidence=(Evidence(SHARE, float(times), f"< {TIMES}"), Evidence(FOUND, round(recall, 1), "> 5", unit="%")))
