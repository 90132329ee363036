"""The flag requires_grad was not set where it was meant.

What it is:
``requires_grad`` is assigned to a module instead of its parameters, or misspelt, so that nothing is unfrozen (or frozen); or a new
optimizer is handed the backbone for a second stage and nobody unfroze it.

Why it is silent:
Python lets you set any attribute on a module or tensor, and an optimizer passes over parameters without a gradient.

What you see:
Unfreezing changes nothing: same speed, same memory, same loss, and weights that are bit-equal.

Look-alikes:
Feature extraction, adapters (LoRA) and probes, where most of a net stays frozen on purpose; a GAN's flags that flip each step.

Fix:
Call the method: ``module.requires_grad_(True)``, or set the flag on each parameter.

Before:
    model.backbone.requires_grad = True
After:
    model.backbone.requires_grad_(True)

Experiment:
Set the flag on the parameters: they start to move.

Source:
PyTorch documentation of nn.Module.requires_grad_; module attributes are plain Python.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.escaped import FreezeUncalled
from traindx.core.observed.learning import FlagMissed, Leaf
from traindx.core.observed.program import OptimizerMade
from traindx.core.text import Text, same
from traindx.signals.learning import Learners, elements, sites_of
from traindx.signals.where import pointing

ZH = """requires_grad 没有设到该设的地方

是什么：
``requires_grad`` 赋给了模块而不是它的参数，或者拼错了，结果什么也没解冻（或没冻结）；或者第二阶段的新优化器拿到了骨干网络，却没有人解冻它。

为什么不报错：
Python 允许给模块和张量设置任意属性；没有梯度的参数，优化器直接跳过。

你会看到：
解冻之后什么都没变：速度、显存、损失都一样，权重逐位相同。

容易混淆的情况：
特征提取、适配器（LoRA）和探针，它们本来就冻结大部分网络；GAN 每步翻转的标志。

怎么改：
调用方法 ``module.requires_grad_(True)``，或者逐个设置参数的标志。

改前：
    model.backbone.requires_grad = True
改后：
    model.backbone.requires_grad_(True)

对照实验：
把标志设到参数上：它们开始动了。

来源：
PyTorch nn.Module.requires_grad_ 文档；模块的属性只是普通的 Python 属性。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("curve/*", "optim/lr-too-low", "init/gradient-vanishing", "mode/frozen-bn-drifts")

ENOUGH = 0.5  # of the model's elements

MISSED = Text("{place}.{attribute} = {wanted} sets a plain attribute: {elements} of {total} element{total:|s} kept requires_grad={kept}.",
              "{place}.{attribute} = {wanted} 只设了一个普通属性：{total} 个元素里有 {elements} 个仍是 requires_grad={kept}。")
FIX_CALL = Text("Call {place}.requires_grad_({wanted}), or set requires_grad on each parameter.",
                "改为调用 {place}.requires_grad_({wanted})，或者逐个参数设置 requires_grad。")
HANDED = Text("A new {optimizer} was given {names} ({count} element{count:|s}) that the one before did not hold, but they are still "
              "frozen: they never move.",
              "新建的 {optimizer} 拿到了上一个优化器没有的 {names}（{count} 个元素），可是它们还冻结着，从未动过。")
FIX_FREE = Text("Call requires_grad_(True) on these layers before building the optimizer.",
                "先对这些层调用 requires_grad_(True)，再建优化器。")
FLAGS = Text("elements whose requires_grad differs from what was set", "requires_grad 与所设的值不同的元素")
FROZEN = Text("elements handed to the optimizer that require no gradient", "交给优化器、却不需要梯度的元素")


UNCALLED = Text("{name} freezes parameters in its own train(), which was never called: {elements} of {total} element{total:|s} "
                "{elements:is|are} trainable.",
                "{name} 在自己的 train() 里冻结参数，可是程序从来没有调用过它：{total} 个元素里有 {elements} 个仍可训练。")
FIX_TRAIN = Text("Call model.train() before training, or freeze in the constructor.", "训练之前调用 model.train()，或者改在构造函数里冻结。")
TRAINABLE = Text("trainable elements", "可训练的元素")
MOST = Text("{optimizer} was given {count} of {total} element{total:|s} that {count:is|are} frozen from the start, in a net that was not "
            "loaded: they keep their random values.",
            "{optimizer} 拿到的 {total} 个元素里，有 {count} 个从一开始就冻结着，而这个网络没有加载过权重：它们一直是随机值。")
FIX_MOST = Text("Unfreeze them, or give the optimizer only what it shall train.", "把它们解冻，或者只把要训练的参数交给优化器。")
MEANT = Text("random features can be meant", "也可能有意使用随机特征")


def check(learners: Learners, missed: list[FlagMissed] | None, uncalled: list[FreezeUncalled] | None) -> Iterator[Finding]:
    for flag in missed or []:
        if flag.elements:
            yield _of_flag(flag)
    stages = learners.stepped()
    for before, after in itertools.pairwise(stages):
        frozen = _handed_frozen(learners, before, after)
        if frozen:
            yield _of_stage(learners, after, frozen)
            return
    for freeze in uncalled or []:
        if freeze.elements == freeze.total:
            where, also = pointing(freeze.site, freeze.forward_site)
            yield Finding(cause=UNCALLED.fill(name=freeze.class_name, elements=freeze.elements, total=freeze.total), fix=FIX_TRAIN, where=where,
                          also=also, evidence=(Evidence(TRAINABLE, freeze.elements, f"< {freeze.total}"),), confidence="likely",
                          because=Text("read from the class", "从这个类的代码里读到的"))
    if len(stages) == 1:
        yield from _of_most(learners, stages[0])


def _of_most(learners: Learners, made: OptimizerMade) -> Iterator[Finding]:
    """Most of what one optimizer was given is frozen, though nothing was loaded: a note, for random features may be meant."""
    held = [leaf for group in made.parameters for id in group if (leaf := learners.leaves.get(id)) is not None and leaf.is_parameter]
    frozen = [leaf for leaf in held if not leaf.ever_trainable and leaf.ran and not leaf.pretrained]
    if held and elements(frozen) >= ENOUGH * elements(held) and not any(leaf.pretrained for leaf in held):
        yield Finding(cause=MOST.fill(optimizer=made.class_name, count=elements(frozen), total=elements(held)), fix=FIX_MOST, where=made.site,
                      also=sites_of(learners, frozen), evidence=(Evidence(FROZEN, elements(frozen), same("0")),), confidence="suspected",
                      because=MEANT, level="note")


def _of_flag(flag: FlagMissed) -> Finding:
    place = flag.path or flag.class_name
    facts = {"place": place, "attribute": flag.attribute, "wanted": flag.wanted, "kept": not flag.wanted}
    return Finding(
        cause=MISSED.fill(elements=flag.elements, total=flag.total, **facts), fix=FIX_CALL.fill(place=place, wanted=flag.wanted), where=flag.site,
        evidence=(Evidence(FLAGS, f"{flag.elements} / {flag.total}", same("0")),), first_step=1)


def _handed_frozen(learners: Learners, before: OptimizerMade, after: OptimizerMade) -> list[Leaf]:
    """What the second stage's optimizer got in addition, frozen in both stages, and most of what it holds."""
    old = {id for group in before.parameters for id in group}
    new = {id for group in after.parameters for id in group}
    held = [leaf for id in new if (leaf := learners.leaves.get(id)) is not None]
    frozen = [leaf for leaf in held if not leaf.ever_trainable and leaf.id not in old]
    one_after_other = learners.rates[after.id].first_step > learners.rates[before.id].last_step and bool(old & new)
    return frozen if one_after_other and elements(frozen) >= ENOUGH * elements(held) else []


def _of_stage(learners: Learners, after: OptimizerMade, frozen: list[Leaf]) -> Finding:
    return Finding(
        cause=HANDED.fill(optimizer=after.class_name, names=learners.listed(frozen), count=elements(frozen)), fix=FIX_FREE, where=after.site,
        also=sites_of(learners, frozen), evidence=(Evidence(FROZEN, elements(frozen), same("0")),),
        first_step=learners.rates[after.id].first_step, confidence="likely", because=Text("no line unfroze them", "没有哪一行解冻过它们"))
