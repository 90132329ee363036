"""Some parameters' gradients are never cleared.

What it is:
Most gradients are cleared for every step, but those of one optimizer, one group or one extra tensor are not. There, each step
moves along the sum of all gradients so far.

Why it is silent:
``zero_grad()`` clears exactly the parameters that it knows: ``model.zero_grad()`` those of the model, ``optimizer.zero_grad()`` those
of that optimizer. Others simply keep adding up.

What you see:
One part of the model drifts or blows up while the rest learns; with two optimizers, one of the losses swings.

Look-alikes:
A discriminator that collects gradients while the generator is trained, and clears them before its own backward, is right. So
are parameters that got no gradient at all.

Fix:
Clear the gradients through the optimizers, every one of them, rather than through one of the modules.

Before:
    model.zero_grad()
    loss.backward()
    optimizer_model.step()
    optimizer_scale.step()
After:
    optimizer_model.zero_grad()
    optimizer_scale.zero_grad()
    loss.backward()
    optimizer_model.step()
    optimizer_scale.step()

Experiment:
Clear every gradient that a step has used: only the forgotten parameters change their course.

Source:
PyTorch documentation of Module.zero_grad and Optimizer.zero_grad; counted as for optim/missing-zero-grad.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.gradients import GradientUse
from traindx.core.text import Text
from traindx.signals.gradient_use import cleared_meanwhile, stale, wholly_stale

ZH = """有一部分参数的梯度没有清空

是什么：
大部分梯度每一步都清空了，但某个优化器、某个参数组或某个额外张量的梯度没有清。这部分参数每一步走的都是迄今所有梯度之和。

为什么不报错：
``zero_grad()`` 只清它认识的参数：``model.zero_grad()`` 清模型的，``optimizer.zero_grad()`` 清那个优化器的。其余的就一直累加下去。

你会看到：
模型的一部分越走越偏甚至爆炸，其余部分照常学习；有两个优化器时，其中一个损失来回震荡。

容易混淆的情况：
判别器在训练生成器时收到的梯度，只要在它自己反向传播之前清掉，就是对的。压根没有梯度的参数也没问题。

怎么改：
用优化器来清空梯度，每个优化器都要清，不要只清其中一个模块。

改前：
    model.zero_grad()
    loss.backward()
    optimizer_model.step()
    optimizer_scale.step()
改后：
    optimizer_model.zero_grad()
    optimizer_scale.zero_grad()
    loss.backward()
    optimizer_model.step()
    optimizer_scale.step()

对照实验：
每次更新用过的梯度都清空：只有漏掉的那些参数会改变走向。

来源：
PyTorch 的 Module.zero_grad 和 Optimizer.zero_grad 文档；计数方法同 optim/missing-zero-grad。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "numeric/gradient-explosion", "numeric/nonfinite", "optim/lr-too-high", "init/dead-units", "init/saturated")
EXPERIMENT = "clear-gradients"

CAUSE = Text(
    "{stale} of the {fresh} parameter{fresh:|s} that {step} moves {stale:keeps its gradient|keep their gradients} from step to step, "
    "while the others are cleared.",
    "{step} 更新 {fresh} 个参数，其中 {stale} 个的梯度没有清空，一步步累加下去；别的参数都清空了。")
FIX = Text("Clear these too: {call} before the backward.", "把它们也清空：在反向传播之前调用 {call}。")
EVERY = Text("zero_grad() of every optimizer", "每个优化器的 zero_grad()")
COUNT = Text("steps that used gradients of an earlier step", "用到上一步梯度的更新次数")


def check(uses: list[GradientUse]) -> Iterator[Finding]:
    for use in uses:
        if stale(use) and (not wholly_stale(use) or any(cleared_meanwhile(other, use) for other in uses)):
            yield _finding(use)


def _finding(use: GradientUse) -> Finding:
    step = use.step_site or use.backward_site
    return Finding(
        cause=CAUSE.fill(stale=use.stale, fresh=use.fresh, step=step.short if step else "step()"),
        fix=FIX.fill(call=EVERY),
        where=step,
        also=tuple(site for site in (use.backward_site, use.made_at) if site),
        evidence=(Evidence(COUNT, f"{use.stale_steps}/{use.stale_steps + use.clean_steps}", "0", step=use.stale_first),),
        first_step=use.stale_first)
