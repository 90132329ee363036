"""Class weights favour the common class.

What it is:
Weights are meant to make rare classes count more. Here they grow with a class's count, or a class that occurs has weight 0: counts were
used where their inverse belongs, the order of the classes is another one, or a normalisation took one class to 0.

Why it is silent:
Any positive numbers are valid weights.

What you see:
Rare classes are never predicted, even less than without weights.

Look-alikes:
A single weight of 0 beside equal others is a way to ignore padding.

Fix:
Use the inverse of the counts.

Before:
    nn.CrossEntropyLoss(weight=counts / counts.sum())
After:
    nn.CrossEntropyLoss(weight=counts.sum() / (len(counts) * counts))

Experiment:
Invert the weights: recall of the rare classes rises.

Source:
Counted on the targets of the loss calls seen; a chance difference of counts is excluded at three standard deviations.
"""
from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.program import LossCall
from traindx.core.text import Text, number
from traindx.signals.where import pointing

ZH = """类别权重偏向了常见类

是什么：
权重本来是让少见的类更受重视。这里却是样本越多的类权重越大，或者某个出现过的类权重为 0：该用频数倒数的地方用了频数，
类别顺序对不上，或者归一化把某一类压成了 0。

为什么不报错：
任何正数都是合法的权重。

你会看到：
少见的类一次也预测不到，比不加权还差。

容易混淆的情况：
其他权重都相等、只有一个是 0，那是忽略填充的写法。

怎么改：
用频数的倒数。

改前：
    nn.CrossEntropyLoss(weight=counts / counts.sum())
改后：
    nn.CrossEntropyLoss(weight=counts.sum() / (len(counts) * counts))

对照实验：
把权重倒过来：少见类的召回率会上升。

来源：
在看到的损失调用的目标上计数；频数差异超过三个标准差，排除偶然。
"""
LEVEL = "warning"
STEP = 2
EXPLAINS = ("data/class-imbalance", "curve/plateau", "loss/initial-loss-off")

INVERTED = Text("Class {common} is the most common ({count} of {total}) and has weight {heavy}; class {rare} ({few}) has only {light}.",
                "类别 {common} 最常见（{total} 个里有 {count} 个），权重是 {heavy}；类别 {rare}（{few} 个）只有 {light}。")
ZERO = Text("Class {rare} occurs ({few} of {total}) but has weight 0: it is never learned.",
            "类别 {rare} 出现过（{total} 个里有 {few} 个），权重却是 0：永远学不到。")
POSITIVE = Text("Positives are {share} % of the targets, and pos_weight {weight} makes them count still less.",
                "正样本占目标的 {share} %，pos_weight {weight} 却让它们更不受重视。")
NEGATIVE = Text("Positives are {share} % of the targets, and pos_weight {weight} makes them count still more.",
                "正样本已占目标的 {share} %，pos_weight {weight} 还让它们更受重视。")
FIX = Text("Weights should fall with the counts: total / (classes * count).", "权重应随频数下降：总数 / (类别数 × 频数)。")
FIX_POSITIVE = Text("pos_weight is negatives / positives.", "pos_weight 应当是「负样本数 / 正样本数」。")
COUNTS = Text("targets seen, by class", "看到的目标（按类别计数）")
WEIGHTS = Text("weights of these classes", "这些类别的权重")
FALL = Text("falling as counts rise", "频数越大权重越小")
CORRELATION = 0.8  # of log weight and log count
SPREAD = 1.5  # largest against smallest, for weights and counts to differ at all
FEWEST = 64  # targets


def check(losses: list[LossCall]) -> Iterator[Finding]:
    by_place: dict[tuple[Site | None, str], list[LossCall]] = {}
    for call in losses:
        if call.grad:
            by_place.setdefault((call.site, call.function), []).append(call)
    for calls in by_place.values():
        finding = _weights(calls) or _positive(calls)
        if finding is not None:
            yield finding
            return


def _weights(calls: list[LossCall]) -> Finding | None:
    call, counts = calls[0], counted(calls)
    weight = call.weight
    if weight is None or sum(counts.values()) < FEWEST or max(counts, default=0) >= len(weight) or len(counts) < 2:
        return None
    heaviest, lightest = max(counts, key=lambda c: counts[c]), min(counts, key=lambda c: counts[c])
    total = sum(counts.values())
    zeros = [c for c in counts if weight[c] == 0 and counts[c] > 0.005 * total]
    others = {w for c, w in enumerate(weight) if w != 0}
    if zeros and len(others) > 1:
        cause = ZERO.fill(rare=zeros[0], few=counts[zeros[0]], total=total)
    elif is_inverted([(weight[c], counts[c]) for c in counts]):
        cause = INVERTED.fill(common=heaviest, count=counts[heaviest], total=total, heavy=number(weight[heaviest]), rare=lightest,
                              few=counts[lightest], light=number(weight[lightest]))
    else:
        return None
    return _finding(call, cause, FIX, str(dict(sorted(counts.items()))), str([float(number(weight[c])) for c in sorted(counts)]))


def counted(calls: list[LossCall]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for call in calls:
        for label, n in (call.target_counts or {}).items():
            counts[label] = counts.get(label, 0) + n
    return counts


def is_inverted(pairs: list[tuple[float, int]]) -> bool:
    """Weights rise with counts: log against log, counts apart by more than chance. ``pairs`` are ``(weight, count)`` of a class."""
    pairs = [(w, n) for w, n in pairs if w > 0 and n > 0]
    if len(pairs) < 2:
        return False
    weights, counts = [w for w, _ in pairs], [n for _, n in pairs]
    apart = max(counts) - min(counts) > 3 * math.sqrt(max(counts) + min(counts))
    if not apart or max(weights) < SPREAD * min(weights) or max(counts) < SPREAD * min(counts):
        return False
    return _correlation([math.log(w) for w in weights], [math.log(n) for n in counts]) > CORRELATION


def _correlation(xs: list[float], ys: list[float]) -> float:
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    product = sum((x - mx) * (y - my) for x, y in zip(xs, ys))
    scale = math.sqrt(sum((x - mx) ** 2 for x in xs) * sum((y - my) ** 2 for y in ys))
    return product / scale if scale else 0.0


def _positive(calls: list[LossCall]) -> Finding | None:
    call = calls[0]
    shares = [c.target_mean for c in calls if c.target_mean is not None and c.target_min == 0 and c.target_max == 1]
    if call.function != "binary_cross_entropy_with_logits" or not call.pos_weights or len(call.pos_weights) != 1 or not shares:
        return None
    targets = math.prod(call.target_shape) * len(shares)
    share, weight = sum(shares) / len(shares), call.pos_weights[0]
    error = math.sqrt(share * (1 - share) / max(targets, 1))
    if targets < FEWEST or weight <= 0 or abs(share - 0.5) < max(0.1, 3 * error) or not (weight > SPREAD or weight < 1 / SPREAD):
        return None
    if (share < 0.5) == (weight > 1):
        return None
    cause = (POSITIVE if share < 0.5 else NEGATIVE).fill(share=f"{100 * share:.0f}", weight=number(weight))
    return _finding(call, cause, FIX_POSITIVE, f"{100 * share:.1f} %", number(weight))


def _finding(call: LossCall, cause: Text, fix: Text, counts: str, weights: str) -> Finding:
    where, also = pointing(call.made_at, call.site)
    return Finding(cause=cause, fix=fix, where=where, also=also, first_step=call.step,
                   evidence=(Evidence(COUNTS, counts, step=call.step), Evidence(WEIGHTS, weights, FALL, step=call.step)))
