"""The distributed sampler repeats one order in every epoch.

What it is:
A DistributedSampler shuffles by its seed and its epoch number. Where ``set_epoch`` is never called, the number stays 0 and every epoch has
the order, and the split between the processes, of the first.

Why it is silent:
Each epoch holds every sample once, and the order looks shuffled.

What you see:
Batches that are made of the same samples again and again; a slightly worse result that nobody traces back.

Look-alikes:
Frameworks call ``set_epoch`` themselves. For evaluation the order does not matter.

Fix:
Tell the sampler the epoch before iterating.

Before:
    for epoch in range(epochs):
        for x, y in loader:
After:
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:

Experiment:
Print the first indices of two epochs.

Source:
PyTorch documentation of DistributedSampler (the warning on set_epoch).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.ranks import SamplerEpochs
from traindx.core.text import Text
from traindx.signals.where import pointing

ZH = """分布式采样器每一轮都用同一个顺序

是什么：
DistributedSampler 按种子和轮次编号来打乱。如果从不调用 ``set_epoch``，编号一直是 0，每一轮的顺序、各进程分到的样本，都和第一轮一样。

为什么不报错：
每一轮都恰好包含每个样本一次，顺序看上去也是乱的。

你会看到：
组成 batch 的总是同样那些样本；结果略差，却没人想到是这里的问题。

容易混淆的情况：
框架会自己调用 ``set_epoch``。评估时顺序无所谓。

怎么改：
遍历之前告诉采样器现在是第几轮。

改前：
    for epoch in range(epochs):
        for x, y in loader:
改后：
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for x, y in loader:

对照实验：
打印两轮开头的几个下标。

来源：
PyTorch DistributedSampler 文档（关于 set_epoch 的警告）。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("data/same-batch-forever",)

CAUSE = Text("This sampler began {iterations} epoch{iterations:|s} with epoch number {epoch}: each has the same order, and the same split "
             "over {replicas} process{replicas:|es}.",
             "这个采样器开始了 {iterations} 轮，轮次编号一直是 {epoch}：每一轮顺序相同，分给 {replicas} 个进程的样本也相同。")
FIX = Text("Call sampler.set_epoch(epoch) at the start of every epoch.", "每一轮开始时调用 sampler.set_epoch(epoch)。")
SAME = Text("epochs that began with the number of the one before", "编号和上一轮相同的轮数")


def check(samplers: list[SamplerEpochs]) -> Iterator[Finding]:
    for seen in samplers:
        if seen.iterations >= 2 and seen.same == seen.iterations - 1:
            where, also = pointing(seen.made_at, seen.loader_site, seen.iter_site)
            yield Finding(
                cause=CAUSE.fill(iterations=seen.iterations, epoch=seen.epoch, replicas=seen.replicas), fix=FIX, where=where, also=also,
                evidence=(Evidence(SAME, seen.same, "0"),), first_step=seen.step)
