"""Normalisation leak: whose mean and deviation? A linear classifier, and validation data that have drifted."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import softplus

from traindx.core.text import Text, number
from traindx.figures import Axis, Chart, Mark, Role, Series
from traindx.labs.lab import Choice, Lab, Level, Outcome, Slider, State, Table, grid, seed
from traindx.labs.nets import copies_of, descend, dice, forward, mlp, normal

TRAIN, HELD, ONLINE, SHOWN = 120, 600, 2000, 60  # samples, half of each class
SCALES = (1.0, 30.0)  # two features of quite different width
CENTRES = (1.0, 0.6)  # the classes lie at ± these, in widths
SHIFTS = grid(0, 2, 9)
STEPS, RATE = 100, 1.0
WAYS = (("train", Text("training set only", "只用训练集")),
        ("together", Text("training + validation together", "训练集 + 验证集一起")),
        ("own", Text("each set its own", "各用各的")))
PROMISED = 8.0  # a validation score this many points above what comes online has promised too much (rule of thumb)


@dataclass(frozen=True)
class Result:
    """Accuracies in per cent; what was subtracted and divided by; the first of the validation set as the classifier sees it,
    and its boundary."""

    validation: float
    online: float
    mean: tuple[float, ...]
    deviation: tuple[float, ...]
    seen: tuple[tuple[float, float], ...]
    line: tuple[float, float, float]  # w1, w2, b: the boundary is w1 x1 + w2 x2 + b = 0


def draw(chance: torch.Generator, count: int) -> tuple[Tensor, Tensor]:
    """Two Gaussian classes [count, 2], and their labels ±1 [count, 1]."""
    labels = 1.0 - 2 * (torch.arange(count, dtype=torch.float64)[:, None] % 2)
    centres, scales = (torch.tensor(each, dtype=torch.float64) for each in (CENTRES, SCALES))
    return (labels * centres + normal(chance, count, 2)) * scales, labels


@cache
def results(number_of_seed: int) -> dict[tuple[float, str], Result]:
    """All shifts and ways, trained side by side from the same weights."""
    chance = dice(number_of_seed)
    (train, labels), (held, held_labels), (online, online_labels) = (draw(chance, count) for count in (TRAIN, HELD, ONLINE))
    settings = [(shift, way) for shift in SHIFTS for way, _ in WAYS]
    drift = torch.tensor([shift for shift, _ in settings], dtype=torch.float64)[:, None, None] * torch.tensor(SCALES, dtype=torch.float64)
    moved, later = held + drift, online + drift  # what comes online has drifted as the validation set has
    fitted = [_statistics(train, each, way) for each, (_, way) in zip(moved, settings)]
    (mean, deviation), (held_mean, held_deviation) = (tuple(map(torch.stack, zip(*pairs))) for pairs in zip(*fitted))
    nets = copies_of(mlp((2, 1), [chance]), len(settings))
    descend(nets, lambda net, _: softplus(-labels * forward(net, (train - mean) / deviation)).mean((1, 2)), STEPS,
            torch.full((len(settings),), RATE, dtype=torch.float64))
    seen = (moved - held_mean) / held_deviation
    validation = _accuracy(forward(nets, seen), held_labels)
    shipped = _accuracy(forward(nets, (later - mean) / deviation), online_labels)  # online there is one sample at a time, no set
    return {setting: Result(validation[k], shipped[k], tuple(held_mean[k, 0].tolist()), tuple(held_deviation[k, 0].tolist()),
                            tuple(map(tuple, seen[k, :SHOWN].tolist())), (*nets[0][k, :, 0].tolist(), nets[1][k].item()))
            for k, setting in enumerate(settings)}


def _statistics(train: Tensor, held: Tensor, way: str) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Mean and deviation for the training set (they are shipped with the model), and for the validation set, [1, 2] each."""
    mine = _moments(torch.cat([train, held]) if way == "together" else train)
    return mine, _moments(held) if way == "own" else mine


def _moments(rows: Tensor) -> tuple[Tensor, Tensor]:
    return rows.mean(0, keepdim=True), rows.std(0, correction=0, keepdim=True)


def _accuracy(outputs: Tensor, labels: Tensor) -> list[float]:
    return (100 * (outputs.detach() * labels > 0).double().mean((1, 2))).tolist()


def compute(state: State) -> Outcome:
    shift, way, found = float(state["shift"]), str(state["way"]), results(int(state["seed"]))
    here = found[shift, way]
    gap = here.validation - here.online
    verdict = Text("Statistics from {way}, data shifted by {shift} σ: validation says {validation} %, online it is {online} % (measured). ",
                   "统计量来源：{way}；偏移 {shift} σ。验证集报 {validation} %，上线后是 {online} %（实测）。")
    verdict = verdict.fill(way=dict(WAYS)[way], shift=number(shift), validation=number(here.validation), online=number(here.online))
    lies = way != "train" and gap > PROMISED
    level: Level = "error" if lies else "warning" if way != "train" else "fine"
    if lies:
        comment = LIES.fill(gap=number(gap, 2))
    else:
        comment = HONEST if way == "train" else HARMLESS.fill(change=number(abs(here.validation - found[shift, "train"].validation), 2))
    return Outcome(verdict + comment, level, (_scores(shift, way, found), _seen(here)), (_table(shift, found),))


LIES = Text("The score promises {gap} point{gap:|s} too much: normalised by itself, the validation set no longer shows that it has drifted.",
            "分数虚高了 {gap} 个点：验证集用自己的统计量归一化，偏移就看不出来了。")
HONEST = Text("Low or high, this score is honest: the model meets the same drift in both.",
              "分数高也好低也好，都是老实的：两边遇到的是同样的偏移。")
HARMLESS = Text("It is a leak all the same, though here it moves the score by {change} point{change:|s} only: a linear model undoes any "
                "rescaling that all data share. Do not count on it: with other models, few samples or drift it shows.",
                "这仍然是泄漏，只是在这里分数只动了 {change} 个点：所有数据做同一种缩放，线性模型自己就能抵消。"
                "别指望总这样：换个模型、样本少、或者分布在变，就会露出来。")


def _scores(shift: float, way: str, found: dict[tuple[float, str], Result]) -> Chart:
    curves = [Series(Text("validation", "验证集"), SHIFTS, [found[each, way].validation for each in SHIFTS], "main", "line+points"),
              Series(Text("online", "上线后"), SHIFTS, [found[each, way].online for each in SHIFTS], "bad", "line+points")]
    return Chart(Text("What validation says, and what comes", "验证集说的，和上线后的"),
                 Axis(Text("shift, in widths σ of a feature", "偏移，以特征的宽度 σ 计")),
                 Axis(Text("accuracy, %", "准确率，%"), range=(40, 102)), tuple(curves),
                 (Mark("x", shift, Text("shift {shift}", "偏移 {shift}").fill(shift=number(shift)), "other", knob="shift"),
                  Mark("y", 50.0, Text("guessing", "瞎猜"))))


def _seen(here: Result) -> Chart:
    first, second, offset = here.line
    ends = (-3.0, 5.0)
    boundary = [-(first * x + offset) / second for x in ends]
    classes: tuple[tuple[Text, Role], ...] = ((Text("class +1", "类别 +1"), "main"), (Text("class −1", "类别 −1"), "other"))
    points = [Series(name, [x for x, _ in here.seen[start::2]], [y for _, y in here.seen[start::2]], role, "points")
              for start, (name, role) in enumerate(classes)]
    return Chart(Text("The validation set as the classifier sees it", "分类器眼里的验证集"),
                 Axis(Text("feature 1, normalised", "特征 1（归一化后）"), range=ends),
                 Axis(Text("feature 2, normalised", "特征 2（归一化后）"), range=ends),
                 (*points, Series(Text("boundary", "分界线"), ends, boundary, "muted", dashed=True)))


def _table(shift: float, found: dict[tuple[float, str], Result]) -> Table:
    rows = tuple((name, ", ".join(map(number, result.mean)), ", ".join(map(number, result.deviation)), number(result.validation),
                  number(result.online)) for way, name in WAYS for result in [found[shift, way]])
    return Table((Text("statistics from", "统计量来自"), Text("μ for the validation set", "验证集用的 μ"), Text("σ for it", "验证集用的 σ"),
                  Text("validation, %", "验证集，%"), Text("online, %", "上线后，%")), rows,
                 Text("The three ways at this shift.", "这个偏移下的三种做法。"))


LAB = Lab(
    5, "normalisation_leak", Text("Whose mean and deviation?", "归一化用了谁的 μ 和 σ？"),
    about=Text("A linear classifier learns two classes from 120 samples. The validation set has drifted, and what comes online later "
               "has drifted in the same way. Only one thing changes: from which data the mean μ and deviation σ are taken. Online, samples come "
               "one at a time, so there the numbers that were shipped with the model are used.",
               "一个线性分类器，用 120 个样本学两个类别。验证集的分布偏移了，以后上线的数据也同样偏移。"
               "只改一件事：μ 和 σ 从哪批数据上算。上线时样本一个一个来，只能用随模型带去的那份统计量。"),
    see=Text("With statistics from the training set the two curves lie together: validation says what will come.",
             "统计量只来自训练集时，两条曲线贴在一起：验证集说多少，上线就是多少。"),
    break_it=Text("Take the shift to 2. Then let each set use its own statistics, and then both together.",
                  "把偏移拖到 2。先选「各用各的」，再选「训练集 + 验证集一起」。"),
    then=Text("With its own statistics the validation set looks as if it had never drifted: a fine score, and a crash online. "
              "With both together hardly anything is seen here, and that is told as it is: a leak need not show to be one.",
              "各用各的时，验证集看上去像没偏移过：分数漂亮，一上线就掉。两个集合一起算时，这里几乎看不出差别——照实说：泄漏不一定会露出来。"),
    rules=("data/normalised-on-everything", "data/normalised-differently", "data/not-normalised"),
    knobs=(Slider("shift", Text("Shift of the validation data", "验证数据的偏移"), SHIFTS, 0.0, Text("σ", "σ")),
           Choice("way", Text("Statistics from", "统计量来自"), WAYS, "train"), seed(2)), compute=compute)
