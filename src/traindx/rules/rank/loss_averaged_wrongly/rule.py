"""Means over unequal counts are averaged as if they were equal.

What it is:
Each rank takes the mean loss of its own items, and the gradients are then averaged over ranks with equal weight. Where the ranks have different
numbers of items (rows, or tokens that count), an item on a small rank weighs more than one on a large rank.

Why it is silent:
The result is still a weighted mean of true gradients: the loss falls.

What you see:
Results that depend on how the data were split; rare long or short batches that pull too hard.

Look-alikes:
Counts that differ a little, as with sentences of different lengths, or only in the last batch of an epoch. Programs that sum the losses and
divide by the count over all ranks.

Fix:
Weigh each rank's loss by its count: sum, and divide by the mean count over ranks.

Before:
    loss = cross_entropy(out, target)
After:
    count = torch.tensor(float(len(target)))
    torch.distributed.all_reduce(count)
    loss = cross_entropy(out, target, reduction="sum") * world / count

Experiment:
Train once with equal and once with unequal parts of the same data.

Source:
PyTorch documentation of DistributedDataParallel (gradients are averaged over ranks, each with the same weight).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text
from traindx.signals.ranks import RankLosses

ZH = """各进程数量不等，却按相等求平均

是什么：
每个进程先对自己的那些项求平均损失，再让各进程的梯度等权平均。各进程的项数（行数，或计入损失的词元数）不等时，项数少的进程里，每一项的分量更重。

为什么不报错：
结果仍是真实梯度的加权平均：损失照样下降。

你会看到：
结果和数据怎么切分有关；少数过长或过短的 batch 拉扯得太厉害。

容易混淆的情况：
数量只差一点，比如句子长短不一，或者只有每轮最后一个 batch 不等。把损失求和、再除以全部进程总数的写法是对的。

怎么改：
按数量给各进程的损失加权：先求和，再除以各进程的平均数量。

改前：
    loss = cross_entropy(out, target)
改后：
    count = torch.tensor(float(len(target)))
    torch.distributed.all_reduce(count)
    loss = cross_entropy(out, target, reduction="sum") * world / count

对照实验：
同一份数据，平分训练一次，不平分再训练一次。

来源：
PyTorch DistributedDataParallel 文档（梯度在各进程间等权平均）。
"""
LEVEL = "warning"
STEP = 2

SPREAD = 0.25  # standard deviation over mean of the counts, in the middle step; rule of thumb: sentences of mixed lengths stay below

CAUSE = Text("{function} takes the mean over {items} item{items:|s} on ranks {ranks} (step {step}), and the ranks' gradients are averaged "
             "with equal weight: an item counts {factor} times as much on one rank as on another.",
             "第 {step} 步，{function} 在进程 {ranks} 上分别对 {items} 项求平均，而各进程的梯度又是等权平均：同样是一项，"
             "在不同进程上的分量相差 {factor} 倍。")
FIX = Text("Sum the loss and divide by the mean count over ranks (all_reduce the count), or give the ranks equal parts.",
           "损失先求和，再除以各进程的平均项数（用 all_reduce 求得）；或者让各进程分到一样多。")
WHAT = Text("standard deviation over mean of the counts, median over {steps} step{steps:|s}",
            "各进程项数的标准差与均值之比（{steps} 步的中位数）")
LIMIT = Text("below 0.25 (rule of thumb)", "小于 0.25（经验值）")
UNKNOWN = Text("the loss was on a device: whether it is weighed by the counts was not seen", "损失在设备上，看不到它有没有按项数加权")


def check(losses: RankLosses) -> Iterator[Finding]:
    for group in losses.groups:
        counts = [items for _, items in group.items]
        if group.spread < SPREAD or group.balanced or not min(counts):
            continue
        yield Finding(
            cause=CAUSE.fill(function=group.loss.function, items=" / ".join(map(str, counts)), step=group.step,
                             ranks=", ".join(str(rank) for rank, _ in group.items), factor=f"{max(counts) / min(counts):.2g}"),
            fix=FIX, where=group.loss.site, first_step=1, ranks=tuple(rank for rank, _ in group.items),
            confidence="certain" if group.known else "suspected", because=Text("", "") if group.known else UNKNOWN,
            evidence=(Evidence(WHAT.fill(steps=group.steps), group.spread, LIMIT),))
