"""Softmax done twice: probabilities handed to a loss that wants logits. Two trainings, and what it does to one logit."""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from traindx.core.text import Text, number
from traindx.figures import Axis, Chart, Mark, Series
from traindx.labs.lab import Lab, Outcome, Slider, State, Table, seed
from traindx.labs.nets import copies_of, descend, dice, forward, mlp, normal

SAMPLES, STEPS, EVERY, RATE = 180, 150, 5, 0.5
CLASSES = (3.0, 10.0)
LOGITS = tuple(float(value) for value in range(-4, 11))
FINE = tuple(value / 2 for value in range(-8, 21))


def floor(classes: int) -> float:
    """The lowest loss that a softmax of probabilities can reach: the right one 1, the others 0."""
    return math.log(1 + (classes - 1) / math.e)


def blobs(classes: int, chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """SAMPLES points in as many clouds as classes, on a circle [samples, 2], and their labels."""
    labels = torch.arange(SAMPLES) % classes
    angles = 2 * math.pi * labels / classes
    return torch.stack([angles.cos(), angles.sin()], 1).double() * 3 + 0.4 * normal(chance, SAMPLES, 2), labels


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """-log softmax at the label: mean over the batch, [..., batch, classes] -> [...]."""
    return -logits.log_softmax(-1)[..., torch.arange(len(labels)), labels].mean(-1)


@dataclass(frozen=True)
class Trained:
    """Losses at every EVERY-th step and the accuracy in the end, with one softmax and with two."""

    once: tuple[float, ...]
    twice: tuple[float, ...]
    accuracy: tuple[float, float]


@cache
def train(classes: int, number_of_seed: int) -> Trained:
    """Two copies of one net from the same weights; the second hands the softmax of its outputs to the loss."""
    chance = dice(number_of_seed)
    inputs, labels = blobs(classes, chance)
    nets = copies_of(mlp((2, 16, classes), [chance]), 2)

    def objective(net: list[Tensor], _: int) -> Tensor:
        logits = forward(net, inputs)
        return cross_entropy(torch.stack([logits[0], logits[1].softmax(-1)]), labels)
    losses = descend(nets, objective, STEPS, torch.full((2,), RATE, dtype=torch.float64))[::EVERY].T.tolist()
    right = (forward(nets, inputs).argmax(-1) == labels).double().mean(-1).tolist()
    return Trained(tuple(losses[0]), tuple(losses[1]), (right[0], right[1]))


@cache
def pressed(classes: int, logit: float) -> tuple[float, float, float, float]:
    """Of the right class with this logit, all others 0: probability once, twice, and size of the loss' gradient once, twice."""
    found: list[Tensor] = []
    for times in (1, 2):
        logits = torch.zeros(classes, dtype=torch.float64)
        logits[0] = logit
        logits.requires_grad_()
        entering = logits if times == 1 else logits.softmax(0)
        loss = -entering.log_softmax(0)[0]
        found += [(-loss).exp().detach(), torch.autograd.grad(loss, logits)[0][0].abs()]
    once, slope_once, twice, slope_twice = (value.item() for value in found)
    return once, twice, slope_once, slope_twice


def compute(state: State) -> Outcome:
    classes, logit = int(state["classes"]), float(state["logit"])
    runs = train(classes, int(state["seed"]))
    once, twice, slope_once, slope_twice = pressed(classes, logit)
    verdict = Text("Trained with one softmax the loss ends at {one}, with two at {two}; it cannot go below ln(1 + {rest}/e) = {floor} "
                   "(formula), and the accuracy is {a} % against {b} % (measured). "
                   "A logit of {logit} means a probability of {p} once, {q} twice.",
                   "一次 softmax，损失降到 {one}；两次，停在 {two}。它不可能低于 ln(1 + {rest}/e) = {floor}（公式）；"
                   "准确率分别是 {a} % 和 {b} %（实测）。logit 为 {logit} 时，一次的概率是 {p}，两次的是 {q}。")
    verdict = verdict.fill(one=number(runs.once[-1]), two=number(runs.twice[-1]), rest=classes - 1, floor=number(floor(classes)),
                           a=number(100 * runs.accuracy[0]), b=number(100 * runs.accuracy[1]), logit=number(logit),
                           p=number(once), q=number(twice))
    return Outcome(verdict, "error", (_losses(classes, runs), _probabilities(classes, logit), _slopes(classes, logit)),
                   (_table(logit, (once, twice, slope_once, slope_twice)),))


ONCE, TWICE = Text("softmax once", "softmax 一次"), Text("softmax twice", "softmax 两次")


def _losses(classes: int, runs: Trained) -> Chart:
    steps = range(0, STEPS + 1, EVERY)
    stop = Text("floor {value}: it never gets below", "下限 {value}：再也降不下去").fill(value=number(floor(classes)))
    return Chart(Text("Loss on 180 samples", "180 个样本上的损失"), Axis(Text("step", "步")),
                 Axis(Text("loss", "损失"), range=(0, 1.1 * runs.once[0])),
                 (Series(ONCE, steps, runs.once, "good"), Series(TWICE, steps, runs.twice, "bad")),
                 (Mark("y", floor(classes), stop, "bad"), Mark("y", math.log(classes), Text("ln C: guessing", "ln C：瞎猜"))))


def _probabilities(classes: int, logit: float) -> Chart:
    points = [pressed(classes, each) for each in FINE]
    most = math.e / (math.e + classes - 1)
    return Chart(Text("Probability of the right class", "正确类别的概率"), Axis(Text("its logit (all others 0)", "它的 logit（其他都是 0）")),
                 Axis(Text("probability", "概率"), range=(0, 1.05)),
                 (Series(ONCE, FINE, [point[0] for point in points], "good"), Series(TWICE, FINE, [point[1] for point in points], "bad")),
                 (Mark("x", logit, Text("logit {value}", "logit {value}").fill(value=number(logit)), "other", knob="logit"),
                  Mark("y", most, Text("never more than {value}", "最多 {value}").fill(value=number(most)), "bad")))


def _slopes(classes: int, logit: float) -> Chart:
    points = [pressed(classes, each) for each in FINE]
    return Chart(Text("Gradient that the right class' logit gets", "正确类别的 logit 得到的梯度"),
                 Axis(Text("its logit (all others 0)", "它的 logit（其他都是 0）")), Axis(Text("size of the gradient", "梯度大小"), log=True),
                 (Series(ONCE, FINE, [point[2] for point in points], "good"), Series(TWICE, FINE, [point[3] for point in points], "bad")),
                 (Mark("x", logit, Text("logit {value}", "logit {value}").fill(value=number(logit)), "other", knob="logit"),))


def _table(logit: float, values: tuple[float, float, float, float]) -> Table:
    once, twice, slope_once, slope_twice = values
    return Table((Text("at logit {value}", "logit 为 {value} 时").fill(value=number(logit)), ONCE, TWICE),
                 ((Text("probability", "概率"), number(once), number(twice)),
                  (Text("loss", "损失"), number(-math.log(once)), number(-math.log(twice))),
                  (Text("gradient", "梯度"), number(slope_once), number(slope_twice))))


LAB = Lab(
    6, "double_softmax", Text("Softmax done twice", "softmax 做了两次"),
    about=Text("CrossEntropyLoss wants logits and does the softmax itself. A model that ends in a softmax makes it two. The second softmax "
               "sees numbers between 0 and 1 only, so it can never be sure: the best it can say of the right class is e / (e + C − 1). "
               "Nothing raises an error. Both curves are trained here, on 180 samples, from the same weights.",
               "CrossEntropyLoss 要的是 logits，softmax 由它自己做。模型最后再加一个 softmax，就做了两次。"
               "第二个 softmax 看到的数都在 0 和 1 之间，所以永远没法肯定：给正确类别的概率最多是 e / (e + C − 1)。全程不报错。"
               "两条曲线都是当场训练的：180 个样本，同样的初始权重。"),
    see=Text("The green curve goes to 0. The red one falls too, and stays above its floor, though the accuracy is nearly as good.",
             "绿线降到接近 0。红线也在降，却停在下限上方；准确率倒差不了多少，所以很难发现。"),
    break_it=Text("Drag the logit of the right class from −4 to 10. Then take 10 classes.",
                  "把正确类别的 logit 从 −4 拖到 10，再换成 10 个类别。"),
    then=Text("Once, the probability goes to 1. Twice, it stops at 0.576 with 3 classes and at 0.232 with 10, however large the logit. "
              "Its gradient is weaker everywhere, and vanishes at both ends: also where the answer is quite wrong. "
              "With 10 classes it also learns far more slowly.",
              "一次 softmax，概率趋于 1。两次，logit 再大也到头了：3 类到 0.576，10 类到 0.232。"
              "它的梯度处处更弱，而且两头都会消失，答得很离谱时也一样。换成 10 个类别，学得也慢得多。"),
    rules=("loss/double-softmax", "loss/logits-as-probabilities", "loss/double-sigmoid", "curve/plateau"),
    knobs=(Slider("logit", Text("Logit of the right class", "正确类别的 logit"), LOGITS, 2.0),
           Slider("classes", Text("Classes C", "类别数 C"), CLASSES, 3.0), seed(2)), compute=compute)
