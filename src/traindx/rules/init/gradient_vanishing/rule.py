"""The early layers get almost no gradient.

What it is:
From the last layer to the first the gradient shrinks by more than four orders of magnitude, step after step, while the
loss hardly falls. The early layers stay where they began.

Why it is silent:
A tiny gradient is a gradient. The last layers learn, so the loss still moves a little.

What you see:
A deep net that does no better than a shallow one, or stays at chance.

Look-alikes:
Frozen layers and embeddings of which few rows are used have small gradients for other reasons. Under Adam a net may
train well in spite of a large ratio: then the loss falls.

Fix:
Use ReLU-like activations with He initialisation, residual connections or a norm; or fewer layers.

Before:
    layers += [nn.Linear(64, 64), nn.Sigmoid()]
After:
    layers += [nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU()]

Experiment:
Put a LayerNorm in front of each activation: the ratio rises and the loss leaves its plateau.

Source:
Glorot, Bengio 2010: Understanding the difficulty of training deep feedforward neural networks; the limit of 1e-4 is a
rule of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.start import DepthProfile, LayerFacts
from traindx.core.text import Text, number
from traindx.signals.training import Progress

ZH = """前面的层几乎得不到梯度

是什么：
从最后一层到第一层，梯度缩小了四个数量级以上，每一步都如此，损失也几乎不降。前面的层一直停在起点。

为什么不报错：
再小的梯度也是梯度。后面几层在学，所以损失多少会动一点。

你会看到：
很深的网络不比浅的好，或者一直停在随机猜的水平。

容易混淆的情况：
冻结的层、只用到少数几行的嵌入层，梯度小是别的原因。用 Adam 时比值很大也可能训练得很好，那时损失会降。

怎么改：
用 ReLU 一类的激活函数配 He 初始化，加残差连接或归一化层，或者减少层数。

改前：
    layers += [nn.Linear(64, 64), nn.Sigmoid()]
改后：
    layers += [nn.Linear(64, 64), nn.LayerNorm(64), nn.ReLU()]

对照实验：
在每个激活函数前加 LayerNorm：比值变大，损失离开平台。

来源：
Glorot、Bengio 2010；1e-4 这个界限是经验值。
"""
LEVEL = "warning"
STEP = 5
EXPLAINS = ("curve/plateau", "optim/lr-too-low")

RATIO = 1e-4
LAYERS = 4
LOOKS = 5
MOST = 0.8  # of the looks
AFTER = 3  # steps: with zeros at the start the first gradients are zero
CAUSE = Text(
    "The gradient shrinks by a factor of {factor} from the last layers to the first (module {name}), and the loss hardly falls.",
    "最后几层的梯度是最前面（模块 {name}）的 {factor} 倍：梯度一路消失，损失几乎不降。")
FIX = Text("Use ReLU-like activations with He initialisation, a norm in front of them, or residual connections.",
           "用 ReLU 一类的激活函数，配 He 初始化；在它们前面加归一化层，或者加残差连接。")
GRADIENTS = Text("gradient (root mean square) of the first and the last layers", "最前与最后几层的梯度（均方根）")
LOSS = Text("loss over the first and the last tenth of the run", "前十分之一与后十分之一的平均损失")
ORDER = Text("within a factor of 100", "相差不超过 100 倍")


def check(profiles: list[DepthProfile] | None, progress: Progress) -> Iterator[Finding]:
    if not progress.is_stuck:
        return
    for model in sorted({each.model for each in profiles or []}):
        seen = [each for each in profiles or [] if each.model == model and each.step >= AFTER]
        ends = [pair for each in seen if (pair := ends_of(each)) is not None]
        small = [first < RATIO * last for first, last in ends]
        if len(ends) >= LOOKS and sum(small) >= MOST * len(small) and small[-1]:
            yield _finding(seen[-1], *ends[-1], progress)


def ends_of(profile: DepthProfile) -> tuple[float, float] | None:
    """The largest gradient in the first quarter of the layers that hold one, and the median of the last quarter.

    Depth makes all early layers' gradients small. Those of attention's queries and keys are small by themselves while it is still even.
    """
    gradients = [layer.gradient for layer in profile.layers if layer.gradient is not None]
    if len(gradients) < LAYERS:
        return None
    quarter = max(1, len(gradients) // 4)
    first, last = max(gradients[:quarter]), median(gradients[-quarter:])
    return (first, last) if first > 0 and last > 0 else None


def _finding(profile: DepthProfile, first: float, last: float, progress: Progress) -> Finding:
    layer: LayerFacts = next(layer for layer in profile.layers if layer.gradient is not None)
    places = [site for site in (layer.set_at, layer.made_at, profile.site) if site]
    return Finding(
        cause=CAUSE.fill(factor=number(last / first), name=layer.name), fix=FIX, where=places[0] if places else None,
        also=tuple(places[1:]),
        evidence=(Evidence(GRADIENTS, f"{number(first)} / {number(last)}", ORDER, step=profile.step),
                  Evidence(LOSS, f"{number(progress.first)} / {number(progress.last)}")),
        first_step=AFTER)
