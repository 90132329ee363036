"""The model runs outside autocast.

What it is:
The program enters autocast, but only around the loss; the model's forward stands before it, or in another function or thread. All
matrix products run in float32.

Why it is silent:
autocast changes the precision of what happens inside it and says nothing about what does not.

What you see:
Mixed precision that saves neither time nor memory.

Look-alikes:
Parts that are kept in float32 on purpose lie outside while the rest lies inside. A forward that enters autocast by itself counts as inside.

Fix:
Put the forward inside the region, and the backward outside.

Before:
    out = model(x)
    with torch.autocast("cuda"):
        loss = criterion(out, y)
After:
    with torch.autocast("cuda"):
        out = model(x)
        loss = criterion(out, y)

Experiment:
Print the dtype of the model's output: it should be the half type.

Source:
PyTorch documentation of torch.amp (autocast should wrap the forward pass, including the loss).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.escaped import AutocastReach
from traindx.core.text import Text
from traindx.signals.where import pointing

ZH = """模型跑在 autocast 之外

是什么：
程序用了 autocast，但只包住了损失；模型的前向写在它前面，或者在别的函数、别的线程里。所有矩阵乘法仍是 float32。

为什么不报错：
autocast 只改变它里面的精度，外面的事它不过问。

你会看到：
开了混合精度，时间和显存却都没省下来。

容易混淆的情况：
有意保持 float32 的部分可以在外面，只要其余部分在里面。前向自己进入 autocast，也算在里面。

怎么改：
把前向放进 autocast，反向传播放在外面。

改前：
    out = model(x)
    with torch.autocast("cuda"):
        loss = criterion(out, y)
改后：
    with torch.autocast("cuda"):
        out = model(x)
        loss = criterion(out, y)

对照实验：
打印模型输出的 dtype：应该是半精度类型。

来源：
PyTorch torch.amp 文档（autocast 应包住前向，包括损失）。
"""
LEVEL = "warning"
STEP = 1

CALLS = 8

CAUSE = Text("autocast({dtype}) was entered {entered} time{entered:|s}, but none of {outside} training forward{outside:|s} ran inside "
             "it: only the loss does.",
             "程序进入 autocast（{dtype}）{entered} 次，可是 {outside} 次训练前向没有一次在它里面：里面只算了损失。")
FIX = Text("Move the model's forward into the autocast region.", "把模型的前向移进 autocast 的范围。")
INSIDE = Text("training forwards inside autocast", "在 autocast 里的训练前向次数")


def check(reach: AutocastReach) -> Iterator[Finding]:
    if reach.forwards_inside == 0 and reach.forwards_outside >= CALLS and reach.losses_inside >= CALLS:
        where, also = pointing(reach.site, reach.forward_site, reach.loss_site)
        yield Finding(
            cause=CAUSE.fill(dtype=reach.dtype, entered=reach.entered, outside=reach.forwards_outside), fix=FIX, where=where, also=also,
            evidence=(Evidence(INSIDE, 0, f"{reach.forwards_outside}"),))
