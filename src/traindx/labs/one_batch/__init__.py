"""Can one batch be overfit? A 2-16-1 net and 8 points, and three ways to break it."""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product

import torch

from traindx.core.text import Text, number
from traindx.figures import Axis, Chart, Mark, Series
from traindx.labs.lab import Lab, Level, Outcome, Slider, State, Switch, Table, seed
from traindx.labs.nets import climb, copies_of, curve, descend, dice, forward, mlp, squared_error

STEPS, EVERY = 200, 5  # an odd stride: a curve that flips at each step is still seen to flip
POINTS = torch.tensor([[2.8, 0.6], [1.0, 2.4], [1.8, -1.6], [-0.4, 0.8], [-2.6, -1.0], [-1.2, -2.4], [-2.0, 1.8], [0.4, -0.6]],
                      dtype=torch.float64)
LABELS = torch.tensor([1.0, 1, 1, 1, -1, -1, -1, -1], dtype=torch.float64)[:, None]
RATES = (1e-5, 1e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.2, 0.3, 1.0, 10.0)
DECAYS = (0.0, 0.1, 1.0)
SETTINGS = tuple(product(RATES, (False, True), DECAYS))
LEARNT, LITTLE, JUMPY, STILL = 0.05, 0.95, 0.25, 0.02


@dataclass(frozen=True)
class Shape:
    """What the curve does, what usually stands behind it and how to make sure."""

    name: Text
    advice: Text
    level: Level


LEARNS = Shape(Text("the batch is learnt by heart", "这个 batch 背下来了"),
               Text("Forward, backward and loss are in order; go on to the sweep.", "前向、反向、损失都没问题，可以去扫学习率了。"), "fine")
UP = Shape(Text("the loss goes up", "损失往上走"),
           Text("Usually a wrong sign. Make sure: take a tiny rate; if it still only rises, the sign or the objective is wrong.",
                "多半是符号反了。怎么确认：把学习率调到很小，如果还是只升不降，就是符号或目标函数接错了。"), "error")
EXPLODES = Shape(Text("the loss explodes", "损失爆炸"),
                 Text("The rate is too large, or the sign is wrong. Make sure: take a hundredth of the rate; what then falls was the rate.",
                      "学习率太大，或者符号反了。怎么确认：学习率除以 100，这时能降下来，就是学习率的问题。"), "error")
JUMPS = Shape(Text("the loss oscillates", "损失震荡"),
              Text("Usually the rate is a little too large. Make sure: take a tenth of it; what still jumps are the data.",
                   "多半是学习率偏大。怎么确认：学习率除以 10 再看；还震荡，就去查数据管线。"), "warning")
FLAT = Shape(Text("the loss hardly falls", "损失几乎不降"),
             Text("Rate too small or regularisation too strong. Make sure: no regularisation, ten times the rate.",
                  "学习率太小，或者正则化太强。怎么确认：去掉所有正则化，学习率乘以 10 再看。"), "warning")
STUCK = Shape(Text("the loss stands still above zero", "损失停在零以上不动了"),
              Text("Weight decay pulls as hard as the data do. Switch it off for this test.",
                   "权重衰减和数据在拔河，谁也拉不动谁。做这个测试时要关掉它。"), "warning")
SLOW = Shape(Text("the loss still falls, but has not arrived", "损失还在降，但没降到底"),
             Text("More steps, or a larger rate.", "多训练几步，或者把学习率调大。"), "warning")


@dataclass(frozen=True)
class Run:
    """The losses at 0 .. STEPS, and the answers at the 8 points after the last."""

    losses: tuple[float, ...]
    answers: tuple[float, ...]


@cache
def runs(number_of_seed: int) -> dict[tuple[float, bool, float], Run]:
    """Every position of the knobs, trained side by side from the same weights."""
    nets = copies_of(mlp((2, 16, 1), [dice(number_of_seed)]), len(SETTINGS))
    rates, wrong, decays = (torch.tensor(column, dtype=torch.float64) for column in zip(*SETTINGS))
    losses = descend(nets, lambda net, _: (1 - 2 * wrong) * squared_error(forward(net, POINTS), LABELS), STEPS, rates,
                     watch=lambda net: squared_error(forward(net, POINTS), LABELS), decay=decays)
    answers = forward(nets, POINTS).detach()[:, :, 0]
    return {setting: Run(tuple(curve(column)), tuple(row)) for setting, column, row in zip(SETTINGS, losses.T.tolist(), answers.tolist())}


def shape_of(run: Run) -> Shape:
    losses = run.losses
    if not math.isfinite(losses[-1]):
        return EXPLODES
    if losses[-1] > losses[0] and climb(losses) > 0.9:
        return UP
    if climb(losses) > JUMPY:
        return JUMPS
    if losses[-1] < LEARNT:
        return LEARNS
    if losses[-1] > LITTLE * losses[0]:
        return FLAT
    return STUCK if losses[-1] > (1 - STILL) * losses[-1 - STEPS // 5] else SLOW


def compute(state: State) -> Outcome:
    rate, wrong, decay = float(state["rate"]), bool(state["wrong_sign"]), float(state["decay"])
    run = runs(int(state["seed"]))[rate, wrong, decay]
    shape = shape_of(run)
    right = sum(answer * label > 0 for answer, label in zip(run.answers, LABELS[:, 0].tolist()))
    if math.isfinite(run.losses[-1]):
        seen = Text("{name}: {start} → {end} in {steps} step{steps:|s}, {right} of 8 points on the right side (measured).",
                    "{name}：{steps} 步里 {start} → {end}，8 个点答对 {right} 个（实测）。")
    else:
        seen = Text("{name}: from {start} to more than 10^10 times that at step {gone} (measured).",
                    "{name}：从 {start} 起，第 {gone} 步就超过了起点的 10^10 倍（实测）。")
    gone = run.losses.index(math.inf) if math.inf in run.losses else STEPS
    seen = seen.fill(name=shape.name, start=number(run.losses[0]), end=number(run.losses[-1]), steps=STEPS, right=right, gone=gone)
    verdict = Text(seen.en[0].upper() + seen.en[1:] + " ", seen.zh) + shape.advice
    return Outcome(verdict, shape.level, (_loss(run), _answers(run)), (FOUR,))


def _loss(run: Run) -> Chart:
    steps = range(0, STEPS + 1, EVERY)
    return Chart(Text("Loss on the 8 points, drawn every 5 steps", "8 个点上的损失，每 5 步画一个点"), Axis(Text("step", "步")),
                 Axis(Text("squared error", "平方误差"), log=True),
                 (Series(Text("loss", "损失"), steps, run.losses[::EVERY]),),
                 (Mark("y", run.losses[0], Text("start", "起点")),
                  Mark("y", LEARNT, Text("learnt: 0.05 (rule of thumb)", "背下来：0.05（经验值）"), "good")))


def _answers(run: Run) -> Chart:
    places = range(1, 9)
    labels = Series(Text("label", "标签"), places, LABELS[:, 0].tolist(), "other", "points")
    answers = Series(Text("the net's answer", "网络的回答"), places, run.answers, "main", "bars")
    return Chart(Text("What the net says of each point after the last step", "训练完以后，网络对每个点的回答"), Axis(Text("point", "第几个点")),
                 Axis(Text("label ±1, answer", "标签 ±1 与回答"), range=(-2, 2)),
                 (answers, labels) if math.isfinite(run.losses[-1]) else (labels,))


FOUR = Table(
    (Text("shape", "现象"), Text("usual cause", "通常的病因"), Text("seen here with", "这里怎么看到")),
    ((Text("goes up", "往上走"), Text("wrong sign", "符号反了"), Text("sign reversed, rate 1e-4 or 1e-3", "符号写反，学习率 1e-4 或 1e-3")),
     (Text("explodes", "爆炸"), Text("rate too large", "学习率太大"), Text("rate 1 and above", "学习率 1 及以上")),
     (Text("oscillates", "震荡"), Text("rate a little too large", "学习率偏大"), Text("rate 0.2, no decay", "学习率 0.2，不加权重衰减")),
     (Text("hardly falls", "不降"), Text("rate too small, decay too strong", "学习率太小、正则化太强"),
      Text("rate 1e-5; decay 1 (stands still)", "学习率 1e-5；权重衰减取 1（停住）"))),
    Text("Four shapes of a failed overfit, and what stands behind them.", "过拟合失败的四种形状，各自的病因。"))

LAB = Lab(
    3, "one_batch", Text("Can one batch be overfit?", "一个 batch 能过拟合吗？"),
    about=Text("A net with 2 inputs, 16 tanh units and one output, squared error, 8 points with labels +1 and −1, plain gradient "
               "descent on all 8 at once. Any sound net can learn 8 points by heart. If it cannot, the fault is in the code, not in the idea.",
               "网络有 2 个输入、16 个 tanh 单元、1 个输出，损失是平方误差；数据是 8 个点，标签 +1 或 −1；每一步都用全部 8 个点做梯度下降。"
               "正常的网络一定背得下 8 个点。背不下来，错在代码里，不在想法里。"),
    see=Text("At a rate of 0.1 the loss falls by a factor of several hundred, and all 8 answers stand on their labels.",
             "学习率 0.1，损失降到几百分之一，8 个回答都落在标签上。"),
    break_it=Text("Reverse the sign of the gradient. Take the rate to either end. Or turn the weight decay up.",
                  "把梯度的符号写反；把学习率拖到两端；或者加大权重衰减。"),
    then=Text("Up, explosion, oscillation, standstill: the shape alone tells where to look. With the sign reversed even the "
              "smallest rate only rises: that is how to tell it from a rate that is too large.",
              "往上走、爆炸、震荡、不降：单看形状就知道该查哪里。符号写反时，再小的学习率也只升不降，这正是它和「学习率太大」的区别。"),
    rules=("loss/wrong-direction", "optim/lr-too-high", "optim/lr-too-low", "optim/decay-too-strong", "curve/diverging",
           "curve/oscillating", "curve/plateau"),
    knobs=(Slider("rate", Text("Learning rate", "学习率"), RATES, 0.1),
           Switch("wrong_sign", Text("Sign of the gradient reversed", "梯度符号写反")),
           Slider("decay", Text("Weight decay", "权重衰减"), DECAYS, 0.0), seed(2)), compute=compute)
