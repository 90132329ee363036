"""The forward goes around the DDP wrapper.

What it is:
The model is wrapped in DistributedDataParallel, but training calls ``ddp.module(x)``, or the model as it was before. The wrapper does not see
the forward and does not average the gradients.

Why it is silent:
Each process has gradients of its own and steps by them. Nothing compares the replicas.

What you see:
Replicas that drift apart; the saved model is that of one process, trained on its share of the data.

Look-alikes:
Evaluation and saving through ``.module`` are right. ``no_sync`` leaves out the averaging on purpose, through the wrapper.

Fix:
Call the wrapper in training.

Before:
    out = ddp.module(x)
After:
    out = ddp(x)

Experiment:
Compare a checksum of the weights across the processes after ten steps.

Source:
PyTorch documentation of DistributedDataParallel (hooks are set up by its forward); seen over gloo: gradients stay unequal.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.ranks import WrapperUse
from traindx.core.text import Text
from traindx.signals.where import pointing

ZH = """前向绕过了 DDP 包装

是什么：
模型包在 DistributedDataParallel 里，训练时调用的却是 ``ddp.module(x)``，或者包装之前的模型。包装看不到这次前向，也就不会对梯度求平均。

为什么不报错：
每个进程都有自己的梯度，也照着更新。没有谁去比较各个副本。

你会看到：
各个副本越走越远；保存下来的模型属于某一个进程，只用它那份数据训练过。

容易混淆的情况：
评估和保存时用 ``.module`` 是对的。``no_sync`` 是经过包装、有意不做平均。

怎么改：
训练时调用包装。

改前：
    out = ddp.module(x)
改后：
    out = ddp(x)

对照实验：
十步之后，比较各进程权重的校验和。

来源：
PyTorch DistributedDataParallel 文档（钩子由它的前向设置）；在 gloo 上实测：梯度不相等。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("rank/params-diverged", "rank/unused-parameters", "curve/plateau")

CALLS = 3

CAUSE = Text("{around} of {all} training forward{all:|s} called the wrapped module itself: their gradients are not averaged over the "
             "{world} process{world:|es}.",
             "{all} 次训练前向里有 {around} 次直接调用了里面的模块：梯度没有在 {world} 个进程之间求平均。")
FIX = Text("Call the DistributedDataParallel object itself.", "改为调用 DistributedDataParallel 对象本身。")
AROUND = Text("training forwards around the wrapper", "绕过包装的训练前向次数")


def check(wrappers: list[WrapperUse]) -> Iterator[Finding]:
    for seen in wrappers:
        if seen.around >= CALLS:
            where, also = pointing(seen.around_site, seen.made_at)
            yield Finding(
                cause=CAUSE.fill(around=seen.around, all=seen.around + seen.through, world=seen.world), fix=FIX, where=where, also=also,
                evidence=(Evidence(AROUND, seen.around, "0"),), level=None if seen.world > 1 else "warning")
