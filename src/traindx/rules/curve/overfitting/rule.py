"""The model learns its training samples by heart.

What it is:
The validation loss falls, turns and rises clearly while the training loss goes on falling.

Why it is silent:
The training loss, the one that is optimised, looks better and better.

What you see:
Two curves that part; a best epoch that lies far back.

Look-alikes:
The validation loss of a classifier creeps up a little from over-confidence while its accuracy still grows: that is a note. Noise of a
small validation set goes up and down.

Fix:
Stop at the best epoch and keep its weights; then more data, augmentation, weight decay, dropout, or a smaller model.

Before:
    for epoch in range(500): ...
After:
    if val_loss < best: best, weights = val_loss, copy.deepcopy(model.state_dict())

Experiment:
Half the data: the curves part earlier.

Source:
Prechelt (1998), "Early Stopping - But When?"; the factors are rules of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding, Level
from traindx.core.text import Text, number
from traindx.signals.loss_curve import ValidationCurve

ZH = """模型在死记训练样本

是什么：
验证损失先降后升，而且升得明显；训练损失却一直在降。

为什么不报错：
优化的是训练损失，它看起来越来越好。

你会看到：
两条曲线分道扬镳；最好的那一轮早就过去了。

容易混淆的情况：
分类模型过于自信时，验证损失会慢慢升一点，准确率却还在涨：这只算提示。验证集太小时，曲线本来就上下跳。

怎么改：
停在最好的那一轮，并保存那时的权重；然后再考虑更多数据、数据增强、权重衰减、dropout，或更小的模型。

改前：
    for epoch in range(500): ...
改后：
    if val_loss < best: best, weights = val_loss, copy.deepcopy(model.state_dict())

对照实验：
只用一半数据：两条曲线分开得更早。

来源：
Prechelt (1998)，《Early Stopping - But When?》；倍数是经验值。
"""
LEVEL = "warning"
STEP = 5
EXPLAINS = ("curve/train-val-gap",)

PASSES = 6
RISE = 1.15  # last third of the validation passes over the best, for a note
LARGE = 1.5  # for a warning
SUBSTANTIAL = 0.6  # of the first validation loss: below, the model is still far better than at its start
FALL = 0.8  # training loss in the end over that at the best epoch

CAUSE = Text("The validation loss was {best} at step {step} and has risen to {end}, while the training loss fell from {before} to {after}.",
             "验证损失在第 {step} 步最低（{best}），后来升到 {end}；同一段时间训练损失从 {before} 降到 {after}。")
FIX = Text("Keep the weights of the best epoch and stop there; then regularise, augment or get more data.",
           "留下最好那一轮的权重，训练到那里就停；然后再做正则化、数据增强，或增加数据。")
RATIO = Text("validation loss at the end over its best", "最后的验证损失与最低值之比")


def check(curve: ValidationCurve) -> Iterator[Finding]:
    values, training = curve.values, curve.training
    if not curve.supervised or len(values) < PASSES:
        return
    at = min(range(len(values)), key=values.__getitem__)
    tail = values[-max(3, len(values) // 3):]
    if at >= len(values) - len(tail) or values[at] <= 0:
        return
    end = sorted(tail)[len(tail) // 2]
    fell = training[-1] < FALL * training[at]
    if min(tail) > RISE * values[at] and fell:
        large = end > LARGE * values[at] and end > SUBSTANTIAL * values[0] and min(tail) > 1.3 * values[at]
        yield _finding(curve, at, end, "warning" if large else "note")


def _finding(curve: ValidationCurve, at: int, end: float, level: Level) -> Finding:
    step, best = curve.points[at]
    sites = tuple(site for site in (curve.site, curve.training_site) if site)
    return Finding(
        cause=CAUSE.fill(best=number(best), step=step, end=number(end), before=number(curve.training[at]), after=number(curve.training[-1])),
        fix=FIX, where=sites[0] if sites else None, also=sites[1:], first_step=step, level=level,
        evidence=(Evidence(RATIO, round(end / best, 2), f"< {RISE}", origin="measured"),))
