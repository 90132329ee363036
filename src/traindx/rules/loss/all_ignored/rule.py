"""Every target is ignored.

What it is:
All targets of a batch equal the loss's ``ignore_index``: nothing is left to learn from.

Why it is silent:
The mean over nothing is NaN, a sum over nothing is 0; neither raises.

What you see:
A loss that is NaN or exactly 0 from the first step, or weights that turn NaN at one odd batch.

Look-alikes:
Ignoring a part of the targets (padding, unmasked tokens) is what ignore_index is for.

Fix:
Do not overwrite the labels with the ignored value; where a batch can be empty, skip it.

Before:
    labels = torch.full_like(tokens, -100)
After:
    labels = tokens.masked_fill(~masked, -100)

Experiment:
Count the targets that are not ignored: the number must be above 0 in every batch.

Source:
PyTorch documentation of CrossEntropyLoss, ``ignore_index``; counted on the loss calls seen.
"""
from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.program import LossCall
from traindx.core.text import Text, number
from traindx.signals.where import pointing

ZH = """目标全部忽略了

是什么：
一个 batch 的目标全都等于损失的 ``ignore_index``：没有可学的东西。

为什么不报错：
对空集求平均得 NaN，求和得 0，都不会报错。

你会看到：
损失从第一步起就是 NaN 或恰好为 0；或者权重在某个特殊的 batch 之后变成 NaN。

容易混淆的情况：
忽略一部分目标（填充、没有掩码的词元）正是 ignore_index 的用途。

怎么改：
不要把标签都覆盖成要忽略的值；batch 可能为空时，跳过它。

改前：
    labels = torch.full_like(tokens, -100)
改后：
    labels = tokens.masked_fill(~masked, -100)

对照实验：
数一数没有忽略的目标：每个 batch 都应大于 0。

来源：
PyTorch CrossEntropyLoss 文档中的 ``ignore_index``；在看到的损失调用上计数。
"""
LEVEL = "error"
STEP = 2
EXPLAINS = ("numeric/nonfinite", "loss/constant", "loss/not-connected", "curve/*", "loss/initial-loss-off", "init/*", "optim/*")

CAUSE = Text("All {count} targets equal ignore_index ({index}): the loss is {value} and teaches nothing.",
             "{count} 个目标全都等于 ignore_index（{index}）：损失是 {value}，什么也学不到。")
FIX = Text("Leave some labels in, or skip a batch that has none.", "保留一部分标签，或者跳过没有标签的 batch。")
IGNORED = Text("loss calls whose targets are all ignored", "目标全部忽略的损失调用")


def check(losses: list[LossCall]) -> Iterator[Finding]:
    training = [call for call in losses if call.grad and call.ignore_index is not None]
    empty = [call for call in training if is_empty(call)]
    harmful = [call for call in empty if call.value is not None and math.isnan(call.value) and call.weight_in_root is not None]
    if not harmful and len(empty) < 0.9 * len(training):
        return
    for call in harmful or empty:
        where, also = pointing(call.site, call.made_at)
        count = math.prod(call.target_shape)
        yield Finding(
            cause=CAUSE.fill(count=count, index=call.ignore_index, value=number(math.nan if call.value is None else call.value)), fix=FIX, where=where, also=also,
            evidence=(Evidence(IGNORED, f"{len(empty)} / {len(training)}", "0", step=call.step),), first_step=call.step)
        return


def is_empty(call: LossCall) -> bool:
    count = math.prod(call.target_shape)
    return call.function in ("cross_entropy", "nll_loss") and count > 0 and call.ignored == count
