"""Validation is far worse than training from the start.

What it is:
The validation loss is a multiple of the training loss in the first passes already, before anything could be learnt by heart.

Why it is silent:
Both losses are numbers of their own; nothing compares them.

What you see:
Two curves that never meet, even in the first epoch.

Look-alikes:
Overfitting opens its gap later. A validation set that is harder on purpose has one by design.

Fix:
Compare what enters the model in both cases: preprocessing, column order, class order, train / eval mode.

Before:
    valid = Dataset(files, transform=None)
After:
    valid = Dataset(files, transform=evaluation_transform)

Experiment:
Put training samples through the validation path: the gap must vanish.

Source:
Distribution shift; the factor is a rule of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text, number
from traindx.signals.loss_curve import ValidationCurve

ZH = """验证从一开始就比训练差很多

是什么：
还来不及死记任何东西，头几次验证的损失就已经是训练损失的好几倍。

为什么不报错：
两个损失各算各的，没有什么会去比较它们。

你会看到：
两条曲线从第一轮起就没碰到过一起。

容易混淆的情况：
过拟合的差距是后来才拉开的。故意选得更难的验证集，本来就有差距。

怎么改：
比较两边送进模型的东西：预处理、列的顺序、类别的顺序、训练/推理模式。

改前：
    valid = Dataset(files, transform=None)
改后：
    valid = Dataset(files, transform=evaluation_transform)

对照实验：
让训练样本走一遍验证的路径：差距应当消失。

来源：
分布偏移；倍数是经验值。
"""
LEVEL = "note"
STEP = 5
EXPERIMENT = None

GAP = 2.5
CAUSE = Text("In the first validation passes the loss was {val} while training was at {train}.",
             "头几次验证，损失是 {val}，而同期的训练损失是 {train}。")
FIX = Text("Compare the inputs of both: preprocessing, order of columns and classes, train / eval mode.",
           "比较两边的输入：预处理、列和类别的顺序、训练模式还是推理模式。")
RATIO = Text("validation over training loss, first passes", "头几次的验证损失与训练损失之比")


def check(curve: ValidationCurve) -> Iterator[Finding]:
    first = slice(0, max(2, len(curve.values) // 4))
    val, train = median(curve.values[first]), median(curve.training[first])
    later = median(v / max(t, 1e-12) for v, t in zip(curve.values, curve.training))
    if curve.supervised and train > 0 and val > GAP * train and later > GAP and val > 0.7 * curve.training[0]:
        yield Finding(cause=CAUSE.fill(val=number(val), train=number(train)), fix=FIX, where=curve.site,
                      also=tuple(site for site in (curve.training_site,) if site), confidence="suspected",
                      evidence=(Evidence(RATIO, round(val / train, 2), f"< {GAP}"),))
