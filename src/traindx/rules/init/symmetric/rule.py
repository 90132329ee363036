"""All units of a hidden layer start equal and stay equal.

What it is:
The weights of a hidden layer start at one constant, so all its units compute the same value and get the same
gradient. They stay copies of each other for ever: a layer of 64 units has the power of one.

Why it is silent:
Every unit learns, only all learn the same. The loss falls a little, as far as one unit can take it.

What you see:
A loss that stops at the level of a model with a single unit, often at chance, whatever the width.

Look-alikes:
A last layer, a LoRA matrix or the end of a residual branch may start at zero: their units soon differ, because what
follows them or goes into them differs. Biases, norms and gates may be constant.

Fix:
Draw the weights at random; only biases may be constant.

Before:
    nn.init.constant_(module.weight, 0.1)
After:
    nn.init.kaiming_normal_(module.weight)

Experiment:
Draw the layer's weights at random and train again: the loss goes below the old floor.

Source:
Goodfellow, Bengio, Courville: Deep Learning, section 8.4 (initial parameters must break the symmetry between units).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.start import EqualUnits
from traindx.core.text import Text, number, same

ZH = """一层里的所有单元起点相同，而且一直相同

是什么：
某个隐藏层的权重从同一个常数开始，所有单元算出的值相同，得到的梯度也相同。它们永远互为复制品：64 个单元只抵得上 1 个。

为什么不报错：
每个单元都在学，只是学的东西一样。损失会降一点，降到单个单元的极限就停了。

你会看到：
损失停在「只有一个单元」的模型的水平，常常就是随机猜的水平，加宽也没用。

容易混淆的情况：
最后一层、LoRA 矩阵、残差分支的末端可以从零开始：它们的输入或后续不同，各单元很快就会分开。偏置、归一化层、
门控可以是常数。

怎么改：
权重要随机初始化，只有偏置可以是常数。

改前：
    nn.init.constant_(module.weight, 0.1)
改后：
    nn.init.kaiming_normal_(module.weight)

对照实验：
把这一层的权重改成随机初始化再训练：损失会降到原来的下限以下。

来源：
Goodfellow、Bengio、Courville《Deep Learning》8.4 节：初始参数必须打破单元之间的对称。
"""
LEVEL = "error"
STEP = 4
EXPLAINS = ("curve/*", "init/*", "optim/lr-too-low", "loss/constant", "loss/not-connected")
EXPERIMENT = "random-init"

LOOKS = 4  # detailed steps after the first on which the units were compared
STEPS = 6  # a zero-initialised last layer needs one or two steps to come apart, a chain of zeros a few more
APART = 0.01  # rule of thumb: of the distance moved; rounding alone stays far below
CAUSE = Text(
    "The {units} unit{units:|s} of {layer} all start at {value} and are still equal after {steps} step{steps:|s}: they get the same gradient.",
    "{layer} 的 {units} 个单元都从 {value} 开始，{steps} 步之后仍然相同：它们得到的梯度一样。")
STUCK = Text(
    "The {units} unit{units:|s} of {layer} all start at {value} and have not moved in {steps} step{steps:|s}: their gradient is exactly zero.",
    "{layer} 的 {units} 个单元都从 {value} 开始，{steps} 步之后丝毫未动：它们的梯度恰好是 0。")
FIX = Text("Draw these weights at random (nn.init.kaiming_normal_, nn.init.xavier_uniform_); keep constants for biases.",
           "随机初始化这些权重（nn.init.kaiming_normal_、nn.init.xavier_uniform_ 等），常数只留给偏置。")
MOVED = Text("distance the weights have moved", "权重移动的距离")
DISTANCE = Text("largest difference between units", "单元之间的最大差异")
DIFFER = Text("about as large as the movement", "与移动距离相当")
SOME = Text("above 0", "大于 0")


def check(equal: list[EqualUnits] | None) -> Iterator[Finding]:
    for each in equal or []:
        if each.looks >= LOOKS and each.last_step - each.step >= STEPS and _stays(each):
            yield _finding(each)


def _stays(each: EqualUnits) -> bool:
    """Moved together; or not at all, for want of a gradient (a rate of zero is another fault)."""
    if each.moved > 0:
        return each.apart <= APART * each.moved
    return not each.graded


def _finding(each: EqualUnits) -> Finding:
    kind = same(each.module_class) if each.module_class else Text("a weight", "一个权重")
    shape = "x".join(map(str, each.shape))
    cause = (CAUSE if each.moved > 0 else STUCK).fill(
        units=number(each.units), layer=kind + same(f" [{shape}]"), value=number(each.value), steps=number(each.last_step - each.step))
    places = tuple(site for site in (each.set_at, each.made_at) if site)
    return Finding(
        cause=cause, fix=FIX, where=places[0] if places else None, also=places[1:],
        evidence=(Evidence(MOVED, each.moved, SOME, step=each.last_step), Evidence(DISTANCE, each.apart, DIFFER, step=each.last_step)),
        first_step=each.step)
