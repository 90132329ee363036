"""Softmax is applied twice.

What it is:
The model ends with a softmax, and its probabilities go into a loss that applies log-softmax again (``cross_entropy``, or a
hand-written loss with ``log_softmax``).

Why it is silent:
Probabilities have the shape and dtype of logits, and the loss still falls. Squeezed into [0, 1], the second softmax can never
become sure: with C classes the loss cannot fall below ln(1 + (C - 1)/e).

What you see:
A loss that stops at a high level (1.46 for ten classes), an accuracy that looks passable, and slow learning.

Look-alikes:
log_softmax followed by nll_loss is right. Soft targets and label smoothing belong in the target, not in the input.
log_softmax followed by cross_entropy is harmless, since log_softmax of log-probabilities changes nothing.

Fix:
Let the model return logits and take the softmax only where probabilities are read.

Before:
    return torch.softmax(self.head(h), dim=1)
After:
    return self.head(h)

Experiment:
Feed the loss log(p) instead of p: if the curve leaves the plateau, the second softmax was the cause.

Source:
PyTorch documentation of CrossEntropyLoss ("input is expected to contain the unnormalized logits"); floor by arithmetic.
"""
from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.program import LossCall
from traindx.core.text import Text, number

ZH = """softmax 做了两次

是什么：
模型末尾已经有一次 softmax，输出的概率又送进了内部还会做 log-softmax 的损失（``cross_entropy``，或手写的 ``log_softmax`` 损失）。

为什么不报错：
概率和 logits 的形状、类型都一样，损失也照样往下走。但输入压在 [0, 1] 之间，第二次 softmax 永远不可能「很有把握」：
C 个类别时，损失最低只能到 ln(1 + (C - 1)/e)。

你会看到：
损失停在一个偏高的位置（10 类时是 1.46），准确率看着还行，学得很慢。

容易混淆的情况：
log_softmax 配 nll_loss 是对的。软标签和标签平滑属于目标，不属于输入。log_softmax 之后再用 cross_entropy 没有害处，因为对数概率再做一次 log_softmax 不变。

怎么改：
让模型直接返回 logits，只在需要读概率的地方再做 softmax。

对照实验：
把送进损失的 p 换成 log(p)：曲线若离开平台，病因就是多出来的那次 softmax。

来源：
PyTorch CrossEntropyLoss 文档（输入应是未归一化的 logits）；下限由公式算出。
"""
LEVEL = "error"
STEP = 2
EXPLAINS = ("curve/*", "loss/initial-loss-off", "optim/lr-too-low")
EXPERIMENT = "logits-instead"

CAUSE = Text(
    "{function} applies softmax itself, but its input already went through softmax{where}: the loss cannot fall below {floor}.",
    "{function} 内部自带 softmax，但送进去的输入已经做过一次 softmax{where}：损失最低只能到 {floor}。")
FIX = Text("Pass the logits to {function}: remove the softmax in front of it.", "把 logits 直接交给 {function}：去掉它前面的 softmax。")
ROWS = Text("sum of each row of the loss input", "损失输入每一行的和")
RANGE = Text("range of the loss input", "损失输入的取值范围")
LOGITS = Text("unbounded logits", "没有上下界的 logits")


def check(losses: list[LossCall]) -> Iterator[Finding]:
    for call in losses:
        if call.function == "cross_entropy" and call.origin == "softmax" and _rows_sum_to_one(call):
            yield _finding(call)
            return


def _rows_sum_to_one(call: LossCall) -> bool:
    return (call.row_sum_min is not None and call.row_sum_max is not None and call.input_min >= 0
            and abs(call.row_sum_min - 1) < 1e-2 and abs(call.row_sum_max - 1) < 1e-2)


def _finding(call: LossCall) -> Finding:
    classes = call.input_shape[call.class_dim or 0]
    place = Text(f" ({call.origin_site.short})", f"（{call.origin_site.short}）") if call.origin_site else Text("", "")
    floor = number(math.log(1 + (classes - 1) / math.e))
    return Finding(
        cause=CAUSE.fill(function=call.function, where=place, floor=floor),
        fix=FIX.fill(function=call.function),
        where=call.origin_site or call.site,
        also=tuple(site for site in (call.site, call.made_at) if site),
        evidence=(Evidence(ROWS, call.row_sum_max, LOGITS, step=call.step),
                  Evidence(RANGE, f"{number(call.input_min)} .. {number(call.input_max)}", LOGITS, step=call.step)),
        first_step=call.step)
