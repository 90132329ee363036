"""Every step is clipped hard.

What it is:
The gradient norm is far above the clipping limit in nearly every step, from the first to the last. The length of each step is then
lr x limit, whatever the gradient: the clip has become the learning rate.

Why it is silent:
Clipping is meant to act, though on rare spikes.

What you see:
Changing the loss's scale changes nothing; changing the limit acts like changing the learning rate. The loss may fall all the same.

Look-alikes:
The first thousands of steps of a language model are often clipped. Under Adam the limit hardly matters, since it divides by the
gradient's size.

Fix:
Raise the limit to about the usual norm, and set the learning rate for itself.

Before:
    clip_grad_norm_(model.parameters(), 0.1)
After:
    clip_grad_norm_(model.parameters(), 5.0)

Experiment:
Raise the limit tenfold and divide the learning rate by the same: a steadier curve with the same speed.

Source:
Norms as the clip measured them. At least 50 steps, 95 % of them above five times the limit: a rule of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.gradients import ClipUse
from traindx.core.recording import Recording
from traindx.core.text import Text, number

ZH = """几乎每一步都裁剪得很重

是什么：
从头到尾，几乎每一步的梯度范数都远远超过裁剪上限。于是不管梯度多大，每一步的长度都是 lr × 上限：裁剪变成了真正的学习率。

为什么不报错：
裁剪本来就该起作用，只是它应该对付少见的尖峰。

你会看到：
改变损失的大小毫无影响，改上限却像在改学习率。损失可能照样下降。

容易混淆的情况：
语言模型最初几千步经常触发裁剪。用 Adam 时上限影响很小，因为它会除以梯度自身的大小。

怎么改：
把上限提高到平常的范数附近，学习率另外单独设定。

改前：
    clip_grad_norm_(model.parameters(), 0.1)
改后：
    clip_grad_norm_(model.parameters(), 5.0)

对照实验：
上限放大十倍、学习率缩小十倍：速度相同，曲线更稳。

来源：
范数取裁剪时的实测值。至少 50 步，其中 95 % 超过上限的五倍：经验值。
"""
LEVEL = "note"
STEP = 4

CAUSE = Text("In {share} % of the steps the gradient norm is more than {times} times the limit {limit} (median {norm}): the clip sets the step.",
             "{share} % 的更新里，梯度范数超过上限 {limit} 的 {times} 倍（中位数 {norm}）：步子多大，由裁剪说了算。")
FIX = Text("Raise the limit to about {norm}, and lower the learning rate accordingly.", "把上限提高到 {norm} 左右，并相应调小学习率。")
ABOUT = Text("about {limit}", "约 {limit}")
NORM = Text("median gradient norm at the clip", "裁剪时梯度范数的中位数")
STEPS_ASKED, SHARE, TIMES = 50, 0.95, 5


def check(clips: list[ClipUse], recording: Recording) -> Iterator[Finding]:
    limits = dict(recording.series.get("clip_limit", []))
    pairs = [(norm, limits[step]) for step, norm in recording.series.get("clip_norm", []) if limits.get(step)]
    hard = sum(norm > TIMES * limit for norm, limit in pairs)
    timely = [clip for clip in clips if clip.in_time and not clip.scaled]
    if timely and len(pairs) >= STEPS_ASKED and hard >= SHARE * len(pairs):
        yield _finding(timely[0], median(norm for norm, _ in pairs), pairs[-1][1], 100 * hard // len(pairs))


def _finding(clip: ClipUse, norm: float, limit: float, share: int) -> Finding:
    return Finding(
        cause=CAUSE.fill(share=share, times=TIMES, limit=number(limit), norm=number(norm)),
        fix=FIX.fill(norm=number(norm)),
        where=clip.site,
        evidence=(Evidence(NORM, norm, ABOUT.fill(limit=number(limit))),),
        first_step=clip.first)
