"""The ranks are trained on the same samples.

What it is:
Every rank draws the same batch in the same step. The average over ranks is then the gradient of one batch, computed several times.

Why it is silent:
Each rank sees a sound stream of batches; the loss falls as on one device.

What you see:
No gain from more ranks: as many steps an epoch as with one, the same curve, N times the cost.

Look-alikes:
Tensor and pipeline parallelism feed all ranks alike by design. Ranks that shuffle the whole data by seeds of their own differ in every step.

Fix:
Give the loader a DistributedSampler (and call its set_epoch), or let each rank take its own part of the indices.

Before:
    DataLoader(data, batch_size=32, shuffle=True)
After:
    DataLoader(data, batch_size=32, sampler=DistributedSampler(data))

Experiment:
Print a hash of the first batch on every rank.

Source:
PyTorch documentation of DistributedSampler.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text
from traindx.signals.ranks import RankBatches
from traindx.signals.where import pointing

ZH = """各进程训练的是同样的样本

是什么：
同一步里，每个进程取到同一个 batch。对各进程求平均，得到的只是这一个 batch 的梯度，白算了好几遍。

为什么不报错：
单看每个进程，数据都正常；损失也照样下降，和单卡一样。

你会看到：
加进程没有好处：每轮的步数和单进程一样，曲线一样，代价却是 N 倍。

容易混淆的情况：
张量并行和流水线并行，本来就给所有进程同样的数据。各进程用自己的种子打乱整份数据，每一步都不同。

怎么改：
给 DataLoader 配 DistributedSampler（并调用 set_epoch），或者让每个进程只取自己那份下标。

改前：
    DataLoader(data, batch_size=32, shuffle=True)
改后：
    DataLoader(data, batch_size=32, sampler=DistributedSampler(data))

对照实验：
在每个进程上打印第一个 batch 的哈希。

来源：
PyTorch DistributedSampler 文档。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("rank/seed-equal", "data/duplicates")

DISTINCT = 4  # rows: batches of fewer may be alike by chance

CAUSE = Text("Ranks {ranks} were given the same rows in each of the {steps} step{steps:|s} that were compared: they compute one gradient "
             "several times.",
             "比较过的 {steps} 步里，进程 {ranks} 每一步拿到的都是同样的样本：同一个梯度算了好几遍。")
FIX = Text("Give each rank its own part: DataLoader(..., sampler=DistributedSampler(dataset)).",
           "让每个进程各拿一份：DataLoader(..., sampler=DistributedSampler(dataset))。")
SAME = Text("steps whose batches are equal on these ranks", "这些进程上 batch 相同的步数")
ROWS = Text("different rows among them", "其中不同的样本数")


def check(batches: RankBatches) -> Iterator[Finding]:
    for group in batches.groups:
        if len(group.ranks) > 1 and group.distinct >= DISTINCT:
            where, also = pointing(group.batch.loader_site, group.batch.site)
            yield Finding(
                cause=CAUSE.fill(ranks=", ".join(map(str, group.ranks)), steps=group.steps), fix=FIX, where=where, also=also, ranks=group.ranks,
                evidence=(Evidence(SAME, group.same, "0"), Evidence(ROWS, group.distinct)))
