"""Gradients are clipped while they still carry the loss scale.

What it is:
A GradScaler multiplies the loss, and so every gradient, by a scale such as 65536, and divides them again inside ``scaler.step``. The
clip comes before that division: it compares the scaled norm with a limit meant for the true one.

Why it is silent:
The clip sees large numbers and cuts them to the limit; the scaler then divides the rest by the scale. Both do as they were told.

What you see:
The loss hardly moves in half precision while full precision learns: the gradient that reaches the step has a norm of limit / scale.

Look-alikes:
``scaler.unscale_(optimizer)`` before the clip is right. So is a limit that was multiplied by the scale. Frameworks that clip unscale
first.

Fix:
Unscale, then clip.

Before:
    scaler.scale(loss).backward()
    clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
After:
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)

Experiment:
Take the clip out: the loss starts to fall.

Source:
PyTorch documentation, "Automatic Mixed Precision examples", gradient clipping. Norm and scale are measured at the clip.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.gradients import ClipUse
from traindx.core.text import Text, number

ZH = """梯度还带着损失缩放就裁剪了

是什么：
GradScaler 把损失（也就把每个梯度）乘上一个缩放系数，例如 65536，到 ``scaler.step`` 里面再除回来。裁剪排在除回来之前：拿放大后的范数去比为真实范数定的上限。

为什么不报错：
裁剪看到很大的数，就压到上限；scaler 再把剩下的除以缩放系数。两边都照章办事。

你会看到：
半精度下损失几乎不动，全精度却能学：真正用到更新里的梯度，范数只有「上限 / 缩放系数」。

容易混淆的情况：
裁剪之前先调用 ``scaler.unscale_(optimizer)`` 是对的，把上限也乘上缩放系数也是对的。各种框架自带的裁剪都会先除回来。

怎么改：
先除回来，再裁剪。

改前：
    scaler.scale(loss).backward()
    clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
改后：
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)

对照实验：
去掉裁剪：损失开始下降。

来源：
PyTorch 文档「Automatic Mixed Precision examples」的梯度裁剪一节。范数和缩放系数都在裁剪时实测。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "optim/lr-too-low", "optim/clip-always", "numeric/gradient-explosion", "loss/constant", "init/gradient-vanishing",
            "numeric/fp16-underflow")
EXPERIMENT = "unscale-before-clip"

CAUSE = Text(
    "{function} sees gradients that are still multiplied by {scale}: after unscaling, at most a norm of {rest} is left instead of {limit}.",
    "{function} 看到的梯度还乘着 {scale}：除回来之后，范数最多只剩 {rest}，而不是 {limit}。")
FIX = Text("Call scaler.unscale_(optimizer) before the clip.", "在裁剪之前调用 scaler.unscale_(optimizer)。")
COUNT = Text("clips of gradients that were still scaled", "梯度还带着缩放就裁剪的次数")
NORM = Text("largest norm that the clip saw", "裁剪看到的最大范数")
RATIO = Text("the same norm without the scale", "去掉缩放之后，同一个范数")
CALLS_ASKED, SCALED_LIMIT = 2, 0.01  # a limit above a hundredth of the scale was multiplied by it on purpose


def check(clips: list[ClipUse]) -> Iterator[Finding]:
    for clip in clips:
        if clip.scaled >= CALLS_ASKED and clip.scale and clip.limit is not None and clip.limit < SCALED_LIMIT * clip.scale:
            yield _finding(clip, clip.scale, clip.limit)


def _finding(clip: ClipUse, scale: float, limit: float) -> Finding:
    evidence = [Evidence(COUNT, f"{clip.scaled}/{clip.calls}", "0", step=clip.first)]
    if clip.scaled_norm is not None:
        evidence += [Evidence(NORM, clip.scaled_norm), Evidence(RATIO, clip.scaled_norm / scale)]
    return Finding(
        cause=CAUSE.fill(function=clip.function, scale=number(scale), rest=number(limit / scale), limit=number(limit)),
        fix=FIX,
        where=clip.site,
        also=tuple(site for site in (clip.backward_site, clip.step_site) if site),
        evidence=tuple(evidence),
        first_step=clip.first)
