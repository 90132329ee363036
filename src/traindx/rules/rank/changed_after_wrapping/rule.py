"""The module was changed after it was wrapped.

What it is:
DistributedDataParallel takes its parameters once, when it is made. Parameters that are put in later, unfrozen later, or converted to another
type or device afterwards are not among them: each rank trains these by its own gradients.

Why it is silent:
They have gradients and they learn, on each rank for itself. Nothing compares the ranks.

What you see:
A new head, a thawed backbone, or the whole model drifts apart between the ranks; the saved model is that of one rank.

Look-alikes:
Replacing a layer that is not trained, or moving the module without a change of type or device, is harmless.

Fix:
Change, convert, freeze and thaw first, and wrap last; wrap anew after a later change.

Before:
    model = DistributedDataParallel(net)
    model.to(torch.float64)
After:
    net.to(torch.float64)
    model = DistributedDataParallel(net)

Experiment:
Compare a checksum of the gradients across the ranks after one backward.

Source:
PyTorch documentation of DistributedDataParallel (parameters must not change after it is made); pytorch/pytorch issue 104336; one of
the faults in TrainCheck's public list (OSDI 2025).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.ranks import WrapperUse
from traindx.core.text import Text
from traindx.signals.where import pointing

ZH = """包装之后又改动了模块

是什么：
DistributedDataParallel 只在创建时登记一次参数。之后才放进去的、之后才解冻的、之后转换了类型或设备的参数，都不在登记之列：每个进程各用各的梯度训练它们。

为什么不报错：
它们有梯度，也在学，只是各学各的。没有谁去比较各个进程。

你会看到：
新换的头、解冻的骨干，甚至整个模型，在进程之间越走越远；保存下来的只是其中一个进程的模型。

容易混淆的情况：
换掉不训练的层，或者搬动模块却没有改变类型和设备，都没有影响。

怎么改：
先改、先转换、先冻结或解冻，最后才包装；之后再改，就重新包装。

改前：
    model = DistributedDataParallel(net)
    model.to(torch.float64)
改后：
    net.to(torch.float64)
    model = DistributedDataParallel(net)

对照实验：
反向传播一次之后，比较各进程梯度的校验和。

来源：
PyTorch DistributedDataParallel 文档（创建之后不得改动参数）；pytorch/pytorch 104336 号 issue；TrainCheck 公开清单中的一条（OSDI 2025）。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("rank/params-diverged", "rank/unused-parameters")

NAMED = 4

WHAT = {"converted": Text("converted to another type or device", "转换了类型或设备"),
        "unfrozen": Text("unfrozen", "解冻"), "replaced": Text("replaced", "换上"), "added": Text("added", "加进来")}
CAUSE = Text("{names} were {what} after DistributedDataParallel had taken its parameters: their gradients are not averaged over "
             "the {world} process{world:|es}.",
             "DistributedDataParallel 登记参数之后，{names} 才{what}：它们的梯度没有在 {world} 个进程之间求平均。")
FIX = Text("Wrap the module last, after every change of its parameters.", "等参数都改好了，最后再包装。")
LOST = Text("trained parameters that the wrapper does not reach", "在训练、包装却管不到的参数个数")


def check(wrappers: list[WrapperUse]) -> Iterator[Finding]:
    for seen in wrappers:
        if seen.lost:
            names = ", ".join(seen.lost[:NAMED]) + (" ..." if len(seen.lost) > NAMED else "")
            where, also = pointing(seen.lost_site if seen.how in ("converted", "replaced") else None, seen.made_at)
            yield Finding(
                cause=CAUSE.fill(names=names, what=WHAT[seen.how], world=seen.world), fix=FIX, where=where, also=also,
                evidence=(Evidence(LOST, len(seen.lost), "0"),), level=None if seen.world > 1 else "warning")
