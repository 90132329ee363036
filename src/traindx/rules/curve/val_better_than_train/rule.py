"""Validation is better than training.

What it is:
The validation loss lies clearly below the training loss in most passes.

Why it is silent:
It looks like good news.

What you see:
A validation curve under the training curve.

Look-alikes:
Dropout and augmentation make training harder, and the training loss of an epoch is an average over weights that were worse: small
differences are normal. A leak between the sets, or an easy validation set, looks the same.

Fix:
Check first that no sample is in both sets; then evaluate the training set in eval mode to compare like with like.

Before:
    print(train_loss, val_loss)
After:
    print(evaluate(model, train_loader), evaluate(model, val_loader))

Experiment:
The training set evaluated in eval mode, without augmentation.

Source:
A rule of thumb (a fifth lower in most passes).
"""
from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text, number
from traindx.signals.loss_curve import ValidationCurve

ZH = """验证比训练还好

是什么：
大多数时候，验证损失明显低于训练损失。

为什么不报错：
它看起来是好消息。

你会看到：
验证曲线在训练曲线下面。

容易混淆的情况：
dropout 和数据增强让训练更难，而且一轮的训练损失是对还没学好的权重取的平均：差一点是正常的。
两个集合之间有泄漏，或验证集太容易，看起来也一样。

怎么改：
先确认没有样本同时在两个集合里；再用推理模式评估训练集，让两边可比。

改前：
    print(train_loss, val_loss)
改后：
    print(evaluate(model, train_loader), evaluate(model, val_loader))

对照实验：
用推理模式评估训练集，不做数据增强。

来源：
经验值（大多数时候低五分之一）。
"""
LEVEL = "note"
STEP = 5
EXPERIMENT = None

BETTER = 0.8
CAUSE = Text("The validation loss is typically {share} of the training loss of the same time.", "验证损失通常只有同期训练损失的 {share}。")
FIX = Text("Check that the sets share no samples; compare both in eval mode.", "确认两个集合没有共同的样本；两边都用推理模式再比较。")
RATIO = Text("validation over training loss (median of the passes)", "验证损失与训练损失之比（取中位数）")


def check(curve: ValidationCurve) -> Iterator[Finding]:
    ratios = [val / train for val, train in zip(curve.values, curve.training) if train > 0]
    if curve.supervised and len(ratios) >= 4 and 0 < median(ratios) < BETTER:
        share = median(ratios)
        yield Finding(cause=CAUSE.fill(share=number(share, 2)), fix=FIX, where=curve.site, confidence="suspected",
                      also=tuple(site for site in (curve.training_site,) if site),
                      evidence=(Evidence(RATIO, round(share, 3), f">= {BETTER}"),))
