"""Training batches come sorted by class.

What it is:
The loader walks through the data in the order of the files or the table, one class after the other, so each batch shows one class only.

Why it is silent:
The loss of the present class falls at once, again and again; nobody sees that the classes before it are forgotten.

What you see:
A training loss that is very low with spikes where the class changes, and a validation that knows the last classes only.

Look-alikes:
Data shuffled once beforehand, full-batch training, samplers that put a few samples of many classes in a batch, sequences read in order
(texts, time series), real and fake batches in turn, and tasks learned one after the other with shuffled batches.

Fix:
Pass shuffle=True to the training loader, or draw a permutation each epoch.

Before:
    train = DataLoader(dataset, batch_size=32)
After:
    train = DataLoader(dataset, batch_size=32, shuffle=True)

Experiment:
Shuffle, all else equal: validation accuracy rises for the classes that came first.

Source:
Bottou, Stochastic gradient descent tricks (2012): shuffle the examples. Equal pairs within a batch against a shuffled order: formula.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.data import LoaderMade
from traindx.core.observed.fed import Labels
from traindx.core.text import Text, number
from traindx.signals.feeding import Feeding, sites

ZH = """训练 batch 按类别排着队来

是什么：
loader 按文件或表格的次序读数据，一类读完再读下一类，每个 batch 里几乎只有一个类别。

为什么不报错：
当前类别的损失马上就降下来，一次又一次；看不出前面的类别已经忘了。

你会看到：
训练损失很低，类别切换处有尖峰；验证时只认得最后几类。

容易混淆的情况：
事先打乱过一次的数据、全量 batch、每个 batch 取许多类各几个样本的采样器、按次序读的序列（文本、时间序列）、真假样本轮流的 batch，
以及打乱了 batch 的逐任务学习，都不算。

怎么改：
给训练用的 loader 加上 shuffle=True，或每轮重新抽一个排列。

改前：
    train = DataLoader(dataset, batch_size=32)
改后：
    train = DataLoader(dataset, batch_size=32, shuffle=True)

对照实验：
只加打乱，其他不变：先出现的那些类别，验证准确率会上升。

来源：
Bottou，Stochastic gradient descent tricks（2012）：打乱样本。batch 内同类对的比例与打乱后的期望比较，由公式算出。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("curve/*", "optim/lr-too-high", "data/class-imbalance", "data/labels-misaligned", "mode/bn-stats-diverge", "init/dead-units",
            "numeric/gradient-explosion")
EXPERIMENT = "shuffle"

CAUSE = Text("Classes come one after the other: two samples of one step have the same label in {pure} % of all pairs, in a shuffled order "
             "in {expected} %; the label changes every {run} sample{run:|s}.",
             "类别一个接一个地来：同一步里任取两个样本，有 {pure} % 标签相同，打乱之后应是 {expected} %；平均每 {run} 个样本才换一次标签。")
RISING = Text("The targets come sorted: from one sample to the next they move the same way in {share} % of all cases.",
              "目标值是排好序送进来的：从一个样本到下一个，{share} % 都朝同一个方向变。")
FIX = Text("Shuffle the training samples each epoch (shuffle=True, or a new permutation).",
           "每轮都打乱训练样本（shuffle=True，或重新抽一个排列）。")
PAIRS = Text("pairs with equal labels within a step", "同一步内标签相同的样本对")
RUN = Text("mean length of a run of one label", "同一标签连续出现的平均长度")


def check(feeding: Feeding, loaders: list[LoaderMade] | None) -> Iterator[Finding]:
    shuffling = {loader.id for loader in loaders or [] if loader.shuffle}
    for feed in feeding:
        labels = feed.labels
        if labels is None or labels.loader in shuffling or labels.sampler == "with replacement":
            continue
        if _sorted_classes(labels):
            yield _finding(labels, CAUSE.fill(pure=number(100 * labels.pure), expected=number(100 * labels.pure_expected),
                                              run=number(labels.run)))
        elif _sorted_values(labels, feed.train.columns.total if feed.train.columns else 0):
            yield _finding(labels, RISING.fill(share=number(100 * labels.rising)))


def _sorted_classes(labels: Labels) -> bool:
    """Far purer steps than by chance, and runs about as long as the classes are large."""
    sizes = sorted(count for label, count in labels.distinct.items() if label >= 0)
    if not labels.classes or len(sizes) < 2 or labels.steps < 8 or sizes[-2] < 5:
        return False
    chance = labels.pure_expected
    middle = sizes[len(sizes) // 2]
    return chance < 0.9 and labels.pure > chance + 0.2 * (1 - chance) and labels.run > 0.5 * middle and labels.run < sum(labels.counts.values()) / 4


def _sorted_values(labels: Labels, columns: int) -> bool:
    return not labels.classes and labels.rising > 0.97 and labels.value_distinct >= 50 and columns >= 3 and labels.steps >= 8


def _finding(labels: Labels, cause: Text) -> Finding:
    places = sites(labels.loader_site, labels.first_forward, labels.site)
    expected = f"{number(100 * labels.pure_expected)} %"
    evidence = (Evidence(PAIRS, float(number(100 * labels.pure)), expected, unit="%"), Evidence(RUN, float(number(labels.run)), "1 - 2"))
    return Finding(cause=cause, fix=FIX, where=places[0] if places else None, also=places[1:], evidence=evidence if labels.classes else ())
