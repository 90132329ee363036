"""A gain no larger than what the seed alone moves.

What it is:
The program trains two variants, each several times, and the later one is better on average. But trainings of one variant differ among
themselves by about as much: the interval of the difference contains zero.

Why it is silent:
One mean is always lower than the other.

What you see:
An improvement that is gone, or reversed, with other seeds.

Look-alikes:
A gain whose interval stays clear of zero. Folds of a cross-validation and members of an ensemble are one variant. Variants that were
trained once each are not judged: their spread is not known.

Fix:
Train more seeds, the same ones for both variants, and report the interval; until then keep the simpler variant.

Before:
    best = min(("base", mean(base)), ("new", mean(new)))
After:
    low, high = difference_interval(new, base)
    adopted = "new" if high < 0 else "base"

Experiment:
More seeds of both variants; `traindx runs compare` does the same arithmetic over separate runs.

Source:
Bouthillier et al., Accounting for Variance in Machine Learning Benchmarks (2021). Interval by Welch's method, 95 %; number of seeds by the
formula for two means at a power of 80 %.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import variance

from traindx.core.findings import Evidence, Finding
from traindx.core.student import welch
from traindx.core.text import Text, number
from traindx.signals.repeats import Repeats, Variant

ZH = """改进不比换种子带来的变化大

是什么：
程序把两种方案各训练了几次，后一种平均更好。可是同一种方案的几次训练之间，差别也有这么大：两者之差的区间包含零。

为什么不报错：
两个平均数，总有一个更低。

你会看到：
换一批种子，改进就消失了，甚至反过来。

容易混淆的情况：
区间不含零的改进不算。交叉验证的各折、集成的各个成员，属于同一种方案。只训练过一次的方案不作判断：散布未知。

怎么改：
两种方案用同一批种子，多训练几次，并报告区间；在此之前，保留更简单的方案。

改前：
    best = min(("base", mean(base)), ("new", mean(new)))
改后：
    low, high = difference_interval(new, base)
    adopted = "new" if high < 0 else "base"

对照实验：
两种方案各多跑几个种子；对分开的几次运行，`traindx runs compare` 做同样的计算。

来源：
Bouthillier 等，Accounting for Variance in Machine Learning Benchmarks（2021）。区间用 Welch 方法，95 %；所需种子数按两均值比较、功效 80 % 的公式。
"""
LEVEL = "note"
STEP = 6
EXPERIMENT = None

NORMAL = 1.96 + 0.84  # 95 % confidence and 80 % power

CAUSE = Text("The best validation loss is {new} on average over {m} training{m:|s} with one variant and {old} over {n} with the one before "
             "it; trainings of one variant alone spread by {spread} (standard deviation), and the 95 % interval of the difference, {low} "
             "to {high}, contains zero.",
             "最好的验证损失，后一种方案训练 {m} 次，平均 {new}；前一种训练 {n} 次，平均 {old}。同一种方案的几次训练之间，标准差就有 "
             "{spread}；两者之差的 95 % 区间是 {low} 到 {high}，包含 0。")
FIX = Text("Train about {count} seed{count:|s} of each before a difference of this size is believed, or keep the simpler variant.",
           "差别只有这么大，每种方案大约要训练 {count} 个种子才信得过；否则就保留更简单的方案。")
GAIN = Text("gain in mean best validation loss", "最好验证损失的平均改进")
CLEAR = Text("an interval clear of 0", "区间不含 0")


def check(repeats: Repeats) -> Iterator[Finding]:
    base, *later = repeats.variants
    new = min(later, key=lambda variant: variant.mean)
    interval = welch(new.values, base.values)
    if new.mean < base.mean and interval is not None and interval[0] < 0 < interval[1]:
        yield _finding(base, new, interval)


def _finding(base: Variant, new: Variant, interval: tuple[float, float]) -> Finding:
    gain = base.mean - new.mean
    spread = math.sqrt((variance(base.values) + variance(new.values)) / 2)
    count = math.ceil(2 * (NORMAL * spread / gain) ** 2)
    return Finding(
        cause=CAUSE.fill(new=number(new.mean), old=number(base.mean), m=len(new.values), n=len(base.values), spread=number(spread, 2),
                         low=number(interval[0], 2), high=number(interval[1], 2)),
        fix=FIX.fill(count=max(count, 3)), where=new.site, also=(base.site,) if base.site and base.site != new.site else (),
        evidence=(Evidence(GAIN, float(number(gain)), CLEAR),))
