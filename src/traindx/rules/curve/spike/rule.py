"""A single batch makes the loss jump.

What it is:
One step's loss is many times its neighbours', and a few steps later all is as before.

Why it is silent:
The average of an epoch hides it.

What you see:
A needle in the curve.

Look-alikes:
Small batches scatter: a spike stands out from that scatter. A jump that stays is no spike.

Fix:
Look at the samples of that batch: outliers, wrong labels, broken files. Clip the gradient norm if such batches are legal.

Before:
    loss.backward()
After:
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)

Experiment:
Leave that batch out.

Source:
A robust outlier test (distance from the median in units of the median absolute deviation); the limits are rules of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text, number
from traindx.signals.loss_curve import LossCurve

ZH = """某个 batch 让损失跳了一下

是什么：
某一步的损失是前后的好多倍，几步之后一切如常。

为什么不报错：
一轮的平均值把它盖住了。

你会看到：
曲线上的一根针。

容易混淆的情况：
batch 小的时候损失本来就散；尖峰要远远超出这种散布。跳上去不再下来的，不是尖峰。

怎么改：
看看那个 batch 里的样本：离群值、错的标签、损坏的文件。如果这样的 batch 是正常的，就裁剪梯度范数。

改前：
    loss.backward()
改后：
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)

对照实验：
去掉那个 batch。

来源：
稳健的离群检验（与中位数的距离，以绝对中位差为单位）；界限是经验值。
"""
LEVEL = "note"
STEP = 5
EXPERIMENT = None

AROUND = 25  # steps on either side
TIMES = 8.0  # the median around it
HIGH = 0.5  # of the start: what sticks out of a converged loss may still be small
SPREADS = 20.0  # median absolute deviations
AGAIN = 3  # neighbours on either side that must be ordinary

CAUSE = Text("The loss of step {step} was {value}, with {usual} before and after it: look at the samples of that batch.",
             "第 {step} 步的损失是 {value}，前后都在 {usual} 左右：去看看那个 batch 里的样本。")
FIX = Text("Look at that batch for outliers and wrong labels; clip the gradient norm if it is sound.",
           "检查那个 batch 有没有离群值和错误标签；样本没问题，就裁剪梯度范数。")
VALUE = Text("loss", "损失")
USUAL = Text("about {usual}", "约 {usual}")


def check(curve: LossCurve) -> Iterator[Finding]:
    points = curve.points
    if len(points) < 2 * AROUND or min(curve.values) < 0:
        return
    found = [i for i in range(AGAIN, len(points) - AGAIN)
             if points[i][1] > HIGH * curve.start and _sticks_out(curve.values, i)]
    for i in found[:3]:
        step, value = points[i]
        usual = number(median(curve.values[max(0, i - AROUND):i + AROUND]))
        yield Finding(cause=CAUSE.fill(step=step, value=number(value), usual=usual), fix=FIX, where=curve.where, first_step=step,
                      evidence=(Evidence(VALUE, value, USUAL.fill(usual=usual), step=step),))


def _sticks_out(values: list[float], i: int) -> bool:
    near = values[max(0, i - AROUND):i] + values[i + 1:i + 1 + AROUND]
    if values[i] < TIMES * max(values[i - AGAIN:i] + values[i + 1:i + 1 + AGAIN]) / 2:
        return False  # cheap: most points end here
    usual = median(near)
    spread = median(abs(value - usual) for value in near)
    return values[i] > TIMES * usual and values[i] - usual > SPREADS * spread and all(
        value < TIMES / 2 * usual for value in values[i - AGAIN:i] + values[i + 1:i + 1 + AGAIN])
