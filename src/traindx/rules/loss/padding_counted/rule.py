"""Padding counts in the loss.

What it is:
Sequences are filled up to one length, and the filler is a class like any other for the loss: no ``ignore_index``, no mask.

Why it is silent:
Filler is easy to predict. The loss falls fast and far, since most of what it averages is filler.

What you see:
A low loss beside poor accuracy on the real tokens; gradients of real tokens are divided by the number of all.

Look-alikes:
A class that truly ends every sequence (silence, background) is a target like others; here the model's input ends in filler at the same places.

Fix:
Tell the loss which target to ignore.

Before:
    nn.CrossEntropyLoss()
After:
    nn.CrossEntropyLoss(ignore_index=PAD)

Experiment:
Ignore the filler: the loss rises at once to its true level, and accuracy on real tokens rises faster.

Source:
PyTorch documentation of CrossEntropyLoss, ``ignore_index``; the share is counted on the first batches.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.tokens import TokenTargets
from traindx.core.text import Text
from traindx.signals.where import pointing

ZH = """填充也算进了损失

是什么：
序列补齐到同一长度，补进去的填充符对损失来说也是一个普通类别：没有 ``ignore_index``，也没有掩码。

为什么不报错：
填充符很好预测。损失平均的大多是填充，所以降得又快又低。

你会看到：
损失很低，真实词元的准确率却很差；求平均时除的是总数（连填充在内），真实词元的梯度因此变小。

容易混淆的情况：
真正出现在每条序列末尾的类别（静音、背景）是正常目标；这里模型的输入在同样的位置也以填充结尾。

怎么改：
告诉损失忽略哪个目标。

改前：
    nn.CrossEntropyLoss()
改后：
    nn.CrossEntropyLoss(ignore_index=PAD)

对照实验：
忽略填充：损失立刻回到真实水平，真实词元的准确率也升得更快。

来源：
PyTorch CrossEntropyLoss 文档中的 ``ignore_index``；占比是在最初几个 batch 上数出来的。
"""
LEVEL = "warning"
STEP = 2
EXPLAINS = ("data/class-imbalance", "curve/plateau", "loss/initial-loss-off", "curve/val-better-than-train", "optim/lr-too-low")

CAUSE = Text("{share} % of the targets are the filler {token} at the ends of the rows, and {function} counts them like real ones.",
             "目标里有 {share} % 是行末的填充 {token}，{function} 把它们当作真实目标一样计入。")
FIX = Text("Pass ignore_index={token} to the loss, or mask these places.", "给损失传 ignore_index={token}，或者把这些位置掩掉。")
SHARE = Text("share of targets in runs of {token} at the ends", "行末的连续 {token} 占目标的比例")
LOSS_SHARE = Text("their share of the loss", "它们占损失的比例")
INPUT = Text("share of the model's input in such runs", "模型输入里，这样的连续段占的比例")
LEAST = 0.2
NONE = "0 %"


def check(tokens: list[TokenTargets]) -> Iterator[Finding]:
    for seen in tokens:
        calls = [other for other in tokens if other.site == seen.site and other.grad]
        if calls and calls[0] is seen and all(counts_padding(call) for call in calls) and len({c.tail_token for c in calls}) == 1:
            yield _finding(seen)
            return


def counts_padding(seen: TokenTargets) -> bool:
    """A fifth of the targets and more; the input is padded too; nothing masks them after the loss."""
    masked = seen.reduction == "none" and (seen.tail_gradient is None or seen.tail_gradient < 0.01)
    return seen.tail_share > LEAST and seen.tail_varies and not masked and seen.input_tail_share > seen.tail_share / 3


def _finding(seen: TokenTargets) -> Finding:
    where, also = pointing(seen.site, seen.made_at)
    percent = f"{100 * seen.tail_share:.0f}"
    evidence = [Evidence(SHARE.fill(token=seen.tail_token), f"{percent} %", NONE, step=seen.step),
                Evidence(INPUT, f"{100 * seen.input_tail_share:.0f} %", step=seen.step)]
    if seen.tail_loss_share is not None:
        evidence.append(Evidence(LOSS_SHARE, f"{100 * seen.tail_loss_share:.0f} %", NONE, step=seen.step))
    return Finding(
        cause=CAUSE.fill(share=percent, token=seen.tail_token, function=seen.function), fix=FIX.fill(token=seen.tail_token),
        where=where, also=also, evidence=tuple(evidence), first_step=seen.step)
