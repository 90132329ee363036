"""The ranks no longer hold the same weights.

What it is:
In data-parallel training every rank holds a copy of the weights, and all copies are to stay equal. Here they differ: they began with different
weights, their gradients were not averaged, or one rank did something to them that the others did not.

Why it is silent:
Each rank goes on with its own weights. The loss falls on each of them, and nothing compares them.

What you see:
The saved model, that of one rank, does worse than the loss promises; results change with the number of ranks.

Look-alikes:
Pipeline and tensor parallelism, where ranks hold different weights by design. Local SGD, which averages now and then. BatchNorm's running
statistics, which may differ. An ensemble, one model on each rank.

Fix:
Wrap the model in DistributedDataParallel before training and call the wrapper. Where you average by hand, hand out the weights of rank 0 first,
and do the same to the gradients on every rank.

Before:
    model = Net()
    average_gradients(model)
After:
    model = Net()
    for p in model.parameters():
        torch.distributed.broadcast(p.data, src=0)
    average_gradients(model)

Experiment:
Compare a checksum of the weights across the ranks after one step; ten lines of code do it.

Source:
PyTorch documentation of DistributedDataParallel (replicas begin alike and see the same gradients, so they stay alike).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text
from traindx.signals.ranks import Copies, Replica
from traindx.signals.where import pointing

ZH = """各进程的权重不一样了

是什么：
数据并行训练里，每个进程各存一份权重，各份应当始终相等。这里它们不相等：初始权重就不同，或者梯度没有求平均，或者某个进程对梯度多做了一步。

为什么不报错：
每个进程都用自己的权重继续训练，损失也都在降。没有谁去比较它们。

你会看到：
保存下来的模型只是其中一个进程的，效果比损失显示的差；换个进程数，结果就变。

容易混淆的情况：
流水线并行和张量并行，各进程的权重本来就不同。Local SGD，隔一阵才平均一次。BatchNorm 的滑动统计量，可以不同。集成模型，每个进程一个模型。

怎么改：
训练前用 DistributedDataParallel 包装模型，并调用这个包装。自己求平均的话，先把 rank 0 的权重发给大家，再让每个进程对梯度做同样的事。

改前：
    model = Net()
    average_gradients(model)
改后：
    model = Net()
    for p in model.parameters():
        torch.distributed.broadcast(p.data, src=0)
    average_gradients(model)

对照实验：
走一步之后，比较各进程权重的校验和，十行代码就够。

来源：
PyTorch DistributedDataParallel 文档（各副本初值相同、梯度相同，所以一直相同）。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/plateau",)

NAMED = 4
FEWEST = 4  # steps after which a training that never averages is believed to mean it so, or to have forgotten it

AT_START = Text("The ranks began with different weights ({names}), and averaging the gradients keeps the difference.",
                "各进程的初始权重就不同（{names}），给梯度求平均消除不了这个差别。")
LATER = Text("Before step {step} the ranks hold different weights ({names}), although their gradients are averaged.",
             "到第 {step} 步之前，各进程的权重已经不同（{names}），尽管它们的梯度求过平均。")
NEVER = Text("Each rank trains weights of its own on its share of the data: nothing averages gradients or weights between them.",
             "每个进程在自己那份数据上训练自己的权重：没有任何地方在进程之间给梯度或权重求平均。")
FIX_START = Text("Broadcast the weights of rank 0 before the first step, or wrap the model in DistributedDataParallel, which does so.",
                 "第一步之前，广播 rank 0 的权重；或者用 DistributedDataParallel 包装模型，它会替你广播。")
FIX_LATER = Text("Do the same to the gradients, the learning rate and the weights on every rank; look for code that only one rank runs.",
                 "对梯度、学习率和权重，每个进程都做同样的事；找一找有没有只在某个进程上运行的代码。")
FIX_NEVER = Text("Wrap the model in DistributedDataParallel and call the wrapper.", "用 DistributedDataParallel 包装模型，并调用这个包装。")
DISTANCE = Text("greatest difference between ranks over the root mean square of the weights", "各进程之间的最大差值与权重均方根之比")
FIRST = Text("first step before which they differ", "最早在哪一步之前就不同")
COMPARED = Text("steps compared", "比较过的步数")
BECAUSE = Text("a DistributedSampler splits the data, and the weights differ; an ensemble would look the same",
               "数据由 DistributedSampler 切分，权重却不同；集成模型看起来也是这样")


def check(replicas: Copies) -> Iterator[Finding]:
    for replica in replicas:
        if replica.apart is None or replica.kind not in ("ddp", "averaged", "alone"):
            continue
        if replica.kind == "alone" and not (replica.seen.sampler and min(count for _, count in replica.counts) >= FEWEST):
            continue
        yield _finding(replica, replica.apart)


def _finding(replica: Replica, apart: int) -> Finding:
    where, also = pointing(replica.seen.made_at, replica.seen.step_site)
    alone, at_start = replica.kind == "alone", apart == 1
    names = ", ".join(replica.names[:NAMED]) + (" ..." if len(replica.names) > NAMED else "")
    cause = NEVER if alone else AT_START.fill(names=names) if at_start else LATER.fill(step=apart, names=names)
    evidence = (Evidence(DISTANCE, replica.distance, "0", step=replica.steps[-1]), Evidence(FIRST, apart),
                Evidence(COMPARED, ", ".join(map(str, replica.steps))))
    return Finding(cause=cause, fix=FIX_NEVER if alone else FIX_START if at_start else FIX_LATER, where=where, also=also, evidence=evidence,
                   first_step=max(1, apart - 1), confidence="likely" if alone else "certain", because=BECAUSE if alone else Text("", ""),
                   ranks=replica.odd or replica.ranks)
