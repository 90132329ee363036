"""Five seeds: the same training ten times over, only the initial weights differ. Is a gain more than that spread?"""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from statistics import fmean, stdev

import torch
from torch import Tensor
from torch.nn.functional import softplus

from traindx.core.text import Text, number
from traindx.figures import Axis, Band, Chart, Mark, Role, Series
from traindx.labs.lab import Lab, Outcome, Slider, State, Table, seed
from traindx.labs.nets import Parameters, descend, dice, forward, mlp, normal

EPOCHS, SAMPLES, BATCH, TESTED = 30, 64, 16, 600
WIDTHS, RATE = (2, 6, 1), 1.0
MOST = 10  # trainings per set of seeds
DATA = 12  # the seed of the data, which stay the same
COUNTS = (2.0, 3.0, 5.0, 10.0)
GAINS = (0.1, 0.3, 1.0, 3.0, 10.0)
STUDENT = {2: 4.303, 3: 2.776, 5: 2.306, 10: 2.101}  # 97.5 % quantile of Student's t with 2 n - 2 degrees of freedom


@dataclass(frozen=True)
class Runs:
    """Of each training: the loss on the training samples at epochs 0 .. EPOCHS, and the test accuracy in per cent."""

    losses: tuple[tuple[float, ...], ...]
    accuracies: tuple[float, ...]


def samples() -> tuple[Tensor, Tensor]:
    """SAMPLES + TESTED points [n, 2], labelled by the sign of x y: a chequerboard of four squares."""
    points = normal(dice(DATA), SAMPLES + TESTED, 2)
    return 1.5 * points, points.prod(1, keepdim=True).sign()


@cache
def train(number_of_seed: int) -> Runs:
    """MOST nets side by side: the same batches in the same order, the same rate; net k is drawn from seed 10 s + k."""
    points, labels = samples()
    nets = mlp(WIDTHS, [dice(MOST * number_of_seed + k) for k in range(MOST)])
    per_epoch = SAMPLES // BATCH

    def loss_on(net: Parameters, rows: slice) -> Tensor:
        return softplus(-labels[rows] * forward(net, points[rows])).mean((1, 2))

    def batch(step: int) -> slice:
        return slice(step % per_epoch * BATCH, (step % per_epoch + 1) * BATCH)
    losses = descend(nets, lambda net, step: loss_on(net, batch(step)), EPOCHS * per_epoch, torch.full((MOST,), RATE, dtype=torch.float64),
                     watch=lambda net: loss_on(net, slice(0, SAMPLES)))[::per_epoch]
    right = (forward(nets, points[SAMPLES:]) * labels[SAMPLES:] > 0).double().mean((1, 2))
    return Runs(tuple(map(tuple, losses.T.tolist())), tuple((100 * right).tolist()))


def half_width(spread: float, count: int) -> float:
    """Of the 95 % interval for the difference of two means over ``count`` seeds each, both with this standard deviation."""
    return STUDENT[count] * spread * math.sqrt(2 / count)


def needed(spread: float, gain: float) -> int:
    """Seeds on either side until the gain leaves that interval; normal approximation, at least 2."""
    return max(2, math.ceil(2 * (1.96 * spread / gain) ** 2))


def by_luck(accuracies: tuple[float, ...], gain: float) -> float:
    """Share of ordered pairs of single runs of one and the same setting in which the second is better by the gain or more."""
    pairs = list(permutations(accuracies, 2))
    return sum(after - before >= gain for before, after in pairs) / len(pairs)


def compute(state: State) -> Outcome:
    count, gain, runs = int(state["count"]), float(state["gain"]), train(int(state["seed"]))
    losses, accuracies = runs.losses[:count], runs.accuracies[:count]
    spread = stdev(accuracies)
    half = half_width(spread, count)
    inside = gain < half
    verdict = Text("{n} seed{n:|s}: accuracy {mean} ± {spread} point{spread:|s} (measured), final losses up to {times} times apart. "
                   "Compared over {n} seed{n:|s} on either side, a difference below {half} point{half:|s} is within chance (formula, 95 "
                   "%): ",
                   "{n} 个种子：准确率 {mean} ± {spread} 个点（实测），最后的损失最多差 {times} 倍。两边各跑 {n} 个种子来比，"
                   "差距小于 {half} 个点，就分不出是不是运气（公式，95 %）：")
    verdict = verdict.fill(n=count, mean=number(fmean(accuracies)), spread=number(spread, 2), half=number(half, 2),
                           times=number(max(each[-1] for each in losses) / min(each[-1] for each in losses), 2))
    told = (INSIDE if inside else OUTSIDE).fill(gain=number(gain), needed=needed(spread, gain))
    return Outcome(verdict + told, "warning" if inside else "fine",
                   (_curves(losses), _spread(accuracies, gain)), (_table(runs.accuracies, spread, gain),))


INSIDE = Text("a gain of {gain} point{gain:|s} is noise. It would take about {needed} seed{needed:|s} on either side.",
              "涨了 {gain} 个点只是噪声。要说得清，两边大约各要 {needed} 个种子。")
OUTSIDE = Text("a gain of {gain} point{gain:|s} is more than that.", "涨了 {gain} 个点，超出了这个范围。")
ROLES: tuple[Role, ...] = ("main", "other", "third", "fourth", "muted")


def _curves(losses: tuple[tuple[float, ...], ...]) -> Chart:
    curves = tuple(Series(Text("seed {k}", "种子 {k}").fill(k=place), range(EPOCHS + 1), each, ROLES[place % 5], dashed=place > 4)
                   for place, each in enumerate(losses))
    return Chart(Text("Only the initial weights differ", "只有初始化不同"), Axis(Text("epoch", "轮数")),
                 Axis(Text("training loss", "训练损失"), log=True), curves)


def _spread(accuracies: tuple[float, ...], gain: float) -> Chart:
    mean, spread = fmean(accuracies), stdev(accuracies)
    return Chart(Text("Test accuracy of each seed", "每个种子的测试准确率"), Axis(Text("seed", "种子"), range=(-0.6, len(accuracies) - 0.4)),
                 Axis(Text("accuracy, %", "准确率，%"), range=(min(accuracies) - 3, max(*accuracies, mean + gain) + 3)),
                 (Series(Text("one training each", "各训练一次"), range(len(accuracies)), accuracies, "main", "points"),),
                 (Mark("y", mean, Text("mean", "平均"), "muted"),
                  Mark("y", mean + gain, Text("claimed: mean + {gain}", "声称的提升：平均 + {gain}").fill(gain=number(gain)), "bad")),
                 Band(mean - spread, mean + spread, Text("± one standard deviation (measured)", "± 一个标准差（实测）")))


def _table(accuracies: tuple[float, ...], spread: float, gain: float) -> Table:
    rows: list[tuple[Text | str, ...]] = [
        (Text("{n} seed{n:|s}", "{n} 个种子").fill(n=count), number(half_width(spread, count), 2),
         Text("noise", "噪声") if gain < half_width(spread, count) else Text("more than chance", "不只是运气")) for count in STUDENT]
    return Table((Text("on either side", "两边各跑"), Text("within chance below, points", "小于多少个点算运气"),
                  Text("a gain of {gain}", "涨 {gain} 个点").fill(gain=number(gain))), tuple(rows),
                 Text("Of all pairs of single runs of one and the same setting, {share} % show a \"gain\" of {gain} point{gain:|s} or more "
                      "(counted over 10 seeds).",
                      "同一套设置，随便拿两次单独的运行来比，有 {share} % 会「涨」{gain} 个点以上（10 个种子里数出来的）。"
                      ).fill(share=number(100 * by_luck(accuracies, gain), 2), gain=number(gain)))


LAB = Lab(
    12, "seeds", Text("Five seeds: spread, or gain?", "五个种子：是提升，还是散布？"),
    about=Text("The same data, the same order of batches, the same learning rate, 30 epochs; only the initial weights differ. "
               "What differs in the end is the spread over seeds. A gain that is smaller than that spread allows is no gain, "
               "it is another seed.",
               "数据一样，batch 的顺序一样，学习率一样，都训练 30 轮，只有初始化不同。最后的差别，就是种子间的散布。"
               "比散布还小的提升，不算提升，只是换了个种子。"),
    see=Text("Five curves that part soon and end apart, and accuracies that differ by whole points.",
             "五条曲线很快就分开，最后的损失各不相同，准确率也差出好几个点。"),
    break_it=Text("Set the claimed gain to 0.3 points, as many a paper does. Then raise the number of seeds, and then the gain.",
                  "把声称的提升设成 0.3 个点，然后增加种子数，再加大提升。"),
    then=Text("0.3 points are noise at every number of seeds here. More seeds narrow the interval only with their square root; "
              "a large gain needs few.",
              "在这里，不管几个种子，0.3 个点都是噪声。多跑种子，区间只按个数的平方根变窄；提升够大，几个种子就够。"),
    rules=("repro/unseeded", "repro/nondeterministic"),
    knobs=(Slider("count", Text("Number of seeds", "种子数"), COUNTS, 5.0),
           Slider("gain", Text("Claimed gain", "声称的提升"), GAINS, 1.0, Text("points", "个点")), seed(3)), compute=compute)
