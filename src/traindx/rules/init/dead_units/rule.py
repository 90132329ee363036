"""Most ReLU units of a layer are dead.

What it is:
More than half of a ReLU layer's units are zero for every sample over hundreds of samples and stay so. Their
gradient is zero, so nothing brings them back. A bias that starts far below zero does it at once, a step that is too
large does it later.

Why it is silent:
Zero is a valid output. The biases behind the dead layer still learn, so the loss still falls to that of a constant
answer.

What you see:
A loss that stops early, at the level of predicting the average, and no gradient in the layers in front.

Look-alikes:
Each unit of a healthy ReLU net is silent for many samples, but not for all. Wide nets can lose some units and work
well.

Fix:
Start biases at zero (a prior belongs in the output layer's bias only), lower the learning rate, or use LeakyReLU or
GELU.

Before:
    for m in self.modules():
        if isinstance(m, nn.Linear):
            nn.init.constant_(m.bias, -2.9)
After:
    nn.init.constant_(self.score.bias, -2.9)

Experiment:
Train with LeakyReLU in place of ReLU: if the loss now falls, dead units were the cause.

Source:
Maas, Hannun, Ng 2013: Rectifier nonlinearities improve neural network acoustic models; the share of one half is a
rule of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.start import DepthProfile, UnitsSeen
from traindx.core.text import Text
from traindx.signals.depth import lost_at_start
from traindx.signals.training import Progress

ZH = """一层里大多数 ReLU 单元已经死亡

是什么：
某个 ReLU 层里过半的单元，在几百个样本上输出全是零，而且一直如此。它们的梯度是零，没有什么能把它们救回来。
偏置一开始就远小于零，会立刻造成这种情况；步子太大，则会在训练中途造成。

为什么不报错：
零是合法的输出。死亡层后面的偏置还能学，所以损失仍会降到「永远给同一个答案」的水平。

你会看到：
损失很早就停住，停在预测平均值的水平；前面的层没有梯度。

容易混淆的情况：
健康的 ReLU 网络里，每个单元也会对很多样本输出零，但不会对所有样本都是零。很宽的网络死掉一部分单元，照样能用。

怎么改：
偏置从零开始（先验只放在输出层的偏置里），调低学习率，或换成 LeakyReLU、GELU。

改前：
    for m in self.modules():
        if isinstance(m, nn.Linear):
            nn.init.constant_(m.bias, -2.9)
改后：
    nn.init.constant_(self.score.bias, -2.9)

对照实验：
把 ReLU 换成 LeakyReLU 再训练：如果损失开始下降，病因就是死亡神经元。

来源：
Maas、Hannun、Ng 2013；「一半」这个界限是经验值。
"""
LEVEL = "warning"
STEP = 4
EXPLAINS = ("curve/*", "data/class-imbalance", "init/gradient-vanishing", "init/activation-collapse", "optim/lr-too-low",
            "loss/constant", "loss/not-connected", "init/gain-mismatch")
EXPERIMENT = "leaky-relu"

SHARE = 0.5  # rule of thumb
NEARLY_ALL = 0.9  # a layer that starts so passes on next to nothing, whatever the loss does
NOTHING_LEARNT = 0.95  # of the first loss
SAMPLES, STEPS = 500, 32  # over which a unit must be silent; below, rare features look dead
CAUSE_START = Text(
    "{dead} of {units} unit{units:|s} behind this ReLU are zero for every sample from the first step on{bias}; no gradient passes them.",
    "这个 ReLU 后面的 {units} 个单元里，有 {dead} 个从第一步起，对每个样本都输出 0{bias}；梯度过不去。")
CAUSE_LATER = Text(
    "{dead} of {units} unit{units:|s} behind this ReLU have become zero for every sample and stay so: their gradient is zero.",
    "这个 ReLU 后面的 {units} 个单元里，有 {dead} 个变成了对每个样本都输出 0，而且一直如此：它们的梯度是 0。")
BIAS = Text(" (mean bias {bias:.3g})", "（偏置均值 {bias:.3g}）")
FIX_START = Text("Start the hidden biases at zero, and the weights at the scale of He initialisation.",
                 "隐藏层的偏置从 0 开始，权重按 He 初始化的尺度来设。")
FIX_LATER = Text("Lower the learning rate (or warm it up), or use LeakyReLU.", "调低学习率（或加预热），或换成 LeakyReLU。")
DEAD = Text("units that were zero for all samples", "对所有样本都输出 0 的单元数")
SAMPLES_SEEN = Text("samples looked at in that stretch", "这段时间里查看的样本数")
FEW = Text("a small share", "只占很小一部分")


def check(units: list[UnitsSeen], progress: Progress, profiles: list[DepthProfile] | None) -> Iterator[Finding]:
    starved = lost_at_start(profiles or [])  # with no signal, a unit is on or off for all samples alike: no cause of anything
    for layer in sorted({each.layer for each in units}):
        seen = [each for each in units if each.layer == layer]
        last = _last_long(seen)
        if last is None or (starved and not _from_start(seen[0])):
            continue
        if _is_fault(last.stayed / last.units, _from_start(seen[0]), progress):
            yield _finding(last, seen[0])


def _is_fault(share: float, from_start: bool, progress: Progress) -> bool:
    """Nets that work well lose units too while they learn; so the less are dead, the less must have been learnt."""
    nothing_learnt = progress.last > NOTHING_LEARNT * progress.first
    if from_start:
        return share >= NEARLY_ALL or (share > SHARE and progress.is_stuck)
    return (share >= NEARLY_ALL and progress.is_stuck) or (share > SHARE and nothing_learnt)


def _from_start(first: UnitsSeen) -> bool:
    return first.dead_at_start > SHARE * first.units


def _last_long(seen: list[UnitsSeen]) -> UnitsSeen | None:
    """The last stretches together, as many as it takes to judge; the first of all has none before it that a unit could have stayed from."""
    samples, stayed = 0, seen[-1].units
    for each in reversed(seen[1:]):
        samples, stayed = samples + each.samples, min(stayed, each.stayed)
        if samples >= SAMPLES and seen[-1].last_step - each.first_step >= STEPS:
            return replace(seen[-1], stayed=stayed, samples=samples, first_step=each.first_step)
    return None


def _finding(last: UnitsSeen, first: UnitsSeen) -> Finding:
    at_start = _from_start(first)
    bias = BIAS.fill(bias=first.bias) if at_start and first.bias is not None and first.bias < 0 else Text("", "")
    setters: tuple[Site | None, ...] = (last.bias_set_at, last.weight_set_at) if at_start else ()
    places = [site for site in (*setters, last.made_at, last.site, last.optimizer_at) if site]
    return Finding(
        cause=(CAUSE_START if at_start else CAUSE_LATER).fill(dead=str(last.stayed), units=str(last.units), bias=bias),
        fix=FIX_START if at_start else FIX_LATER, where=places[0] if places else None, also=tuple(dict.fromkeys(places[1:])),
        evidence=(Evidence(DEAD, f"{last.stayed} / {last.units}", FEW, step=last.last_step),
                  Evidence(SAMPLES_SEEN, last.samples, "", step=last.last_step)),
        first_step=1 if at_start else last.first_step)
