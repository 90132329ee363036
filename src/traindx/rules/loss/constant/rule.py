"""The loss never changes.

What it is:
The loss is bit-identical from the first steps on, although the learning rate is above 0: it does not depend on anything that
learns, as after a softmax over a dimension of size 1, or its gradient is exactly zero.

Why it is silent:
A constant is a legal loss, and a zero gradient is a legal gradient.

What you see:
The same number in every line of the log, to the last digit.

Look-alikes:
A warm-up whose learning rate is still 0, a margin loss that is satisfied after some training, a run that has converged.

Fix:
Make the loss depend on the model: with one output use a sigmoid and binary cross-entropy, with C classes give C outputs.

Before:
    p = torch.softmax(self.out(h), dim=1)      # out has one unit: p is always 1
After:
    p = torch.sigmoid(self.out(h))

Experiment:
Multiply the learning rate by 10: the loss stays the same to the last digit.

Source:
Arithmetic: exp(z) / exp(z) = 1.
"""
from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.learning import RateSeen
from traindx.core.observed.ops import Op
from traindx.core.observed.program import BackwardCall, LossCall
from traindx.core.recording import Recording
from traindx.core.text import Text, number
from traindx.signals.traces import TrainingTraces

ZH = """损失一直不变

是什么：
学习率大于 0，损失却从最初几步起就逐位相同：它不取决于任何会学习的东西（比如在大小为 1 的维度上做 softmax），或者梯度恰好为零。

为什么不报错：
常数也是合法的损失，零梯度也是合法的梯度。

你会看到：
日志里每一行都是同一个数，直到最后一位。

容易混淆的情况：
学习率还是 0 的预热；训练一段时间之后已经满足的间隔损失；已经收敛的训练。

怎么改：
让损失真正取决于模型：只有一个输出就用 sigmoid 加二元交叉熵，有 C 个类别就给 C 个输出。

改前：
    p = torch.softmax(self.out(h), dim=1)      # out 只有一个单元，p 永远是 1
改后：
    p = torch.sigmoid(self.out(h))

对照实验：
学习率乘以 10：损失直到最后一位都不变。

来源：
算术：exp(z) / exp(z) = 1。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("curve/plateau", "optim/lr-too-low", "init/gradient-vanishing", "loss/initial-loss-off")

STEPS = 20  # equal in a row
SOFTMAXES = frozenset(("softmax", "log_softmax", "softmin"))

CAUSE = Text("The loss is {value} in {count} step{count:|s} in a row, from step {first} on, while the learning rate is {rate}.",
             "从第 {first} 步起，损失连续 {count} 步都是 {value}，而学习率是 {rate}。")
SINGLE = Text(" {op} runs over a dimension of size 1, where it always gives {result}.", "{op} 作用在大小为 1 的维度上，结果永远是 {result}。")
FIX = Text("Find out why the loss does not depend on the parameters; with a single output use a sigmoid and a binary loss.",
           "查清损失为什么和参数无关；只有一个输出时，用 sigmoid 和二元损失。")
EQUAL = Text("steps in a row with the same loss, to the last digit", "损失逐位相同的连续步数")


def check(recording: Recording, backwards: list[BackwardCall], losses: list[LossCall] | None, rates: list[RateSeen] | None,
          traces: TrainingTraces | None) -> Iterator[Finding]:
    series = recording.series.get("loss", [])
    start, count = constant_run([value for _, value in series])
    rate = max((rate.peak for rate in rates or []), default=None)
    idle = any(each.lowest == 0 or each.last == 0 for each in rates or [])
    if count < STEPS or start > 3 or count < 0.5 * len(series) or idle:
        return
    first, value = series[start]
    single = _single_softmax(traces) if traces else None
    call = next((call for call in losses or [] if call.grad), None)
    cause = CAUSE.fill(value=number(value, 6), count=count, first=first, rate=number(rate) if rate is not None else "-")
    if single is not None:
        cause += SINGLE.fill(op=single.name, result="0" if single.name == "log_softmax" else "1")
    sites = [site for site in (single.site if single else None, call.site if call else None, backwards[0].site) if site is not None]
    yield Finding(
        cause=cause, fix=FIX, where=sites[0] if sites else None, also=tuple(dict.fromkeys(sites[1:])),
        evidence=(Evidence(EQUAL, count, Text("1", "1"), step=first),), first_step=first)


def constant_run(values: list[float]) -> tuple[int, int]:
    """Start and length of the longest run of equal finite values."""
    best, start = (0, 0), 0
    for i, value in enumerate(values):
        if i and value != values[i - 1]:
            start = i
        if math.isfinite(value) and i + 1 - start > best[1]:
            best = start, i + 1 - start
    return best


def _single_softmax(traces: TrainingTraces) -> Op | None:
    """A softmax over a dimension of size 1 on the way to the root."""
    for trace in traces.traces:
        for index in sorted(trace.above(trace.root)):
            op = trace.ops[index]
            if op.name in SOFTMAXES and op.shape and (dim := _dim(op)) is not None and op.shape[dim] == 1:
                return op
            if op.name == "cross_entropy" and op.inputs and len(op.inputs[0].shape) > 1 and op.inputs[0].shape[1] == 1:
                return op
    return None


def _dim(op: Op) -> int | None:
    text = (op.scalars or {}).get("dim", (op.scalars or {}).get("1"))
    try:
        dim = int(text) if text is not None else None
    except ValueError:
        return None
    return dim if dim is not None and -len(op.shape) <= dim < len(op.shape) else None
