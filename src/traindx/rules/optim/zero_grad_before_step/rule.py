"""Gradients are cleared between backward and step.

What it is:
``zero_grad()`` comes after ``backward()`` and before ``step()``: the step finds None or zeros where the gradients were.

Why it is silent:
A step without gradients is allowed. Parameters whose ``.grad`` is None are passed over, zeros are applied faithfully.

What you see:
A loss that does not move, or moves only through weight decay and old momentum.

Look-alikes:
Clearing at the top of the loop or right after the step is right. Closures (LBFGS) and Lightning clear and go backward inside the
step. A second step after the window is over finds nothing, and loses nothing.

Fix:
Clear before the backward or after the step, never in between.

Before:
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
After:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

Experiment:
Keep the gradients of each backward until the next step: the loss starts to fall.

Source:
PyTorch documentation of Optimizer.zero_grad. A step is counted when backwards had left gradients since the step before and all
of them were gone. Three such steps, and a tenth of all, are asked for (a rule of thumb).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.gradients import GradientUse
from traindx.core.text import Text

ZH = """梯度在 step() 之前清掉了

是什么：
``zero_grad()`` 排在 ``backward()`` 之后、``step()`` 之前：更新时本该有梯度的地方只剩 None 或 0。

为什么不报错：
没有梯度也可以调用 step()。``.grad`` 是 None 的参数直接跳过，是 0 的就老老实实加一个 0。

你会看到：
损失不动，或者只因权重衰减和残留的动量略微变化。

容易混淆的情况：
在循环开头清空、或更新之后立刻清空，都是对的。闭包（LBFGS）和 Lightning 把清空和反向传播都放在 step 里面。一个窗口结束后多调一次 step，什么也没用到，但也没丢东西。

怎么改：
在反向传播之前或更新之后清空，不要夹在中间。

改前：
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
改后：
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

对照实验：
每次反向传播的梯度都留到下一次更新：损失开始下降。

来源：
PyTorch 的 Optimizer.zero_grad 文档。上一步之后反向传播留下过梯度，更新时却一份不剩，这一步就计数；至少三步、且占全部更新的十分之一才报告（经验值）。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "optim/lr-too-low", "optim/lr-zero", "optim/no-step", "loss/constant", "loss/not-connected", "optim/window-lost",
            "optim/momentum-buffer-lost", "optim/clip-after-step", "optim/decay-too-strong", "init/gradient-vanishing")
EXPERIMENT = "keep-gradients"

CAUSE = Text(
    "{count} of {steps} step{steps:|s} found no gradient: what backward() left was cleared before{place}.",
    "{steps} 次更新里，有 {count} 次没有梯度可用：backward() 留下的梯度，在更新之前就清掉了{place}。")
FIX = Text("Move zero_grad() in front of backward(), or behind step().", "把 zero_grad() 移到 backward() 之前，或 step() 之后。")
COUNT = Text("steps that found no gradient although backwards had left some", "反向传播留下过梯度，更新时却没有了的次数")
SLIPS, SHARE = 3, 0.1


def check(uses: list[GradientUse]) -> Iterator[Finding]:
    for use in uses:
        if use.starved_steps >= SLIPS and use.starved_steps >= SHARE * max(use.steps, use.starved_steps):
            yield _finding(use)


def _finding(use: GradientUse) -> Finding:
    place = use.wiped_at.short if use.wiped_at else ""
    steps = max(use.steps, use.starved_steps)
    sites = [site for site in (use.wiped_at, use.step_site, use.backward_site) if site]
    return Finding(
        cause=CAUSE.fill(count=use.starved_steps, steps=steps, place=Text(f" ({place})", f"（{place}）") if place else Text("", "")),
        fix=FIX,
        where=sites[0] if sites else None,
        also=tuple(sites[1:]),
        evidence=(Evidence(COUNT, f"{use.starved_steps}/{steps}", "0", step=use.starved_first),),
        first_step=use.starved_first)
