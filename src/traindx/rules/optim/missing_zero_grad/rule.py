"""Gradients are never cleared between steps.

What it is:
``backward()`` adds to ``.grad``. Nothing clears it between two steps, so that every step moves along the sum of the gradients of
all batches so far, not along the gradient of its own batch.

Why it is silent:
Adding up is what ``backward()`` is meant to do; gradient accumulation relies on it. Nothing in torch knows where a step begins.

What you see:
A good start, then a loss that swings ever more widely or stays at chance, as if the learning rate were far too large. Lowering it
helps for a while only, since the sum keeps growing.

Look-alikes:
Gradient accumulation clears after each step. A GAN's discriminator collects gradients in the generator's step, and clears them
before its own backward. Neither lets a gradient reach two steps.

Fix:
Clear the gradients once for every step.

Before:
    loss.backward()
    optimizer.step()
After:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

Experiment:
Clear the gradients before each backward that follows a step: the curve parts from the first one at the second step.

Source:
PyTorch documentation of Optimizer.zero_grad. A step is counted when a parameter's gradient held what an earlier step had used
and a backward added to it; three such steps are asked for (a rule of thumb: one may be a slip at the start).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.gradients import GradientUse
from traindx.core.text import Text, same
from traindx.signals.gradient_use import cleared_meanwhile, wholly_stale

ZH = """两次更新之间没有清空梯度

是什么：
``backward()`` 把梯度加到 ``.grad`` 上。两次更新之间没有任何代码清空它，于是每一步走的都是迄今所有 batch 的梯度之和，而不是当前 batch 的梯度。

为什么不报错：
累加正是 ``backward()`` 的本职，梯度累积靠的就是它。torch 不知道一步从哪里开始。

你会看到：
开头不错，随后损失越荡越宽，或停在随机水平，像是学习率大得离谱。把学习率调小只管用一阵，因为这个和还在变大。

容易混淆的情况：
梯度累积会在每次更新后清空。GAN 的判别器在生成器那一步也会收到梯度，但在自己反向传播之前就清掉了。这两种情况里，没有哪份梯度会用到两次更新里。

怎么改：
每更新一次就清空一次梯度。

改前：
    loss.backward()
    optimizer.step()
改后：
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

对照实验：
在每次更新之后的第一个反向传播前清空梯度：从第二步起，曲线就和原来分开。

来源：
PyTorch 的 Optimizer.zero_grad 文档。如果某个参数的梯度里还留着上一步用过的部分，反向传播又往上加，这一步就计数；至少三步才报告（经验值：开头偶尔一次可能只是笔误）。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "numeric/gradient-explosion", "numeric/nonfinite", "numeric/fp16-overflow", "optim/lr-too-high",
            "optim/lr-too-low", "optim/clip-always", "optim/clip-after-step", "init/dead-units", "init/saturated",
            "optim/momentum-buffer-lost", "loss/constant")
EXPERIMENT = "clear-gradients"

CAUSE = Text(
    "{backward} adds to gradients that {step} has used already: {count} of {steps} step{steps:|s} moved along the sum of older gradients.",
    "{backward} 把新梯度加到 {step} 已经用过的梯度上：{steps} 步里有 {count} 步走的是旧梯度之和。")
FIX = Text("Clear the gradients once for every step, before backward(): {call}.", "每一步在 backward() 之前清空一次梯度：{call}。")
BY_HAND = Text("the hand-written update", "手写的参数更新")
COUNT = Text("steps whose gradient contained an earlier step's", "梯度里还含着前一步梯度的更新次数")
PARAMETERS = Text("parameters with such a gradient, of those with any", "有梯度的参数里，这样的有几个")

def check(uses: list[GradientUse]) -> Iterator[Finding]:
    for use in uses:
        if wholly_stale(use) and not any(cleared_meanwhile(other, use) for other in uses):
            yield _finding(use)


def _finding(use: GradientUse) -> Finding:
    step = same(use.step_site.short) if use.step_site else BY_HAND
    call = "optimizer.zero_grad()" if use.class_name else "p.grad = None"
    backward = use.backward_site.short if use.backward_site else "backward()"
    return Finding(
        cause=CAUSE.fill(backward=backward, step=step, count=use.stale_steps, steps=use.stale_steps + use.clean_steps),
        fix=FIX.fill(call=call),
        where=use.step_site or use.backward_site,
        also=tuple(site for site in (use.backward_site, use.made_at) if site),
        evidence=(Evidence(COUNT, f"{use.stale_steps}/{use.stale_steps + use.clean_steps}", "0", step=use.stale_first),
                  Evidence(PARAMETERS, f"{use.stale}/{use.fresh}", "0")),
        first_step=use.stale_first)
