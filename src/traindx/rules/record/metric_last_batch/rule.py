"""A validation metric is that of the last batch.

What it is:
Inside the validation loop the metric is assigned instead of added up. What is printed, returned or logged after the loop is the
value of whichever batch came last.

Why it is silent:
It is a true loss or accuracy, of a right model on right data, only of a few samples of it.

What you see:
A validation curve that is far noisier than the set's size allows, and a "best" epoch chosen by luck.

Look-alikes:
A progress bar shows every batch's value on purpose. A validation set of one batch has nothing to add up. A running average
that is printed at the end is an average.

Fix:
Add up over the batches, weighted by their sizes, and divide once.

Before:
    val_loss = criterion(model(x), y).item()
After:
    total += criterion(model(x), y).item() * len(x)
    val_loss = total / len(val_set)

Experiment:
Shuffle the validation set: a mean over it stays, the last batch's value changes.

Source:
Arithmetic on the values that were computed, batch by batch.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.readings import Evaluation
from traindx.core.text import Text, number
from traindx.signals.said import Match, matches

ZH = """验证指标只是最后一个 batch 的

是什么：
验证循环里，指标是直接赋值的，而没有累加。循环结束后打印、返回或记录的，只是碰巧排在最后那个 batch 的值。

为什么不报错：
这个值确实是损失或准确率，模型和数据也都对，只不过只来自其中几个样本。

你会看到：
验证曲线抖得厉害，超出这么大的验证集该有的程度；「最佳轮」全凭运气选出来。

容易混淆的情况：
进度条本来就逐个 batch 显示。验证集只有一个 batch 时没有什么可累加的。循环结束时打印滑动平均，那也是平均。

怎么改：
按各 batch 的大小加权累加，最后除一次。

改前：
    val_loss = criterion(model(x), y).item()
改后：
    total += criterion(model(x), y).item() * len(x)
    val_loss = total / len(val_set)

对照实验：
打乱验证集：整体平均不会变，最后一个 batch 的值会变。

来源：
对实测的逐 batch 数值做算术。
"""
LEVEL = "warning"
STEP = 5
EXPLAINS = ("curve/oscillating", "curve/val-better-than-train", "curve/train-val-gap", "curve/noise-sized-gain")

CAUSE = Text("The number said after the validation loop is the value of its last batch ({last} of {samples} sample{samples:|s}), not that "
             "of the whole set: {times} evaluation{times:|s} agree to every printed digit.",
             "验证循环之后给出的数字，是最后一个 batch 的值（{samples} 个样本里的 {last} 个），不是整个验证集的：{times} 次验证，"
             "印出来的每一位都对得上。")
FIX = Text("Add the metric up over the batches (times the batch's size) and divide by the number of samples after the loop.",
           "在循环里把指标（乘以 batch 大小）累加起来，循环结束后再除以样本数。")
SAID = Text("number that the program gave", "程序给出的数字")
WHOLE = Text("{value} over the whole set", "整个验证集上是 {value}")


def check(evaluations: list[Evaluation]) -> Iterator[Finding]:
    for found in matches(evaluations, "last"):
        yield _finding(found)


def _finding(found: Match) -> Finding:
    quantity, one = found.quantity, found.evaluated
    said = found.said
    return Finding(
        cause=CAUSE.fill(last=one.last_batch, samples=one.samples, times=found.times), fix=FIX, where=quantity.site or said.site,
        also=tuple(s for s in (said.site,) if s is not None and s != quantity.site),
        evidence=(Evidence(SAID, f"{said.value:.{said.decimals}f}", WHOLE.fill(value=number(found.right, 4)), step=found.step),),
        first_step=found.step)
