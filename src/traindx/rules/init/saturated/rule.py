"""Sigmoids or tanhs are pinned at the ends of their range.

What it is:
From the start on, most outputs of a hidden sigmoid or tanh lie within one per cent of its ends. The derivative there is
almost zero, so hardly any gradient passes to the layers in front.

Why it is silent:
The outputs are finite and look like decisions. The layers behind still learn from them.

What you see:
Slow or no learning, and gradients in front of the activation that are far smaller than behind it.

Look-alikes:
Gates of trained recurrent nets may be open or closed. A head is allowed to be sure.

Fix:
Shrink what goes in: normalise the inputs, start the weights smaller (Glorot), or put a norm in front.

Before:
    nn.init.normal_(layer.weight, std=3.0)
After:
    nn.init.xavier_uniform_(layer.weight)

Experiment:
Divide the layer's weights by ten at the start: if the loss now falls, saturation was the cause.

Source:
Glorot, Bengio 2010, section 3 (saturation of sigmoid and tanh); the share of 80 per cent is a rule of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.amounts import percent
from traindx.core.findings import Evidence, Finding
from traindx.core.observed.start import PinnedUnits
from traindx.core.text import Text, number
from traindx.signals.training import Progress

ZH = """sigmoid 或 tanh 的输出顶在两端

是什么：
从一开始，隐藏层里 sigmoid 或 tanh 的大多数输出就落在取值范围两端 1 % 以内。那里的导数几乎为零，前面的层几乎得不到梯度。

为什么不报错：
输出都是有限值，看上去像「很有把握」，后面的层也还能学。

你会看到：
学得很慢或不学；激活函数前面的梯度远小于后面的。

容易混淆的情况：
训练好的循环网络，门可以全开或全关。输出层可以很有把握。

怎么改：
把输入的尺度降下来：归一化数据，用更小的初始权重（Glorot），或在前面加归一化层。

改前：
    nn.init.normal_(layer.weight, std=3.0)
改后：
    nn.init.xavier_uniform_(layer.weight)

对照实验：
一开始就把这一层的权重除以 10：损失开始下降，病因就是饱和。

来源：
Glorot、Bengio 2010 第 3 节；80 % 这个界限是经验值。
"""
LEVEL = "warning"
STEP = 4
EXPLAINS = ("init/gradient-vanishing", "curve/plateau", "optim/lr-too-low", "init/gain-mismatch", "loss/initial-loss-off")
EXPERIMENT = "smaller-weights"

PINNED = 0.8
SLOPE = 0.1  # of the steepest
LOOKS = 6
EARLY = 8  # step before which it must have begun: later ones are learnt
CAUSE = Text(
    "{share} of this hidden {function}'s outputs are pinned at the ends of its range; the mean slope is {slope} of the steepest.",
    "这个隐藏层的 {function}，输出有 {share} 顶在两端；平均斜率只有最陡处的 {slope}。")
FIX = Text("Normalise what goes in, or start with smaller weights (nn.init.xavier_uniform_).",
           "归一化它的输入，或用更小的初始权重（nn.init.xavier_uniform_）。")
SHARE = Text("outputs within 1 % of the ends", "落在两端 1 % 以内的输出")
INPUT = Text("standard deviation of the input of the activation", "激活函数输入的标准差")
ABOUT_ONE = Text("about 1", "约为 1")


def check(pinned: list[PinnedUnits] | None, progress: Progress) -> Iterator[Finding]:
    if not progress.is_stuck:
        return
    for layer in sorted({each.layer for each in pinned or []}):
        seen = [each for each in pinned or [] if each.layer == layer]
        ends = [each.feeds and each.pinned >= PINNED and each.slope <= SLOPE for each in seen]
        if len(seen) >= LOOKS and seen[0].step <= EARLY and ends[0] and sum(ends) >= PINNED * len(ends) and ends[-1]:
            yield _finding(seen[0], seen[-1])


def _finding(first: PinnedUnits, last: PinnedUnits) -> Finding:
    places = [site for site in (first.weight_set_at, first.site, first.made_at) if site]
    return Finding(
        cause=CAUSE.fill(share=percent(last.pinned), function=last.function, slope=number(last.slope, 2)), fix=FIX,
        where=places[0] if places else None, also=tuple(places[1:]),
        evidence=(Evidence(SHARE, percent(last.pinned), "< 50 %", "rule of thumb", step=last.step),
                  Evidence(INPUT, first.spread, ABOUT_ONE, step=first.step)), first_step=first.step)
