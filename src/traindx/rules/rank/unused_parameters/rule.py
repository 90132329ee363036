"""Parameters take no part in the loss under DDP.

What it is:
DistributedDataParallel waits for the gradient of every parameter before it averages. Some parameters never get one: a layer that is not used,
or whose output the loss leaves out.

Why it is silent:
The first step goes through. The next forward finds that the last reduction never finished.

What you see:
An error about a reduction that did not finish, or processes that wait for each other for ever.

Look-alikes:
With ``find_unused_parameters=True`` the wrapper looks for them in every step: right for nets whose branches change, and slower.

Fix:
Remove the unused layers or freeze them; where branches really change, set find_unused_parameters=True.

Before:
    DistributedDataParallel(model)
After:
    model.unused.requires_grad_(False)
    DistributedDataParallel(model)

Experiment:
List the parameters whose gradient is None after the first backward.

Source:
PyTorch documentation of DistributedDataParallel (find_unused_parameters).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.ranks import WrapperUse
from traindx.core.text import Text

ZH = """DDP 下有参数不参与损失

是什么：
DistributedDataParallel 要等每个参数的梯度都到齐才求平均。有些参数永远没有梯度：某一层没有用到，或者损失没有用它的输出。

为什么不报错：
第一步能走过去。下一次前向才发现上次的归约没有完成。

你会看到：
报错说归约没有完成，或者各个进程互相等待，谁也走不下去。

容易混淆的情况：
设了 ``find_unused_parameters=True``，包装每一步都会去找它们：适合分支会变的网络，但慢一些。

怎么改：
删掉没用到的层，或者冻结它们；分支确实会变时，设 find_unused_parameters=True。

改前：
    DistributedDataParallel(model)
改后：
    model.unused.requires_grad_(False)
    DistributedDataParallel(model)

对照实验：
第一次反向传播之后，列出梯度为 None 的参数。

来源：
PyTorch DistributedDataParallel 文档（find_unused_parameters）。
"""
LEVEL = "warning"
STEP = 1

CAUSE = Text("{names} had no gradient after the backward, and DistributedDataParallel waits for every parameter.",
             "反向传播之后 {names} 没有梯度，而 DistributedDataParallel 要等每一个参数。")
FIX = Text("Remove or freeze these, or wrap with find_unused_parameters=True where branches change.",
           "删掉或冻结它们；分支会变的话，包装时加上 find_unused_parameters=True。")
NONE = Text("parameters without a gradient after every backward", "每次反向传播之后都没有梯度的参数个数")


def check(wrappers: list[WrapperUse]) -> Iterator[Finding]:
    for seen in wrappers:
        if seen.through and seen.unused and not seen.finds_unused:
            yield Finding(cause=CAUSE.fill(names=", ".join(seen.unused[:4])), fix=FIX, where=seen.made_at,
                          evidence=(Evidence(NONE, len(seen.unused), "0"),))
