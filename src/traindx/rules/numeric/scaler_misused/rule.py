"""The GradScaler is passed by.

What it is:
A GradScaler works in three calls: ``scale(loss).backward()``, ``step(optimizer)``, ``update()``. Here one of them is left out: the
backward starts from the loss as it is (or one of two losses does), or ``optimizer.step()`` is called directly on scaled gradients, or
``update()`` is missing.

Why it is silent:
Each call alone is legal. ``scaler.step`` divides by the scale whether or not the loss was multiplied by it.

What you see:
With an unscaled backward, gradients 65536 times too small: nothing moves, or a second loss has no effect. With a direct step, gradients 65536 times too large: the
first step ruins the weights. Without ``update()`` the second ``scaler.step`` raises.

Look-alikes:
``scaler.unscale_(optimizer)`` followed by a direct step has true gradients. A disabled scaler does nothing. Adam hardly feels a
constant factor, but loses its small gradients to its epsilon.

Fix:
Use all three calls.

Before:
    scaler.scale(loss)
    loss.backward()
    scaler.step(optimizer)
After:
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

Experiment:
Run in fp32 without a scaler: the loss falls.

Source:
PyTorch documentation, "Automatic Mixed Precision examples". Whether the root carries the scale is read off the graph.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Ended, Site
from traindx.core.observed.gradients import ScalerUse
from traindx.core.text import Text, number

ZH = """GradScaler 没用全

是什么：
GradScaler 要三步配合：``scale(loss).backward()``、``step(optimizer)``、``update()``。这里少了一步：反向传播直接从原损失开始（或者两个损失中的一个这样），或在放大过的梯度上直接调用 ``optimizer.step()``，或漏了 ``update()``。

为什么不报错：
单看每个调用都合法。不管损失有没有放大过，``scaler.step`` 都会除以缩放系数。

你会看到：
反向传播没放大时，梯度小了 65536 倍：什么都不动，或者第二个损失不起作用。直接 step 时，梯度大了 65536 倍：第一步就毁掉权重。漏了 ``update()`` 时，第二次 ``scaler.step`` 会报错。

容易混淆的情况：
先 ``scaler.unscale_(optimizer)`` 再直接 step，梯度是对的。停用的 scaler 什么也不做。Adam 几乎感觉不到固定的倍数，但很小的梯度会输给它的 epsilon。

怎么改：
三个调用都写上。

改前：
    scaler.scale(loss)
    loss.backward()
    scaler.step(optimizer)
改后：
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

对照实验：
不用 scaler，以 fp32 运行：损失下降。

来源：
PyTorch 文档「Automatic Mixed Precision examples」。根部有没有乘缩放系数，从计算图中读出。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("numeric/nonfinite", "numeric/gradient-explosion", "numeric/fp16-underflow", "numeric/fp16-overflow", "curve/*",
            "optim/lr-too-high", "optim/lr-too-low", "loss/constant", "init/dead-units", "init/gradient-vanishing")
EXPERIMENT = "fp32"

UNSCALED = Text("backward() starts from the unscaled loss, but scaler.step() divides its gradients by {scale} ({count} of {steps} "
                "step{steps:|s}).",
                "backward() 从没有放大的损失开始，scaler.step() 却把梯度除以 {scale}（{steps} 步里有 {count} 步）。")
MIXED = Text("One backward() of the step starts from a loss that was not scaled: scaler.step() divides its gradients by {scale}, too, "
             "so that this loss has next to no weight ({count} of {steps} step{steps:|s}).",
             "同一步里有一个 backward() 从没有放大的损失开始：scaler.step() 把它的梯度也除以 {scale}，这一项损失就几乎不起作用（{steps} "
             "步里有 {count} 步）。")
DIRECT = Text("optimizer.step() is called directly on gradients that are still multiplied by {scale} ({count} step{count:|s}).",
              "有 {count} 步直接调用了 optimizer.step()，而梯度还乘着 {scale}。")
NO_UPDATE = Text("scaler.update() is never called: the second scaler.step() raises.", "从未调用 scaler.update()：第二次 scaler.step() 会报错。")
SCALE_IT = Text("Write scaler.scale(loss).backward().", "写成 scaler.scale(loss).backward()。")
STEP_IT = Text("Write scaler.step(optimizer) and scaler.update().", "写成 scaler.step(optimizer) 和 scaler.update()。")
UPDATE_IT = Text("Call scaler.update() once after the steps.", "每步更新之后调用一次 scaler.update()。")
COUNT = Text("steps of the kind", "这样的更新次数")
STEPS_ASKED = 2


def check(uses: list[ScalerUse], ended: Ended | None) -> Iterator[Finding]:
    for use in uses:
        scale = number(use.scale or 65536.0)
        if use.unscaled_steps >= STEPS_ASKED and use.unscaled_steps >= use.steps / 2:
            cause = UNSCALED.fill(scale=scale, count=use.unscaled_steps, steps=use.steps)
            yield _finding(cause, SCALE_IT, use.unscaled_steps, use.first, use.backward_site, use.step_site)
        elif use.mixed_steps >= STEPS_ASKED and use.mixed_steps >= use.steps / 2:
            cause = MIXED.fill(scale=scale, count=use.mixed_steps, steps=use.steps)
            yield _finding(cause, SCALE_IT, use.mixed_steps, use.first, use.mixed_site, use.step_site)
        elif use.direct_steps >= STEPS_ASKED:
            cause = DIRECT.fill(scale=scale, count=use.direct_steps)
            yield _finding(cause, STEP_IT, use.direct_steps, use.first, use.direct_site, use.scale_site)
        elif use.steps and not use.updates and ended is not None and "update()" in (ended.error or ""):
            yield _finding(NO_UPDATE, UPDATE_IT, use.steps, use.first, use.step_site, use.scale_site)


def _finding(cause: Text, fix: Text, count: int, step: int, where: Site | None, other: Site | None) -> Finding:
    return Finding(cause=cause, fix=fix, where=where, also=(other,) if other else (), evidence=(Evidence(COUNT, count, "0"),), first_step=step)
