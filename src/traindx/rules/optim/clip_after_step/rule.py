"""Gradient clipping has no effect.

What it is:
The clip runs when nothing is there to be clipped: after ``step()`` has used the gradients, or before ``backward()`` has made them.
What is clipped never reaches a step.

Why it is silent:
A clip scales whatever lies in ``.grad`` and returns its norm. It cannot know that the step is over.

What you see:
Spikes, or NaN, as if there were no clip, although one stands in the code.

Look-alikes:
A clip inside a window of accumulation acts on gradients that a later step uses. A clip in a closure runs inside the step. Calls
with an infinite limit only measure the norm.

Fix:
Clip between ``backward()`` and ``step()``.

Before:
    loss.backward()
    optimizer.step()
    clip_grad_norm_(model.parameters(), 1.0)
After:
    loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

Experiment:
Clip before each step: the spikes end.

Source:
For each call it is known whether its parameters hold gradients that no step has used yet. Where the norm never passed the limit
the wrong place changed nothing: a note.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.gradients import ClipUse
from traindx.core.text import Text, number

ZH = """梯度裁剪不起作用

是什么：
裁剪时没有可裁的东西：``step()`` 已经用完了梯度，或 ``backward()`` 还没算出梯度。裁过的梯度从来没有用到更新里。

为什么不报错：
裁剪只是把 ``.grad`` 里的内容按比例缩小，再返回范数。它不知道这一步已经走完了。

你会看到：
代码里明明有裁剪，损失却像没有裁剪一样出现尖峰甚至 NaN。

容易混淆的情况：
在梯度累积的窗口中间裁剪，裁的是之后会用到的梯度。写在闭包里的裁剪在 step 内部执行。上限为无穷大的调用只是在量范数。

怎么改：
在 ``backward()`` 和 ``step()`` 之间裁剪。

改前：
    loss.backward()
    optimizer.step()
    clip_grad_norm_(model.parameters(), 1.0)
改后：
    loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

对照实验：
每次更新之前裁剪：尖峰消失。

来源：
每次调用时都知道这些参数里有没有还没用过的梯度。如果范数从未超过上限，放错位置也没有后果：只作提示。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("numeric/gradient-explosion", "numeric/nonfinite", "numeric/fp16-overflow", "curve/*", "optim/lr-too-high", "optim/clip-always",
            "init/dead-units", "init/saturated", "loss/unscaled-target", "loss/constant")
EXPERIMENT = "clip-before-step"

AFTER = Text("{function} runs after the step that used the gradients ({count} of {calls} call{calls:|s}): it changes nothing.",
             "{function} 在更新用完梯度之后才执行（{calls} 次调用里有 {count} 次）：什么也没裁到。")
BEFORE = Text("{function} runs before backward() has made the gradients ({count} of {calls} call{calls:|s}): it changes nothing.",
              "{function} 在 backward() 算出梯度之前就执行了（{calls} 次调用里有 {count} 次）：什么也没裁到。")
FIX = Text("Move the clip between backward() and step().", "把裁剪移到 backward() 和 step() 之间。")
USELESS = Text("clips that acted on no gradient of a coming step", "没有裁到任何后续更新所用梯度的裁剪次数")
NORM = Text("largest norm that went past it", "漏过去的最大范数")
CALLS_ASKED, SHARE = 3, 0.8


def check(clips: list[ClipUse]) -> Iterator[Finding]:
    for clip in clips:
        useless = clip.after_step + clip.before_backward
        if clip.calls >= CALLS_ASKED and useless >= SHARE * clip.calls:
            yield _finding(clip, useless)


def _finding(clip: ClipUse, useless: int) -> Finding:
    harmless = clip.measured > 0 and clip.after_step > 0 and clip.useless_bites == 0
    evidence = [Evidence(USELESS, f"{useless}/{clip.calls}", "0", step=clip.first)]
    if clip.useless_norm is not None and clip.after_step:
        evidence.append(Evidence(NORM, clip.useless_norm, f"<= {number(clip.limit or 0.0)}"))
    return Finding(
        cause=(AFTER if clip.after_step >= clip.before_backward else BEFORE).fill(function=clip.function, count=useless, calls=clip.calls),
        fix=FIX,
        where=clip.site,
        also=tuple(site for site in (clip.step_site, clip.backward_site) if site),
        evidence=tuple(evidence),
        first_step=clip.first,
        level="note" if harmless else None)
