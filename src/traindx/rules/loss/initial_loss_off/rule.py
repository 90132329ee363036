"""The first loss is far from that of guessing.

What it is:
A fresh classifier should give every class about the same probability: cross-entropy ln C. This one is very sure before it has seen
anything, because its last layer starts with large weights or gets large inputs.

Why it is silent:
The first steps shrink the logits and the loss falls steeply, which looks like learning.

What you see:
A curve that starts like a hockey stick, and hidden layers that are pushed around before they learn.

Look-alikes:
Fine-tuning and resumed runs, label smoothing, class weights, sums, and rare classes.

Fix:
Scale the last layer down (weights near zero, bias zero), or normalise what enters it.

Before:
    nn.init.normal_(head.weight)
After:
    nn.init.normal_(head.weight, std=0.02)

Experiment:
Multiply the head's first weights by 0.1: the loss starts at ln C and the first steps are not wasted.

Source:
Karpathy, A recipe for training neural networks (2019): verify loss at init. Logits of standard deviation s cost about s²/2 nats: formula.
"""
from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.checkpoints import WeightsLoaded
from traindx.core.observed.program import LossCall
from traindx.core.text import Text, number
from traindx.signals.feeding import sites

ZH = """第一步的损失远离瞎猜的水平

是什么：
刚初始化的分类器，应该给每个类别差不多的概率，交叉熵是 ln C。这里什么都没学就已经很有把握：最后一层的初始权重太大，或它的输入太大。

为什么不报错：
头几步把 logits 压小，损失陡降，看上去像在学习。

你会看到：
曲线开头像一根曲棍球棒，隐藏层还没学就先被推来推去。

容易混淆的情况：
微调、断点续训、标签平滑、类别权重、求和的损失、少见的类别，都不算。

怎么改：
把最后一层调小（权重接近 0，偏置为 0），或先把它的输入归一化。

改前：
    nn.init.normal_(head.weight)
改后：
    nn.init.normal_(head.weight, std=0.02)

对照实验：
把最后一层的初始权重乘 0.1：损失从 ln C 开始，头几步不再浪费。

来源：
Karpathy，A recipe for training neural networks（2019）：先核对初始损失。logits 的标准差为 s 时约多出 s²/2 nat，由公式算出。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("curve/spike",)
EXPERIMENT = "other-seeds"

FAR = 3.0  # nats above chance; logits of standard deviation 2.4
NEAR = 1.0

CAUSE = Text("The first {function} is {value}; {classes} class{classes:|es} and no knowledge give {chance}. The logits spread as if by "
             "{spread}.",
             "第一步的 {function} 是 {value}；什么都不知道时，{classes} 个类别应是 {chance}。从损失倒推，logits 的标准差有 {spread}。")
FIX = Text("Start the last layer small, and normalise what enters it.", "让最后一层从较小的权重开始，并归一化它的输入。")
VALUE = Text("first loss", "第一步的损失")


def check(losses: list[LossCall], loaded: list[WeightsLoaded] | None) -> Iterator[Finding]:
    for call in losses:
        if call.grad:
            if not loaded and _plain(call) and call.value is not None:
                yield from _judge(call, call.value)
            return


def _plain(call: LossCall) -> bool:
    """An ordinary classification loss on the very first step."""
    classes = call.input_shape[call.class_dim] if call.class_dim is not None and call.input_shape else 0
    return (call.step <= 1 and call.function in ("cross_entropy", "nll_loss") and call.reduction == "mean" and call.weight is None
            and not call.label_smoothing and classes > 1 and "int" in call.target_dtype and call.value is not None and math.isfinite(call.value)
            and ((call.function == "cross_entropy" and call.origin is None) or call.origin == "log_softmax"))


def _judge(call: LossCall, value: float) -> Iterator[Finding]:
    classes = call.input_shape[call.class_dim or 0]
    chance = math.log(classes)
    excess = value - chance
    if excess < NEAR or call.input_std * 1.5 < math.sqrt(2 * excess) / 2:
        return
    far = excess > max(FAR, 0.6 * chance)
    places = sites(call.site, call.made_at)
    yield Finding(
        cause=CAUSE.fill(function=call.function, value=number(value), classes=classes, chance=number(chance),
                         spread=number(math.sqrt(2 * excess))), fix=FIX, where=places[0] if places else None, also=places[1:],
        level="warning" if far else "note", evidence=(Evidence(VALUE, float(number(value)), f"ln {classes} = {number(chance)}", step=1),))
