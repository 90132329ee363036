"""ReduceLROnPlateau waits for the wrong direction.

What it is:
``ReduceLROnPlateau`` in mode "min" (the default) is fed a score that rises, such as accuracy, or in mode "max" a loss that falls. What
is progress looks like stagnation to it: after each ``patience`` it cuts the learning rate.

Why it is silent:
A number is a number. The scheduler cannot know whether small is good.

What you see:
Everything improves at first, then slows down and freezes: the learning rate has collapsed.

Look-alikes:
A validation loss that rises because of overfitting is a loss all the same; "min" is right for it. A negated score belongs to "min".

Fix:
Say the mode that fits what is fed.

Before:
    scheduler = ReduceLROnPlateau(optimizer, patience=2)
    scheduler.step(accuracy)
After:
    scheduler = ReduceLROnPlateau(optimizer, mode="max", patience=2)
    scheduler.step(accuracy)

Experiment:
Take the scheduler out: the score goes on rising.

Source:
PyTorch documentation of ReduceLROnPlateau. A score is told from a loss by its counts (multiples of 1/n, ratios of small counts), by running
against the validation loss, or by its name where it is fed; at least four values are asked for.
"""
from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from statistics import mean, median

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.program import SchedulerMade
from traindx.core.recording import Recording
from traindx.core.text import Text, number

ZH = """ReduceLROnPlateau 的方向设反了

是什么：
``ReduceLROnPlateau`` 用默认的 "min" 模式，喂进去的却是越高越好的分数（例如准确率）；或用 "max" 模式，喂进去的却是往下走的损失。在它眼里，进步就是停滞：每过 ``patience`` 轮就降一次学习率。

为什么不报错：
数字就是数字，调度器不知道小的好还是大的好。

你会看到：
一开始样样都在变好，然后越来越慢，最后不动了：学习率已经降没了。

容易混淆的情况：
因为过拟合而上升的验证损失仍然是损失，用 "min" 没错。取了负号的分数也该用 "min"。

怎么改：
按喂进去的量选择模式。

改前：
    scheduler = ReduceLROnPlateau(optimizer, patience=2)
    scheduler.step(accuracy)
改后：
    scheduler = ReduceLROnPlateau(optimizer, mode="max", patience=2)
    scheduler.step(accuracy)

对照实验：
去掉调度器：分数继续上升。

来源：
PyTorch 的 ReduceLROnPlateau 文档。分数和损失这样区分：分数是 1/n 的整数倍或两个小整数之比，或与验证损失走向相反，或在调用处就叫分数；至少要有四个值。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/plateau", "optim/lr-zero", "optim/lr-too-low")
EXPERIMENT = "no-scheduler"

RISES = Text("a score that rises", "一个往上走的分数")
FALLS = Text("a loss that falls", "一个往下走的损失")
CAUSE = Text(
    'ReduceLROnPlateau in mode "{mode}" is fed {what} ({first} .. {last}): it takes progress for a plateau and has cut lr from {high} to {low}.',
    'ReduceLROnPlateau 用的是 "{mode}" 模式，喂进去的却是{what}（{first} .. {last}）：它把进步当成停滞，已经把学习率从 {high} 降到 {low}。')
FIX = Text('Build it with mode="{mode}".', '构造时写 mode="{mode}"。')
FED = Text("values that it was fed", "喂进去的值")
RATE = Text("learning rate, first and last", "学习率的初值和末值")
WHY = Text("whether the value is a score or a loss is concluded from its course, or its name", "它是分数还是损失，是从走势或名字推断的")
VALUES_ASKED, LARGEST_COUNT, LARGEST_RATIO = 4, 4096, 512
SCORES = re.compile(r"(^|[^a-z])(acc|accuracy|f1|f1_score|auc|auroc|roc_auc|map|iou|miou|dice|precision|recall|r2|r2_score|mcc|kappa|bleu|psnr|ssim)"
                    r"([^a-z]|$)", re.IGNORECASE)
LOSSES = re.compile(r"loss|err|mse|mae|nll|perplexity|1(\.0?)? *-|\( *-", re.IGNORECASE)  # of the argument too, which may turn a score around


def check(schedulers: list[SchedulerMade], recording: Recording) -> Iterator[Finding]:
    rates = [value for _, value in recording.series.get("lr", [])]
    losses = [value for _, value in recording.series.get("loss", [])]
    validation = [value for _, value in recording.series.get("val_loss", [])]
    if not rates or rates[-1] >= 0.999 * max(rates):
        return
    falls = _falls(losses)
    for made in schedulers:
        if len(made.fed) < VALUES_ASKED or not all(map(math.isfinite, made.fed)):
            continue
        if made.mode == "min" and rises_at_once(made.fed) and (
                (is_called_a_score(made.call_site) and (falls or _shares(made.fed))) or (falls and is_score(made.fed, validation))):
            yield _finding(made, RISES, "max", rates)
        elif made.mode == "max" and falls and rises_at_once([-value for value in made.fed]) and is_loss(made.fed, validation, losses):
            yield _finding(made, FALLS, "min", rates)


def _falls(losses: Sequence[float]) -> bool:
    tenth = max(1, len(losses) // 10)
    return len(losses) >= 2 * tenth and median(losses[-tenth:]) < 0.9 * median(losses[:tenth])


def _shares(values: Sequence[float]) -> bool:
    """All within 0 .. 1: told by its name, such a score needs no loss beside it that fell (the rate may be gone before it could)."""
    return min(values) >= 0 and max(values) <= 1


def rises_at_once(values: Sequence[float]) -> bool:
    """The least value is among the first ones, and the last quarter lies above the first."""
    quarter = max(1, len(values) // 4)
    least = min(range(len(values)), key=values.__getitem__)
    return least <= max(1, len(values) // 5) and mean(values[-quarter:]) > mean(values[:quarter])


def is_score(values: Sequence[float], validation: Sequence[float]) -> bool:
    """Counts divided by their number; or within [0, 100], and running against the validation loss."""
    if min(values) < 0 or max(values) > 100 or matches(values, validation):
        return False
    return counted(values) or ratios(values) or (len(validation) >= VALUES_ASKED and agreement(values, validation) < -0.5)


def is_called_a_score(call: Site | None) -> bool:
    """What the program calls it, where it is fed: ``plateau.step(f1)``."""
    argument = call.code.partition(".step(")[2] if call else ""
    return SCORES.search(argument) is not None and not LOSSES.search("(" + argument)


def is_loss(values: Sequence[float], validation: Sequence[float], losses: Sequence[float]) -> bool:
    if counted(values) or min(values) < 0:
        return False
    return matches(values, validation) or matches(values, losses) or agreement(values, losses) > 0.5


def matches(values: Sequence[float], losses: Sequence[float]) -> bool:
    """Most values are found among these losses (a tenth off, for means are taken in several ways)."""
    near = sum(any(abs(value - loss) <= 0.1 * abs(loss) for loss in losses) for value in values)
    return near >= 0.6 * len(values) and agreement(values, losses) > 0


def counted(values: Sequence[float]) -> bool:
    """Whether all are multiples of one 1/n (or 100/n), n up to 4096, and not so by chance."""
    top = 100.0 if max(values) > 1.0 + 1e-6 else 1.0
    different = {round(value / top, 9) for value in values}
    if len(different) < 3:
        return False
    return any(all(abs(value * n - round(value * n)) < 1e-6 * n + 1e-5 for value in different) for n in range(4, LARGEST_COUNT + 1)
               if (2e-6 * n + 2e-5) ** len(different) * n < 1e-4)


def ratios(values: Sequence[float]) -> bool:
    """Whether all are ratios of small counts, each of its own (F1, precision, IoU of objects); four of them are not so by chance, 1e-7."""
    different = {value for value in values if 0 < value < 1}
    rounded = all(abs(value * 1e4 - round(value * 1e4)) < 1e-2 for value in different)
    return len(different) >= VALUES_ASKED and max(values) <= 1 and not rounded and all(
        abs(Fraction(value).limit_denominator(LARGEST_RATIO) - Fraction(value)) < 1e-7 for value in different)


def agreement(values: Sequence[float], others: Sequence[float]) -> float:
    """Rank correlation of two courses, the longer one averaged down to the shorter one's length; -1 .. 1."""
    count = min(len(values), len(others))
    if count < 3:
        return 0.0
    a, b = (_ranks([mean(each[i * len(each) // count:(i + 1) * len(each) // count]) for i in range(count)])
            for each in (values, others))
    middle = (count - 1) / 2
    spread = sum((rank - middle) ** 2 for rank in range(count))
    return sum((x - middle) * (y - middle) for x, y in zip(a, b)) / spread


def _ranks(values: list[float]) -> list[int]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0] * len(values)
    for rank, index in enumerate(order):
        ranks[index] = rank
    return ranks


def _finding(made: SchedulerMade, what: Text, mode: str, rates: list[float]) -> Finding:
    first, last = number(made.fed[0]), number(made.fed[-1])
    return Finding(
        cause=CAUSE.fill(mode=made.mode, what=what, first=first, last=last, high=number(max(rates)), low=number(rates[-1])),
        fix=FIX.fill(mode=mode),
        where=made.site,
        also=(made.call_site,) if made.call_site else (),
        evidence=(Evidence(FED, f"{first} .. {last}"), Evidence(RATE, f"{number(max(rates))} .. {number(rates[-1])}")),
        confidence="likely",
        because=WHY)
