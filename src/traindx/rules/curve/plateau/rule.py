"""The loss stays where a constant answer would be.

What it is:
After hundreds of steps the loss is still that of an answer that does not look at the input: the entropy of the classes (ln C when they
are equally common), or the variance of the targets.

Why it is silent:
A model that always gives the average is a legal model, and its loss is even a little below the first one.

What you see:
A flat line at ln C; accuracy at the share of the most common class.

Look-alikes:
A loss that has converged is flat, too, but far below chance. Random labels, and targets with hardly any signal, end there rightly.

Fix:
Overfit one batch first: if that fails there is a bug between input and loss; if it works, look at the learning rate and the labels.

Before:
    for x, y in loader: ...
After:
    x, y = next(iter(loader))
    for _ in range(300): ...

Experiment:
Overfit one batch.

Source:
Karpathy (2019), "A Recipe for Training Neural Networks"; ln C and var(y) by formula, from the targets seen.
"""
from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text, number
from traindx.signals.loss_curve import LossCurve

ZH = """损失停在瞎猜的水平

是什么：
几百步之后，损失仍然和一个根本不看输入的答案一样：等于类别的熵（各类一样多时就是 ln C），或目标的方差。

为什么不报错：
永远输出平均值的模型也是合法的模型，它的损失甚至比一开始还低一点。

你会看到：
ln C 处的一条水平线；准确率等于最多那一类的占比。

容易混淆的情况：
收敛之后的损失也是平的，但远低于瞎猜的水平。标签本来就是随机的、或目标里几乎没有信号时，停在这里是对的。

怎么改：
先在一个 batch 上过拟合：做不到，说明输入和损失之间有 bug；做得到，就去看学习率和标签。

改前：
    for x, y in loader: ...
改后：
    x, y = next(iter(loader))
    for _ in range(300): ...

对照实验：
在一个 batch 上过拟合。

来源：
Karpathy (2019)，《A Recipe for Training Neural Networks》；ln C 与 var(y) 由公式从看到的目标算出。
"""
LEVEL = "warning"
STEP = 1

STEPS = 150  # fewer are too few to know
CHANCE = 0.99  # of the chance level: what is above it has learnt nothing to speak of
NEAR = 1.5  # times the chance level: further up it is not stuck there but thrown about

CAUSE = Text("After {steps} step{steps:|s} the loss is {end}; an answer that does not look at the input at all has {chance}.",
             "训练了 {steps} 步，损失仍是 {end}；一个完全不看输入的答案，损失也有 {chance}。")
FIX = Text("Overfit one batch: if even that fails, look for the bug between input and loss; if it works, look at learning rate and labels.",
           "先在一个 batch 上过拟合：连这也做不到，就在输入和损失之间找 bug；做得到，就检查学习率和标签。")
BECAUSE = Text("labels without any signal end there as well", "标签里本来没有信号时，也会停在这里")
LEVELS = Text("loss over the last quarter", "最后四分之一训练里的损失")
EXPECTED = Text("below {chance} (chance)", "低于 {chance}（瞎猜）")


def check(curve: LossCurve) -> Iterator[Finding]:
    chance = curve.chance
    if not curve.supervised or chance is None or chance <= 0 or len(curve.points) < STEPS:
        return
    quarters = _quarters(curve.values)
    if min(quarters[1:]) >= CHANCE * chance and quarters[3] <= NEAR * chance:
        sites = tuple(site for site in (curve.where, curve.backward_site, curve.step_site) if site)
        yield Finding(
            cause=CAUSE.fill(steps=curve.points[-1][0], end=number(quarters[3]), chance=number(chance)), fix=FIX,
            where=sites[0] if sites else None, also=sites[1:], first_step=STEPS, confidence="suspected", because=BECAUSE,
            evidence=(Evidence(LEVELS, round(quarters[3], 4), EXPECTED.fill(chance=number(chance)), origin="formula"),))


def _quarters(values: list[float]) -> list[float]:
    """Means of the four quarters of the run, outliers cut off at ten times the median."""
    top = 10 * median(values)
    size = len(values) // 4
    parts = [values[i * size:(i + 1) * size] for i in range(4)]
    return [sum(min(value, top) for value in part) / len(part) for part in parts]
