"""The regression target is far from the scale of the output.

What it is:
A fresh net gives values around 0; the target lies in the thousands, or in the millionths, and is passed to the loss as it is.

Why it is silent:
The loss is finite and falls, only so slowly that the run ends long before the output has reached the target.

What you see:
Losses of 1e8 or of 1e-8, gradients to match, and guesses that are still nowhere near the target at the end.

Look-alikes:
Targets that are scaled back by the model's last layer, targets in the hundreds that the net reaches all the same, value targets of
reinforcement learning that move as the policy gets better.

Fix:
Train on (y - mean) / std with the training part's statistics, and scale predictions back.

Before:
    loss = mse(model(x), price)
After:
    loss = mse(model(x), (price - mean) / std)

Experiment:
Standardise the target: the explained share of its variance rises within the same number of steps.

Source:
Bishop, Neural Networks for Pattern Recognition (1995), section 8.2. Limits (100 and 1e-3 in size): rule of thumb.
"""
from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.ops import Op, OpTrace
from traindx.core.observed.program import LossCall
from traindx.core.text import Text, number
from traindx.signals.feeding import Progress, sites

ZH = """回归目标和输出的尺度相差太远

是什么：
刚初始化的网络输出在 0 附近，目标却是几千几万，或百万分之几，原样送进了损失。

为什么不报错：
损失有限，也在下降，只是太慢：训练结束时，输出离目标还很远。

你会看到：
损失是 1e8 或 1e-8，梯度也一样大或一样小；到最后预测还差得很远。

容易混淆的情况：
模型最后一层已经把尺度换算回去的；目标虽有几百但网络照样够得着的；强化学习里随策略变化的价值目标，都不算。

怎么改：
用训练部分的统计量，在 (y - mean) / std 上训练，预测时再换算回去。

改前：
    loss = mse(model(x), price)
改后：
    loss = mse(model(x), (price - mean) / std)

对照实验：
把目标标准化：同样步数内，能解释的方差比例会上升。

来源：
Bishop，Neural Networks for Pattern Recognition（1995）8.2 节。阈值（大小 100 和 1e-3）为经验值。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("curve/*", "optim/lr-too-low", "optim/lr-too-high", "optim/clip-always", "numeric/gradient-explosion", "loss/initial-loss-off",
            "init/dead-units", "numeric/nonfinite")
EXPERIMENT = "standardise-target"

FUNCTIONS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
LARGE, SMALL = 100.0, 1e-3

CAUSE = Text("The target has mean {mean} and standard deviation {std}, the first predictions have {guess_mean} and {guess_std}; at the end "
             "the loss is still {last}, where always guessing the mean gives {chance}.",
             "目标的均值是 {mean}，标准差是 {std}；最初的预测却是 {guess_mean} 和 {guess_std}。到最后，损失仍有 {last}；一直猜均值，也有 "
             "{chance}。")
FIX = Text("Standardise the target with the training part's mean and standard deviation; scale predictions back.",
           "用训练部分的均值和标准差，把目标标准化；预测时再换算回去。")
TARGET = Text("target (mean, standard deviation)", "目标（均值、标准差）")
GUESS = Text("first predictions (mean, standard deviation)", "最初的预测（均值、标准差）")
ONE = Text("0 and 1", "0 和 1")
LAST = Text("loss at the end", "结束时的损失")
BELOW = Text("well below {chance}", "远低于 {chance}")


def check(losses: list[LossCall] | None, traces: list[OpTrace] | None, progress: Progress) -> Iterator[Finding]:
    calls = [call for call in losses or [] if call.grad and call.function in FUNCTIONS and call.reduction == "mean"]
    for site in {id(call.site): call.site for call in calls}.values():
        mine = [call for call in calls if call.site == site and call.target_std is not None]
        if mine and (found := _from_calls(mine)) is not None:
            yield found
    if not losses:
        yield from _by_hand(traces or [], progress)


def _from_calls(calls: list[LossCall]) -> Finding | None:
    first, last = calls[0], calls[-3:]
    mean, std = first.target_mean or 0.0, first.target_std or 0.0
    if not _off_scale(mean, std) or _moves(first, calls[-1]) or not _unreached(first):
        return None
    value = sum(call.value for call in last if call.value is not None) / len(last)
    spread = sum(call.target_std or 0.0 for call in last) / len(last)
    chance = spread ** 2 if first.function == "mse_loss" else spread
    if first.step > 8 or not math.isfinite(value) or len(calls) < 6 or value < 0.5 * chance:
        return None
    guess = (first.input_mean, first.input_std)
    return _finding(mean, std, guess, value, chance, sites(first.site, first.made_at))


def _off_scale(mean: float, std: float) -> bool:
    size = math.hypot(mean, std)
    return abs(mean) > LARGE or std > LARGE or 0 < size < SMALL


def _moves(first: LossCall, last: LossCall) -> bool:
    """A target that drifts far is not data."""
    a, b = first.target_mean or 0.0, last.target_mean or 0.0
    return abs(b - a) > (first.target_std or 0.0) * 1.5 + 0.3 * abs(a)


def _unreached(first: LossCall) -> bool:
    """The output starts on another scale than the target."""
    target = math.hypot(first.target_mean or 0.0, first.target_std or 0.0)
    guess = math.hypot(first.input_mean, first.input_std)
    return guess < 0.2 * target or guess > 20 * target


def _by_hand(traces: list[OpTrace], progress: Progress) -> Iterator[Finding]:
    """Squares written out: (prediction - target) ** 2, reduced into the backward root."""
    for trace in traces:
        if trace.phase != "train" or trace.root < 0:
            continue
        for op in trace.ops:
            low, high = _target_range(trace.ops, op)
            if low is None or high is None or not _squared(trace.ops, op.index):
                continue
            mean, std = (low + high) / 2, (high - low) / 4
            if _off_scale(mean, std) and max(abs(low), abs(high)) > LARGE and progress.last > max(0.5 * std ** 2, 0.3 * progress.first):
                yield _finding(mean, std, (0.0, 0.0), progress.last, std ** 2, sites(op.site))
                return
        return


def _target_range(ops: tuple[Op, ...], op: Op) -> tuple[float | None, float | None]:
    """The range of the data operand of a subtraction whose other operand is a prediction far smaller."""
    if op.name not in ("sub", "__sub__", "rsub", "__rsub__") or len(op.inputs) != 2 or op.low is None or op.high is None:
        return None, None
    outside = [each for each in op.inputs if not each.requires_grad]
    made = [ops[each.op] for each in op.inputs if each.requires_grad and each.op >= 0]
    if len(outside) != 1 or len(made) != 1 or made[0].low is None or made[0].high is None:
        return None, None
    size = max(abs(op.low), abs(op.high))
    if max(abs(made[0].low), abs(made[0].high)) > 0.1 * size:
        return None, None
    return (-op.high, -op.low) if op.inputs[0].requires_grad else (op.low, op.high)


def _squared(ops: tuple[Op, ...], index: int) -> bool:
    users = [op for op in ops if any(each.op == index for each in op.inputs)]
    return any(op.name in ("pow", "__pow__", "square") or (op.name in ("mul", "__mul__") and all(each.op == index for each in op.inputs))
               for op in users)


def _finding(mean: float, std: float, guess: tuple[float, float], last: float, chance: float, places: tuple[Site, ...]) -> Finding:
    return Finding(
        cause=CAUSE.fill(mean=number(mean), std=number(std), guess_mean=number(guess[0]), guess_std=number(guess[1]), last=number(last),
                         chance=number(chance)), fix=FIX, where=places[0] if places else None, also=places[1:],
        evidence=(Evidence(TARGET, f"{number(mean)}, {number(std)}", ONE), Evidence(GUESS, f"{number(guess[0])}, {number(guess[1])}"),
                  Evidence(LAST, float(number(last)), BELOW.fill(chance=number(chance)))))
