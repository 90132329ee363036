"""The last bias does not start from the class shares.

What it is:
Most samples belong to few classes, but the last layer begins as if all were equally frequent. The first steps are spent on learning the
shares, which could be set at once.

Why it is silent:
It is only a start from farther away; the bias is learned soon.

What you see:
A loss curve like a hockey stick: it drops fast at first, by what any constant guess would gain, and then begins to learn.

Look-alikes:
Weighted losses and samplers make classes equally frequent on purpose. With balanced classes zero is the right start.

Fix:
Set the last bias to the logarithm of the class shares.

Before:
    head = nn.Linear(64, classes)
After:
    head.bias.data = torch.log(counts / counts.sum())

Experiment:
Set it: the first loss falls to the entropy of the class shares.

Source:
Entropy of the label counts against ln C, by formula; Lin et al. 2017, "Focal Loss for Dense Object Detection" (prior bias).
"""
from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import Labels
from traindx.core.observed.program import LossCall, ModelSeen, Parameter
from traindx.core.text import Text, number
from traindx.signals.where import pointing

ZH = """最后一层的偏置没有从类别占比出发

是什么：
多数样本属于少数几个类，最后一层的起点却像各类一样多。头几步都花在学占比上，而占比本来可以直接设好。

为什么不报错：
只是起点远一些，偏置很快就会学到。

你会看到：
损失曲线像一根曲棍球棒：开头降得很快，降掉的正是任何常数猜测都能得到的部分，之后才开始真正学习。

容易混淆的情况：
加权损失和采样器会有意让各类一样多。类别均衡时，从 0 开始就是对的。

怎么改：
把最后的偏置设成类别占比的对数。

改前：
    head = nn.Linear(64, classes)
改后：
    head.bias.data = torch.log(counts / counts.sum())

对照实验：
设好之后，第一个损失会降到类别占比的熵。

来源：
用标签计数算出的熵与 ln C 比较（公式）；Lin 等 2017「Focal Loss for Dense Object Detection」（先验偏置）。
"""
LEVEL = "note"
STEP = 3

GAIN = 0.35  # nats between ln C and the entropy of the classes (rule of thumb): about what 85 : 15 among two gives
SAMPLES = 64
NEAR = 0.2

CAUSE = Text("The first loss is {first}, as if all {classes} class{classes:|es} were equally frequent; their shares alone would give {entropy}.",
             "第一步的损失是 {first}，就像 {classes} 个类别一样多；只凭占比就能做到 {entropy}。")
FIX = Text("Set the last layer's bias to the logarithm of the class shares.", "把最后一层的偏置设成类别占比的对数。")
FIRST = Text("first loss", "第一步的损失")


def check(labels: list[Labels], losses: list[LossCall], models: list[ModelSeen]) -> Iterator[Finding]:
    first = next((call for call in losses if call.grad), None)
    if first is None or first.value is None or first.function != "cross_entropy" or first.weight is not None or first.reduction != "mean":
        return
    for seen in labels:
        total, classes = sum(seen.counts.values()), seen.classes
        if seen.weighted or classes < 2 or total < SAMPLES or len(first.input_shape) != 2 or first.input_shape[1] != classes:
            continue
        entropy = -sum(n / total * math.log(n / total) for n in seen.counts.values() if n)
        if math.log(classes) - entropy > GAIN and abs(first.value - math.log(classes)) < NEAR * math.log(classes):
            yield _finding(first, classes, entropy, _last_bias(models, classes))
            return


def _last_bias(models: list[ModelSeen], classes: int) -> Parameter | None:
    found = [parameter for model in models for parameter in model.parameters
             if parameter.shape == (classes,) and parameter.name.endswith("bias")]
    return found[-1] if found else None


def _finding(first: LossCall, classes: int, entropy: float, bias: Parameter | None) -> Finding:
    where, also = pointing(bias.made_at if bias else None, first.site)
    return Finding(
        cause=CAUSE.fill(first=number(first.value or 0.0), classes=classes, entropy=number(entropy)), fix=FIX, where=where, also=also,
        evidence=(Evidence(FIRST, number(first.value or 0.0), number(entropy), step=first.step),), first_step=first.step)
