"""Accumulated losses are not divided.

What it is:
Several backwards of mean losses are gathered for one step, and none is divided by their number k. The gradient is k times that of
the mean over the whole window, and so is the learning rate in effect.

Why it is silent:
``backward()`` adds up. Whether a sum or a mean was meant, only the author knows.

What you see:
A learning rate that was fine for the large batch now makes the loss jump, blow up or stick at chance. Each change of k changes the
best learning rate.

Look-alikes:
Losses divided by k, or gradients divided before the step. Adam and its kin, which do not feel the scale of a gradient. Several
losses of one batch (real and fake, one for each task), which are meant as a sum. A clip that is reached in every step. A learning
rate chosen for the sum: where the loss falls well, this is a note.

Fix:
Divide each loss by the number of backwards in a step.

Before:
    loss = criterion(model(x), y)
    loss.backward()
After:
    loss = criterion(model(x), y) / accumulate
    loss.backward()

Experiment:
Divide the learning rate by k: the jumps end.

Source:
The factor in front of the batch mean is read off the graph at each backward's root and summed over a window. Three backwards and
more are judged: two of one line are more often two losses than two micro-batches (a rule of thumb).
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.gradients import ClipUse, Gathered, GradientUse
from traindx.core.observed.program import LossCall
from traindx.core.recording import Recording
from traindx.core.text import Text, number
from traindx.signals.where import pointing

ZH = """梯度累积时损失没有除以次数

是什么：
几次反向传播的平均损失攒成一步，却没有除以次数 k。得到的梯度是整个窗口平均梯度的 k 倍，等于学习率也放大了 k 倍。

为什么不报错：
``backward()`` 只管相加。想要的是和还是平均，只有作者知道。

你会看到：
对大 batch 正合适的学习率，现在让损失乱跳、爆炸，或卡在随机水平。每改一次 k，最佳学习率就跟着变。

容易混淆的情况：
损失已经除以 k，或更新前把梯度除过。Adam 一类的优化器感觉不到梯度的大小。同一个 batch 的几个损失（真样本和假样本、多个任务）本来就该相加。每一步都触发的裁剪也会抹平大小。学习率本来就按求和来选：损失降得好时只作提示。

怎么改：
每个损失除以一步里反向传播的次数。

改前：
    loss = criterion(model(x), y)
    loss.backward()
改后：
    loss = criterion(model(x), y) / accumulate
    loss.backward()

对照实验：
把学习率除以 k：损失不再乱跳。

来源：
每次反向传播时，从计算图的根部读出 batch 平均损失前面的系数，在一个窗口内相加。三次及以上才判断：同一行的两次反向传播，往往是两个损失而不是两个小 batch（经验值）。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("curve/*", "optim/lr-too-high", "numeric/gradient-explosion", "numeric/nonfinite", "init/dead-units", "init/saturated",
            "optim/clip-always", "loss/constant")
EXPERIMENT = "divide-lr"

CAUSE = Text(
    "{k} mean loss{k:|es} are added up for each step without division: the gradient is {factor} times the mean's, as if lr were {factor} "
    "times larger.",
    "每一步把 {k} 个平均损失直接相加，没有除以次数：梯度是平均值的 {factor} 倍，等于学习率也放大到 {factor} 倍。")
FIX = Text("Divide the loss by {k} before backward(), or divide the learning rate.",
           "在 backward() 之前把损失除以 {k}，或者把学习率除以 {k}。")
BACKWARDS = Text("backwards in a step", "每一步的反向传播次数")
FACTOR = Text("sum of the losses' weights in a step", "一步之内各损失系数之和")
WELL = Text("the loss falls well all the same: the learning rate may have been chosen for the sum",
            "损失照样降得很好：学习率也许就是按求和来定的")
# these divide by the gradient's own size
SCALE_FREE = ("Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop", "Rprop", "SparseAdam", "Adafactor", "LBFGS")
FEWEST, SHARE = 3, 0.5


def check(uses: list[GradientUse], clips: list[ClipUse] | None, losses: list[LossCall] | None,
          recording: Recording) -> Iterator[Finding]:
    if any(clip.measured and clip.bites >= 0.9 * clip.measured and clip.in_time for clip in clips or []):
        return  # the clip sets the length of every step
    for use in uses:
        worst = max(use.gathered, key=lambda each: each.count * each.backwards, default=None)
        if worst is not None and use.class_name not in SCALE_FREE and _undivided(worst, use):
            place = next((call.site for call in reversed(losses or []) if call.grad and call.site is not None), None)
            yield _finding(worst, use, place, falls_well([value for _, value in recording.series.get("loss", [])]))


def _undivided(each: Gathered, use: GradientUse) -> bool:
    steps = sum(other.count for other in use.gathered)
    return (each.backwards >= FEWEST and each.count >= max(2, SHARE * steps) and each.weight is not None
            and 0.8 * each.backwards <= each.weight <= 1.2 * each.backwards)


def falls_well(losses: list[float]) -> bool:
    """To under a third of its start, and no later return to it."""
    if len(losses) < 8 or not all(math.isfinite(value) for value in losses):
        return False
    tenth = max(2, len(losses) // 10)
    first, last = median(losses[:tenth]), median(losses[-tenth:])
    return first > 0 and last < first / 3 and max(losses[len(losses) // 2:]) < first


def _finding(each: Gathered, use: GradientUse, loss: Site | None, well: bool) -> Finding:
    # a framework calls backward and step from one line of the program: there the loss is what can be mended
    by_framework = each.backward_site is not None and each.backward_site == use.step_site
    where, also = pointing(loss if by_framework else each.backward_site, each.backward_site, use.step_site, use.made_at)
    factor = number(each.weight or each.backwards)
    return Finding(
        cause=CAUSE.fill(k=each.backwards, factor=factor),
        fix=FIX.fill(k=each.backwards),
        where=where, also=also,
        evidence=(Evidence(BACKWARDS, each.backwards), Evidence(FACTOR, each.weight, "1")),
        confidence="suspected" if well else "likely",
        because=WELL if well else Text("a sum may have been meant", "也可能有意求和"),
        level="note" if well else None)
