"""Learning-rate sweep: one small net, the same start, trained anew at 29 rates; a line to drag along them."""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import torch

from traindx.core.text import Text, number, same
from traindx.figures import Axis, Chart, Mark, Series
from traindx.labs.lab import Lab, Level, Outcome, Slider, State, Table, grid, seed
from traindx.labs.nets import climb, copies_of, curve, descend, dice, forward, mlp, normal, squared_error

RATES = grid(1e-6, 10, 29, log=True)  # four to a decade
STEPS, SAMPLES, BATCH = 60, 32, 4
WIDTHS = (4, 32, 1)
LITTLE = 0.95  # a loss that is still above this share of its start hardly fell
JUMPY = 0.25  # a curve whose way up is this share of all its way oscillates
STEEPEST = (10.0, 3.0)  # the advised interval: the steepest rate divided by these (rule of thumb)


@dataclass(frozen=True)
class Shape:
    """What a curve looks like, and what to do with the learning rate."""

    name: Text
    advice: Text
    level: Level


FLAT = Shape(Text("it hardly falls", "几乎不降"), Text("Too small: take it times 10 or more.", "太小了：至少乘以 10。"), "warning")
FALLS = Shape(Text("it falls steadily", "稳定下降"), Text("This rate works.", "这个学习率能用。"), "fine")
JUMPS = Shape(Text("it oscillates", "震荡"),
              Text("A little too large: divide it by 3 to 10, or begin with a warm-up.", "略大了：除以 3 到 10，或者先预热（warmup）。"),
              "warning")
RUNS = Shape(Text("it explodes", "爆炸"), Text("Far too large: go down two decades.", "太大了：降两个数量级重来。"), "error")


@cache
def sweep(number_of_seed: int) -> tuple[tuple[float, ...], ...]:
    """The loss on all samples at steps 0 .. STEPS for each of RATES: batches of BATCH, the same order for every rate."""
    chance = dice(number_of_seed)
    inputs = normal(chance, SAMPLES, WIDTHS[0])
    targets = torch.sin(inputs @ normal(chance, WIDTHS[0], 1))
    nets = copies_of(mlp(WIDTHS, [chance]), len(RATES))

    def batch(step: int) -> slice:
        return slice(BATCH * step % SAMPLES, BATCH * step % SAMPLES + BATCH)
    losses = descend(nets, lambda net, step: squared_error(forward(net, inputs[batch(step)]), targets[batch(step)]), STEPS,
                     torch.tensor(RATES, dtype=torch.float64), watch=lambda net: squared_error(forward(net, inputs), targets))
    return tuple(tuple(curve(column)) for column in losses.T.tolist())


def shape_of(losses: tuple[float, ...]) -> Shape:
    """The four shapes of a loss curve, judged by where it ends and how much of its way leads up."""
    if not math.isfinite(losses[-1]) or losses[-1] > losses[0]:
        return RUNS
    if climb(losses) > JUMPY:
        return JUMPS
    return FLAT if losses[-1] > LITTLE * losses[0] else FALLS


def steepest(last: list[float]) -> float:
    """Where the final loss falls by the largest factor from one rate to the next: the geometric middle of that pair."""
    drops = [before / after for before, after in pairwise(last) if math.isfinite(before)]
    place = drops.index(max(drops))
    return math.sqrt(RATES[place] * RATES[place + 1])


def compute(state: State) -> Outcome:
    rate, curves = float(state["rate"]), sweep(int(state["seed"]))
    losses = curves[RATES.index(rate)]
    shape = shape_of(losses)
    verdict = Text("At lr = {lr} the loss goes from {start} to {end} in {steps} step{steps:|s} (measured): {name}. {advice}",
                   "学习率 {lr}：{steps} 步里损失从 {start} 变到 {end}（实测），{name}。{advice}")
    verdict = verdict.fill(lr=number(rate), start=number(losses[0]), end=_end(losses), steps=STEPS, name=shape.name, advice=shape.advice)
    last = [losses[-1] for losses in curves]
    return Outcome(verdict, shape.level, (_sweep(rate, last, curves[0][0]), _curve(rate, losses)), (_table(last),))


def _end(losses: tuple[float, ...]) -> Text:
    if math.isfinite(losses[-1]):
        return same(number(losses[-1]))
    return Text("beyond 10^10 times that (from step {k} on)", "起点的 10^10 倍以上（从第 {k} 步起）").fill(k=losses.index(math.inf))


def interval(last: list[float]) -> tuple[float, float]:
    middle = steepest(last)
    return middle / STEEPEST[0], middle / STEEPEST[1]


def _sweep(rate: float, last: list[float], start: float) -> Chart:
    low, high = interval(last)
    advised = {x: y for x, y in zip(RATES, last) if low <= x <= high}
    return Chart(Text("Loss after {n} step{n:|s}, for each learning rate", "每个学习率训练 {n} 步以后的损失").fill(n=STEPS),
                 Axis(Text("learning rate", "学习率"), log=True), Axis(Text("loss", "损失"), log=True, range=(min(last) / 2, start * 4)),
                 (Series(Text("loss at the end", "最后的损失"), RATES, last, "main", "line+points"),
                  Series(Text("advised interval", "建议区间"), tuple(advised), tuple(advised.values()), "good", "points")),
                 (Mark("x", rate, Text("lr = {lr}", "学习率 {lr}").fill(lr=number(rate)), "other", knob="rate"),))


def _curve(rate: float, losses: tuple[float, ...]) -> Chart:
    return Chart(Text("The curve at lr = {lr}", "学习率 {lr} 的损失曲线").fill(lr=number(rate)), Axis(Text("step", "步")),
                 Axis(Text("loss", "损失"), log=True), (Series(Text("loss", "损失"), range(STEPS + 1), losses),),
                 (Mark("y", losses[0], Text("start", "起点")),))


def _table(last: list[float]) -> Table:
    low, high = interval(last)
    best = RATES[last.index(min(last))]
    edge = next((rate for rate, loss in zip(RATES, last) if not math.isfinite(loss)), math.inf)
    rows = ((Text("steepest fall", "最陡处"), number(steepest(last)), Text("measured", "实测")),
            (Text("advised: steepest / 10 to / 3", "建议：最陡处除以 10 到除以 3"), f"{number(low, 2)} … {number(high, 2)}",
             Text("rule of thumb", "经验值")),
            (Text("lowest loss after {n} step{n:|s}", "{n} 步后损失最低").fill(n=STEPS), number(best), Text("measured", "实测")),
            (Text("first that diverges", "第一个发散的"), number(edge), Text("measured", "实测")))
    return Table((Text("what", "项目"), Text("learning rate", "学习率"), Text("origin", "来源")), rows,
                 Text("The lowest point of a short sweep lies close to the edge, so the advice stays far below it: cautious for so few steps.",
                      "短扫描的最低点往往离悬崖很近，所以建议值要小得多；只跑这么几步，会显得保守。"))


LAB = Lab(
    2, "lr_sweep", Text("Sweep the learning rate, drag the line", "扫一遍学习率，拖动竖线"),
    about=Text("A net with 4 inputs, 32 tanh units and one output learns 32 samples in batches of 4 by plain SGD. It is trained anew "
               "from the same weights at each of 29 learning rates, and the loss at the end is drawn. What counts as large depends on the "
               "net: a net of other curvature moves the whole picture to the left or right.",
               "一个小网络：4 个输入、32 个 tanh 单元、1 个输出，用最普通的 SGD 学 32 个样本，每个 batch 4 个。"
               "29 个学习率，每个都从同样的权重重新训练一次，画出最后的损失。多大算大，要看网络：换一个曲率不同的网络，整张图会左右平移。"),
    see=Text("On the left the loss stays where it began, then it falls, and at the right edge it is gone. "
             "Below, the curve of the rate at which the line stands.",
             "左边，损失停在起点不动；往右，越降越低；到了右端，曲线断掉。旁边是竖线所在学习率的损失曲线。"),
    break_it=Text("Drag the line to 1e-6, then to 0.1, then past 0.3.", "把竖线拖到 1e-6，再拖到 0.1，最后拖过 0.3。"),
    then=Text("At 1e-6 the curve is a level line. At 0.1 it jumps up and down. Past the edge it climbs by the same factor "
              "each step, a straight line upwards on the logarithmic axis, until it is no number any more.",
              "1e-6 处是一条水平线。0.1 处上下横跳。过了边缘，每一步都乘上差不多的倍数，在对数轴上就是一条向上的直线，直到不再是有限数。"),
    rules=("optim/lr-too-high", "optim/lr-too-low", "curve/oscillating", "curve/diverging", "curve/plateau"),
    knobs=(Slider("rate", Text("Learning rate", "学习率"), RATES, 0.01), seed(3)), compute=compute)
