"""Weights were drawn for another activation.

What it is:
A deep plain net with ReLU was initialised by Glorot's formula, or one with tanh by He's. Each formula keeps the signal's size for its own
activation only; the other one shrinks it or drives it into saturation, layer by layer.

Why it is silent:
One layer off by a factor is nothing; the factors multiply with depth.

What you see:
Outputs that hardly differ between samples at the start, and a slow first phase; with tanh, units at the ends of their range.

Look-alikes:
Shallow nets, nets with normalisation and residual nets bring their signal back to size by themselves.

Fix:
Use the formula that belongs to the activation.

Before:
    nn.init.xavier_uniform_(layer.weight)   # before a ReLU
After:
    nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")

Experiment:
Compare the spread of the last layer's output at step 1 under both formulas.

Source:
He et al. 2015, "Delving Deep into Rectifiers" (ReLU halves the variance, so 2/fan_in); Glorot and Bengio 2010 (tanh).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.start import DepthProfile, LayerFacts
from traindx.core.text import Text, number
from traindx.signals.where import pointing

ZH = """初始化公式和激活函数不配

是什么：
很深的 ReLU 网络用了 Glorot 公式初始化，或者 tanh 网络用了 He 公式。每个公式只对自己的激活函数能保持信号大小；换成另一个，信号就逐层缩小，或者逐层走向饱和。

为什么不报错：
一层差一个倍数不算什么，但这些倍数会随深度相乘。

你会看到：
刚开始时，不同样本的输出几乎一样，头一段学得很慢；用 tanh 时，神经元停在取值范围的两端。

容易混淆的情况：
浅网络、带归一化的网络、残差网络，会自己把信号拉回合适的大小。

怎么改：
用和激活函数配套的公式。

改前：
    nn.init.xavier_uniform_(layer.weight)   # 后面接 ReLU
改后：
    nn.init.kaiming_uniform_(layer.weight, nonlinearity="relu")

对照实验：
比较两种公式下，第 1 步时最后一层输出的散布。

来源：
He 等 2015「Delving Deep into Rectifiers」（ReLU 让方差减半，所以用 2/fan_in）；Glorot 与 Bengio 2010（tanh）。
"""
LEVEL = "note"
STEP = 3

DEEP = 6  # layers drawn by the wrong formula: (1/2) ** 6 of the variance is left
SHRUNK = 0.3  # of the first layer's spread is left before the last one

SHRINKS = Text("{count} layer{count:|s} before ReLUs were drawn by {formula}: the signal's spread falls from {first} to {last} through them.",
               "有 {count} 个接 ReLU 的层用 {formula} 初始化：信号经过这些层，散布从 {first} 降到 {last}。")
SATURATES = Text("{count} layer{count:|s} before tanh were drawn by {formula}, which is made for ReLU: their inputs are twice as large in "
                 "variance as tanh wants.",
                 "有 {count} 个接 tanh 的层用 {formula} 初始化，这个公式是为 ReLU 定的：tanh 拿到的输入，方差是合适值的两倍。")
FIX_RELU = Text("Use nn.init.kaiming_uniform_(weight, nonlinearity='relu').", "改用 nn.init.kaiming_uniform_(weight, nonlinearity='relu')。")
FIX_TANH = Text("Use nn.init.xavier_uniform_(weight, gain=5 / 3).", "改用 nn.init.xavier_uniform_(weight, gain=5 / 3)。")
SPREAD = Text("spread of the output over samples, first and last hidden layer", "第一层和最后一个隐藏层输出在样本间的散布")


def check(profiles: list[DepthProfile]) -> Iterator[Finding]:
    for profile in profiles:
        if profile.step == 1 and not profile.normalised and not profile.residual:
            if profile.activations == ("ReLU",) and (drawn := _drawn(profile, "xavier")):
                yield from _shrinking(profile, drawn)
            elif profile.activations == ("Tanh",) and (drawn := _drawn(profile, "kaiming")):
                yield _finding(profile, drawn, SATURATES, FIX_TANH)


def _drawn(profile: DepthProfile, formula: str) -> list[LayerFacts]:
    drawn = [layer for layer in profile.layers if layer.set_by.startswith(formula) and layer.set_at is not None]
    return drawn if len(drawn) >= DEEP else []


def _shrinking(profile: DepthProfile, drawn: list[LayerFacts]) -> Iterator[Finding]:
    spreads = [layer.output for layer in profile.layers[:-1] if layer.output]
    if len(spreads) > 2 and spreads[-1] < SHRUNK * spreads[0]:
        yield _finding(profile, drawn, SHRINKS, FIX_RELU, first=number(spreads[0]), last=number(spreads[-1]))


def _finding(profile: DepthProfile, drawn: list[LayerFacts], cause: Text, fix: Text, **values: str) -> Finding:
    where, also = pointing(drawn[0].set_at, drawn[0].made_at)
    spreads = [layer.output for layer in profile.layers[:-1] if layer.output] or [0.0]
    return Finding(
        cause=cause.fill(count=len(drawn), formula=drawn[0].set_by, **values), fix=fix, where=where, also=also, first_step=1,
        evidence=(Evidence(SPREAD, f"{number(spreads[0])} -> {number(spreads[-1])}", step=1),))
