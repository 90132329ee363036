"""The signal dies (or explodes) through depth.

What it is:
The outputs of the layers vary less and less from sample to sample (or more and more), by orders of magnitude from the
first layer to the last hidden one, and the loss hardly moves. What arrives at the head says nothing about the input.

Why it is silent:
Each layer does its arithmetic well; only the scale is lost, a constant factor at a time.

What you see:
The same prediction for every input, and a loss at the level of guessing.

Look-alikes:
Residual nets grow with the square root of depth. A collapse that Adam repairs in the first steps is harmless.

Fix:
Match the weights' scale to the activation (He for ReLU, Glorot for tanh), or put norms between the layers.

Before:
    nn.init.normal_(layer.weight, std=0.01)
After:
    nn.init.kaiming_normal_(layer.weight)

Experiment:
Draw the weights by He's rule and print the standard deviation of each layer's output: it stays level.

Source:
He et al. 2015: Delving deep into rectifiers; the factor of 1000 is a rule of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.start import DepthProfile, LayerFacts, PinnedUnits
from traindx.core.text import Text, number
from traindx.signals.depth import FACTOR, factor_of, size_of, spreads_of
from traindx.signals.training import Progress

ZH = """信号随深度消失（或爆炸）

是什么：
从第一层到最后一个隐藏层，各层输出在样本之间的差异越来越小（或越来越大），相差几个数量级，而损失几乎不动。
到达输出层的信号已经说明不了输入是什么。

为什么不报错：
每一层的计算都没错，只是尺度一层一层按固定倍数丢掉了。

你会看到：
对任何输入都给出同样的预测，损失停在瞎猜的水平。

容易混淆的情况：
残差网络的尺度随深度的平方根增长。如果 Adam 在最初几步就把它纠正过来，就没有害处。

怎么改：
让权重的尺度配得上激活函数（ReLU 用 He，tanh 用 Glorot），或在层之间加归一化。

改前：
    nn.init.normal_(layer.weight, std=0.01)
改后：
    nn.init.kaiming_normal_(layer.weight)

对照实验：
按 He 的规则初始化，打印每层输出的标准差：它会保持在同一水平。

来源：
He 等 2015《Delving deep into rectifiers》；1000 倍是经验值。
"""
LEVEL = "warning"
STEP = 4
EXPLAINS = ("init/gradient-vanishing", "curve/plateau", "curve/diverging", "optim/lr-too-low", "init/gain-mismatch")
EXPERIMENT = "he-init"

CAUSE_DIES = Text(
    "Layer outputs vary {factor} times less at {last} than at {first}: the signal is lost on the way, and the loss is stuck.",
    "各层输出在样本间的差异，{first} 是 {last} 的 {factor} 倍：信号在途中丢失，损失停住不动。")
CAUSE_GROWS = Text(
    "Layer outputs vary {factor} times more at {last} than at {first}: the signal explodes on the way, and the loss is "
    "stuck.",
    "各层输出在样本间的差异，{last} 是 {first} 的 {factor} 倍：信号在途中爆炸，损失停住不动。")
FIRST, LAST = Text("the first layer", "第一层"), Text("the last layer", "最后一层")
FIX = Text("Initialise by He's rule (ReLU) or Glorot's (tanh), or put norms between the layers.",
           "ReLU 用 He 初始化，tanh 用 Glorot 初始化，或者在层与层之间加归一化。")
SPREADS = Text("standard deviation over samples, layer by layer", "各层输出在样本间的标准差")
LEVEL_ONE = Text("about level", "大致持平")


def check(
    profiles: list[DepthProfile] | None, progress: Progress, units: list[PinnedUnits] | None,
) -> Iterator[Finding]:
    if not progress.is_stuck or any(each.function == "sigmoid" and each.feeds for each in units or []):
        return  # hidden sigmoids flatten every signal to a quarter at best: gradient-vanishing speaks of them
    for model in sorted({each.model for each in profiles or []}):
        seen = [each for each in profiles or [] if each.model == model]
        factors = [factor_of(each) for each in seen]
        if factors[0] is None or factors[-1] is None or len(seen) < 3:
            continue
        if (factors[0] < 1) == (factors[-1] < 1) and min(size_of(factors[0]), size_of(factors[-1])) > FACTOR:
            yield _finding(seen[0], factors[0])


def _finding(profile: DepthProfile, factor: float) -> Finding:
    layers = [layer for layer in profile.layers[:-1] if layer.output is not None]
    places = [site for site in (layers[1].set_at, layers[1].made_at, layers[0].made_at, profile.site) if site]
    shown = ", ".join(number(value, 2) for value in spreads_of(profile)[:8])
    return Finding(
        cause=(CAUSE_DIES if factor < 1 else CAUSE_GROWS).fill(
            factor=number(size_of(factor)), last=_named(layers[-1], LAST), first=_named(layers[0], FIRST)),
        fix=FIX, where=places[0] if places else None, also=tuple(dict.fromkeys(places[1:])),
        evidence=(Evidence(SPREADS, shown, LEVEL_ONE, step=profile.step),), first_step=profile.step)


def _named(layer: LayerFacts, place: Text) -> Text:
    return Text(f"module {layer.name}", f"模块 {layer.name}") if layer.name else place
