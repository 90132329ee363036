"""The learning rate is too high.

What it is:
A step changes the weights by a large part of their size. The first steps throw the model far away, and it never finds back below
the loss that it had before training.

Why it is silent:
The arithmetic stays finite: after the jump units are dead or saturated, gradients are zero, and the loss sits at chance.

What you see:
A loss that jumps in the first steps, then oscillates or stays at the level of guessing, or grows without bound.

Look-alikes:
A short spike of a warm-up, adversarial and reinforcement losses, raw data and raw targets that make the gradients large, a wrong sign.

Fix:
Lower the learning rate by a factor of ten until the loss falls from the first steps on; then search upward in factors of three.

Before:
    optimizer = SGD(model.parameters(), lr=1.5, momentum=0.9)
After:
    optimizer = SGD(model.parameters(), lr=0.05, momentum=0.9)

Experiment:
A tenth of the learning rate: the loss falls.

Source:
Gradient descent diverges above 2 / sharpness (quadratic model); update ratio as a rule of thumb (CS231n notes).
"""
from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.learning import UpdateSeen
from traindx.core.observed.program import LossCall
from traindx.core.text import Text, number
from traindx.signals.learning import Course, Learners, ordinary, typical
from traindx.signals.traces import TrainingTraces

ZH = """学习率太高

是什么：
一步就把权重改掉一大块。最初几步把模型甩得很远，从此损失再也回不到训练前的水平以下。

为什么不报错：
数值仍然有限：甩出去之后，单元死亡或饱和，梯度为零，损失停在瞎猜的水平。

你会看到：
损失在最初几步猛跳，然后震荡，或者停在瞎猜的水平，或者一直增大。

容易混淆的情况：
预热时的短暂尖峰；对抗和强化学习的损失；没归一化的数据或目标把梯度放大；符号写反。

怎么改：
学习率每次除以 10，直到损失从最初几步起就下降；再按 3 倍往上找。

改前：
    optimizer = SGD(model.parameters(), lr=1.5, momentum=0.9)
改后：
    optimizer = SGD(model.parameters(), lr=0.05, momentum=0.9)

对照实验：
学习率取十分之一：损失下降。

来源：
学习率超过 2 / 锐度时梯度下降发散（二次模型）；参数更新比例为经验值（CS231n 讲义）。
"""
LEVEL = "error"
STEP = 3
EXPLAINS = ("curve/*", "init/dead-units", "init/saturated", "numeric/gradient-explosion", "numeric/nonfinite", "init/activation-collapse",
            "init/gradient-vanishing", "optim/clip-always", "loss/constant", "mode/bn-stats-diverge")
EXPERIMENT = "lr-x0.1"

RATIO = 0.3  # update / weight in one step: three hundred times the band
STEADY = 0.1  # the same, as the median of the run
EARLY = 64  # steps in which the jump happens
JUMP = 1.5  # of the first loss
STUCK = 0.8  # of the first loss, at the end
LARGE = 30.0  # data that should have been normalised: another rule's matter

CAUSE = Text("A single step changes the weights by {ratio} of their size (lr {rate}): the loss goes from {start} up to {highest} and ends "
             "at {end}.",
             "单独一步，更新就有权重自身大小的 {ratio} 倍（学习率 {rate}）：损失从 {start} 涨到 {highest}，最后停在 {end}。")
FIX = Text("Lower the learning rate: try {better} first.", "调低学习率：先试 {better}。")
UPDATE = Text("largest update ratio in the first {count} step{count:|s}", "前 {count} 步里最大的参数更新比例")
LOSS = Text("loss (start -> highest -> end)", "损失（开头 -> 最高 -> 最后）")


def check(learners: Learners, updates: list[UpdateSeen], course: Course, losses: list[LossCall] | None,
          traces: TrainingTraces | None) -> Iterator[Finding]:
    early = [update for update in updates if update.step <= EARLY]
    ratio = max((update.ratio for update in early), default=0.0)
    if ratio < RATIO and typical([update.ratio for update in updates]) < STEADY:
        return
    if not _thrown(course) or not ordinary(learners, losses or [], course.values[0]) or _large_data(learners, losses or []) or _uphill(updates):
        return
    made = next(iter(learners.stepped()), None)
    rate = learners.rates[made.id].peak if made else None
    sites = [site for site in (made.site if made else None, *(traces.update_sites() if traces else []), updates[0].site) if site is not None]
    worst = max(updates, key=lambda update: update.ratio if update in early else 0.0)
    yield Finding(
        cause=CAUSE.fill(ratio=number(ratio), rate=number(rate) if rate else "?", start=number(course.values[0]),
                         highest=number(course.highest), end=number(course.end)),
        fix=FIX.fill(better=number(rate / 10) if rate else Text("a tenth of it", "现在的十分之一")),
        where=sites[0] if sites else None, also=tuple(dict.fromkeys(sites[1:])),
        evidence=(Evidence(UPDATE.fill(count=EARLY), number(ratio), Text("about 1e-3", "约 1e-3"), step=worst.step),
                  Evidence(LOSS, f"{number(course.values[0])} -> {number(course.highest)} -> {number(course.end)}", Text("falling", "下降"))),
        first_step=worst.step, confidence="likely",
        because=Text("judged from the size of the updates and the loss", "根据更新的大小和损失判断"))


def _thrown(course: Course) -> bool:
    """The loss jumped and never came back below where it began; or it left the finite numbers after jumping."""
    first = course.values[0]  # before any update
    broken = not all(math.isfinite(value) for value in course.values[-3:])
    return course.highest > JUMP * first and (course.end > STUCK * first or broken) and course.best > STUCK * first / 2


def _large_data(learners: Learners, losses: list[LossCall]) -> bool:
    targets = [max(abs(call.target_mean or 0.0), call.target_std or 0.0) for call in losses if call.grad]
    return learners.input_size > LARGE or max(targets, default=0.0) > LARGE


def _uphill(updates: list[UpdateSeen]) -> bool:
    """A wrong sign diverges at any rate."""
    return typical([update.cosine for update in updates[:8]]) > 0.1
