"""BatchNorm's running statistics do not describe the batches.

What it is:
At the end of the run the running mean or variance of a BatchNorm is far from that of the very batches it trains on. In
eval mode the net then computes something that it was not trained for.

Why it is silent:
Training uses the batch's own statistics and never looks at the running ones. Only eval mode does.

What you see:
A training loss that is fine and a validation loss that is much worse, even on the training data.

Look-alikes:
In the first steps the statistics have yet to catch up. Validation data from another distribution also score worse, but
then the running statistics fit the training batches.

Fix:
Leave momentum near 0.1 (in PyTorch it is the weight of the new batch, not of the old average), or train longer.

Before:
    nn.BatchNorm1d(64, momentum=0.001)
After:
    nn.BatchNorm1d(64)

Experiment:
Re-estimate the statistics with torch.optim.swa_utils.update_bn: if validation recovers, they were the cause.

Source:
PyTorch documentation of BatchNorm ("momentum ... different from the one used in optimizer classes"); limits are rules
of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.mode import ForwardPass, NormGap
from traindx.core.recording import Recording
from traindx.core.text import Text, number

ZH = """BatchNorm 的滑动统计量与 batch 对不上

是什么：
训练快结束时，某个 BatchNorm 的滑动均值或方差与它正在训练的 batch 相差很远。到了推理模式，网络算的就不是训练时的那个函数。

为什么不报错：
训练时用的是 batch 自己的统计量，从不看滑动统计量；只有推理模式才用。

你会看到：
训练损失正常，验证损失却差很多，哪怕拿训练数据来验证也一样。

容易混淆的情况：
最初几步，统计量还没跟上。验证数据来自另一个分布时也会变差，但那时滑动统计量与训练 batch 是对得上的。

怎么改：
momentum 保持在 0.1 左右（在 PyTorch 里它是新 batch 的权重，不是旧平均值的权重），或者训练更久。

改前：
    nn.BatchNorm1d(64, momentum=0.001)
改后：
    nn.BatchNorm1d(64)

对照实验：
用 torch.optim.swa_utils.update_bn 重新估计统计量：验证恢复正常，病因就在它。

来源：
PyTorch 文档 BatchNorm 关于 momentum 的说明；各界限是经验值。
"""
LEVEL = "warning"
STEP = 3
EXPLAINS = ("curve/train-val-gap", "curve/overfitting")

MEAN, SPREAD = 1.0, 4.0  # standard deviations; factor of the variances
LAST = 3  # looks in a row
UPDATES = 30  # of the statistics: fewer are the first steps
VALUES = 16  # per channel, below which the batch's own statistics are noise
STILL = 0.5  # where no validation loss was seen: the statistics are for the most part those that they were made with
WORSE = 1.5  # validation loss over training loss
CAUSE = Text(
    "This BatchNorm's running statistics are off: its batches lie {gap} std away and have {spread} times the variance (momentum {momentum}).",
    "这个 BatchNorm 的滑动统计量不准：各个 batch 的均值和它相差 {gap} 个标准差，方差是它的 {spread} 倍（momentum = {momentum}）。")
FIX = Text("Use a momentum near 0.1; here it is the weight of the new batch. Or re-estimate with update_bn before eval.",
           "把 momentum 设在 0.1 左右（在这里，它是新 batch 所占的权重），或者在评估之前用 update_bn 重新估计。")
GAP = Text("distance of the batch mean from the running mean, in standard deviations", "batch 均值与滑动均值之差（以标准差计）")
RATIO = Text("batch variance over running variance", "batch 方差与滑动方差之比")
MADE = Text("weight of the 0 and 1 that the statistics were made with, after {updates} updates",
            "{updates} 次更新之后，统计量的初始值 0 和 1 还占的权重")
LOSSES = Text("validation loss / training loss at the end", "结束时，验证损失 / 训练损失")


def check(gaps: list[NormGap] | None, passes: list[ForwardPass] | None, recording: Recording) -> Iterator[Finding]:
    losses = _losses(recording)
    worse = losses is not None and losses[0] >= WORSE * losses[1]
    if not any(each.idle and each.running_stats for each in passes or []):
        return
    for norm in sorted({each.id for each in gaps or []}):
        last = [each for each in gaps or [] if each.id == norm][-LAST:]
        if (len(last) == LAST and all(_is_off(each) for each in last) and last[0].updates >= UPDATES
                and (worse or (losses is None and _weight_of_start(last[-1]) > STILL))):
            yield _finding(last[-1], losses)


def _losses(recording: Recording) -> tuple[float, float] | None:
    """The last validation loss, and the mean training loss over the last tenth of the run."""
    validation, training = recording.series.get("val_loss"), recording.series.get("loss")
    if not validation or not training:
        return None
    tail = [value for _, value in training[-max(1, len(training) // 10):]]
    mean = sum(tail) / len(tail)
    return (validation[-1][1], mean) if mean > 0 else None


def _weight_of_start(each: NormGap) -> float:
    """What the 0 and 1 that the statistics were made with still weigh in them."""
    return (1 - each.momentum) ** each.updates if each.momentum is not None else 0.0


def _is_off(each: NormGap) -> bool:
    return each.values >= VALUES and (each.mean_gap > MEAN or not 1 / SPREAD < each.spread < SPREAD)


def _finding(each: NormGap, losses: tuple[float, float] | None) -> Finding:
    said = (Evidence(LOSSES, f"{number(losses[0])} / {number(losses[1])}") if losses else
            Evidence(MADE.fill(updates=each.updates), number(_weight_of_start(each)), Text("about 0", "约 0"), "formula", step=each.step))
    return Finding(
        cause=CAUSE.fill(gap=number(each.mean_gap), spread=number(each.spread), momentum=str(each.momentum)), fix=FIX,
        where=each.made_at,
        evidence=(Evidence(GAP, each.mean_gap, f"< {MEAN}", "rule of thumb", step=each.step),
                  Evidence(RATIO, each.spread, Text("about 1", "约 1"), step=each.step),
                  said),
        first_step=each.step)
