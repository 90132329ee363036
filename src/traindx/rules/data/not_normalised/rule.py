"""Raw input scales reach the first layer.

What it is:
Inputs of hundreds, or columns whose scales differ a thousandfold, enter the first layer as they are, and training suffers from it.

Why it is silent:
Every number is finite; the layer multiplies what it gets.

What you see:
A first loss far above that of guessing, hidden units that saturate, or a loss that stays where guessing is.

Look-alikes:
Token ids, one-hot columns, a norm layer in front, inputs scaled inside forward, and nets that learn well all the same are left alone.

Fix:
Standardise with the training part's mean and standard deviation, or divide images by 255, or put a norm layer first.

Before:
    x_train = torch.tensor(table)
After:
    x_train = (torch.tensor(table) - mean) / std

Experiment:
Standardise the columns and train again: the loss leaves its plateau.

Source:
LeCun, Bottou, Orr, Müller, Efficient BackProp (1998), section 4.3. Limits (30 in size, 1000 between columns): rule of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import FirstWeights
from traindx.core.text import Text, number
from traindx.signals.feeding import Feeding, Progress, sites

ZH = """输入没有归一化就进了第一层

是什么：
几百大小的数值，或彼此相差上千倍的列，原样送进第一层，训练因此受害。

为什么不报错：
每个数都有限，给什么它就乘什么。

你会看到：
第一步的损失远高于瞎猜、隐藏单元饱和，或者损失一直停在瞎猜的水平。

容易混淆的情况：
词元编号、one-hot 列、前面有归一化层、在 forward 里缩放，以及照样学得好的网络，都不报。

怎么改：
用训练部分的均值和标准差做标准化；图像除以 255；或者在最前面放一个归一化层。

改前：
    x_train = torch.tensor(table)
改后：
    x_train = (torch.tensor(table) - mean) / std

对照实验：
把各列标准化再训练：损失会离开平台。

来源：
LeCun、Bottou、Orr、Müller，Efficient BackProp（1998）4.3 节。阈值（大小 30、列间 1000 倍）为经验值。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("loss/initial-loss-off", "init/saturated", "init/dead-units", "init/activation-collapse", "init/gradient-vanishing",
            "numeric/gradient-explosion", "optim/lr-too-high", "optim/lr-too-low", "optim/clip-always", "curve/*", "data/class-imbalance",
            "data/constant-input", "numeric/nonfinite", "numeric/fp16-overflow")
EXPERIMENT = "standardise"

LARGE = 30.0  # root mean square of a feature
UNEVEN = 1000.0  # largest over smallest feature scale

CAUSE = Text("The first {layer} gets raw values: the largest feature has a root mean square of {top}, the smallest {low}; {harm}.",
             "第一个 {layer} 拿到的是原始数值：各个特征的均方根，最大的是 {top}，最小的是 {low}；{harm}。")
STUCK = Text("the loss ends at {last}, no better than guessing ({chance})", "损失最后是 {last}，不比瞎猜（{chance}）好")
HIGH = Text("the first loss is {first}, guessing gives {chance}", "第一步损失是 {first}，瞎猜是 {chance}")
FIX = Text("Standardise each feature with the training part's mean and standard deviation.", "用训练部分的均值和标准差，把每个特征标准化。")
TOP = Text("root mean square of the largest feature", "最大特征的均方根")
RATIO = Text("largest over smallest feature scale", "最大与最小的特征尺度之比")
ONE = Text("about 1", "约为 1")
BECAUSE = Text("other faults can keep a loss high as well", "损失居高不下也可能另有原因")


def check(feeding: Feeding, progress: Progress) -> Iterator[Finding]:
    for feed in feeding:
        first = feed.first
        if first is not None and _raw(first) and (harm := _harm(progress)) is not None:
            yield _finding(first, harm)
            return


def _raw(first: FirstWeights) -> bool:
    if first.binary or "Norm" in first.module_class or not first.rms:
        return False
    scales = _scales(first)
    top = max(scales, default=0.0)
    return top > LARGE or (top > LARGE / 3 and top / min(scales) > UNEVEN)


def _scales(first: FirstWeights) -> list[float]:
    """By feature; constant zeros say nothing."""
    return [scale for scale in first.rms if scale > 1e-9]


def _harm(progress: Progress) -> Text | None:
    chance = progress.chance
    if chance is None:
        return None
    if progress.stuck:
        return STUCK.fill(last=number(progress.last), chance=number(chance))
    return HIGH.fill(first=number(progress.first), chance=number(chance)) if progress.starts_high and _classes(progress) else None


def _classes(progress: Progress) -> bool:
    return "entropy" in progress.function or progress.function == "nll_loss"


def _finding(first: FirstWeights, harm: Text) -> Finding:
    scales = _scales(first)
    places = sites(first.loader_site, first.site, first.forward_site)
    return Finding(
        cause=CAUSE.fill(layer=first.module_class, top=number(max(scales)), low=number(min(scales)), harm=harm), fix=FIX,
        where=places[0] if places else None, also=places[1:], confidence="likely", because=BECAUSE,
        evidence=(Evidence(TOP, float(number(max(scales))), ONE), Evidence(RATIO, float(number(max(scales) / min(scales))), ONE)))
