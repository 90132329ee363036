"""The loss is summed over the batch.

What it is:
``reduction="sum"`` adds up the samples' losses instead of averaging them.

Why it is silent:
A sum is a fine objective. But its gradient grows with the batch, so the learning rate is tied to the batch size.

What you see:
Losses in the hundreds; a learning rate that must change whenever the batch size does; the last, smaller batch steps less far.

Look-alikes:
Variational autoencoders sum both of their terms on purpose.

Fix:
Average, or divide by the number of samples.

Before:
    nn.MSELoss(reduction="sum")
After:
    nn.MSELoss()

Experiment:
Divide the loss by the batch size and multiply the learning rate by it: under plain SGD the curve is the same.

Source:
Arithmetic: the gradient of a sum over B samples is B times that of their mean.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.program import BackwardCall, LossCall
from traindx.core.text import Text
from traindx.signals.where import pointing

ZH = """损失对 batch 求和

是什么：
``reduction="sum"`` 把各个样本的损失加起来，而不是求平均。

为什么不报错：
求和也是合法的目标。但梯度随 batch 变大，学习率就和 batch 大小绑在了一起。

你会看到：
损失成百上千；batch 一变，学习率也得跟着变；最后那个较小的 batch 步子更小。

容易混淆的情况：
变分自编码器的两项都求和，是有意的。

怎么改：
求平均，或者除以样本数。

改前：
    nn.MSELoss(reduction="sum")
改后：
    nn.MSELoss()

对照实验：
把损失除以 batch 大小、学习率乘以 batch 大小：用普通 SGD 时曲线不变。

来源：
由算术得出：B 个样本之和的梯度，是平均值梯度的 B 倍。
"""
LEVEL = "note"
STEP = 4

CAUSE = Text("{function} sums over the {count} sample{count:|s} of a batch, and the sum itself is the loss: the learning rate in effect depends "
             "on the batch size.",
             "{function} 对 batch 里的 {count} 个样本求和，又把这个和直接当作损失：有效的学习率会随 batch 大小而变。")
FIX = Text("Use reduction=\"mean\", or divide by the batch size.", "改用 reduction=\"mean\"，或者除以 batch 大小。")
VALUE = Text("value of the loss", "损失的值")


def check(losses: list[LossCall], backwards: list[BackwardCall] | None) -> Iterator[Finding]:
    roots = [call.value for call in backwards or [] if call.value is not None]
    for call in losses:
        if call.reduction == "sum" and call.weight_in_root == 1 and call.input_shape[:1] > (1,) and call.value in roots:
            where, also = pointing(call.made_at, call.site)
            yield Finding(cause=CAUSE.fill(function=call.function, count=call.input_shape[0]), fix=FIX, where=where, also=also,
                          evidence=(Evidence(VALUE, call.value, step=call.step),), first_step=call.step)
            return
