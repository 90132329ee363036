"""Softmax is applied twice.

What it is:
The model ends with a softmax, and its probabilities go into a loss that applies log-softmax again (``cross_entropy``, a hand-written
loss with ``log_softmax``, or ``Categorical(logits=...)``).

Why it is silent:
Probabilities have the shape and dtype of logits, and the loss still falls. Squeezed into [0, 1], the second softmax can never
become sure: with C classes the loss cannot fall below ln(1 + (C - 1)/e).

What you see:
A loss that stops at a high level (1.46 for ten classes), an accuracy that looks passable, and slow learning.

Look-alikes:
log_softmax followed by nll_loss is right. Soft targets and label smoothing belong in the target, not in the input.
log_softmax followed by cross_entropy is harmless, since log_softmax of log-probabilities changes nothing.

Fix:
Let the model return logits and take the softmax only where probabilities are read.

Before:
    return torch.softmax(self.head(h), dim=1)
After:
    return self.head(h)

Experiment:
Feed the loss log(p) instead of p: if the curve leaves the plateau, the second softmax was the cause.

Source:
PyTorch documentation of CrossEntropyLoss ("input is expected to contain the unnormalized logits"); floor by arithmetic.
"""
from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.core.findings import Confidence, Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.layout import ModulePlaces
from traindx.core.observed.ops import Op, OpTrace
from traindx.core.observed.program import LossCall
from traindx.core.text import EMPTY, Text, number
from traindx.signals.activations import activation, behind, made_where
from traindx.signals.op_graph import PASSING, OpGraph, dim_of, plain_name
from traindx.signals.where import pointing

ZH = """softmax 做了两次

是什么：
模型末尾已经有一次 softmax，输出的概率又送进了内部还会做 log-softmax 的损失（``cross_entropy``、手写的 ``log_softmax`` 损失，或 ``Categorical(logits=...)``）。

为什么不报错：
概率和 logits 的形状、类型都一样，损失也照样往下走。但输入压在 [0, 1] 之间，第二次 softmax 永远不可能「很有把握」：
C 个类别时，损失最低只能到 ln(1 + (C - 1)/e)。

你会看到：
损失停在一个偏高的位置（10 类时是 1.46），准确率看着还行，学得很慢。

容易混淆的情况：
log_softmax 配 nll_loss 是对的。软标签和标签平滑属于目标，不属于输入。log_softmax 之后再用 cross_entropy 没有害处，因为对数概率再做一次 log_softmax 不变。

怎么改：
让模型直接返回 logits，只在需要读概率的地方再做 softmax。

改前：
    return torch.softmax(self.head(h), dim=1)
改后：
    return self.head(h)

对照实验：
把送进损失的 p 换成 log(p)：曲线若离开平台，病因就是多出来的那次 softmax。

来源：
PyTorch CrossEntropyLoss 文档（输入应是未归一化的 logits）；下限由公式算出。
"""
LEVEL = "error"
STEP = 2
EXPLAINS = ("curve/*", "loss/initial-loss-off", "optim/lr-too-low", "loss/logits-as-probabilities", "data/labels-misaligned")
EXPERIMENT = "logits-instead"

CAUSE = Text(
    "{function} applies softmax itself, but its input already went through softmax{where}: the loss cannot fall below {floor}.",
    "{function} 内部自带 softmax，但送进去的输入已经做过一次 softmax{where}：损失最低只能到 {floor}。")
FIX = Text("Pass the logits to {function}: remove the softmax in front of it.", "把 logits 直接交给 {function}：去掉它前面的 softmax。")
ROWS = Text("sum of each row of the loss input", "损失输入每一行的和")
RANGE = Text("range of the loss input", "损失输入的取值范围")
LOGITS = Text("unbounded logits", "没有上下界的 logits")
BY_VALUE = Text("every row is non-negative and sums to 1; the softmax itself was not seen", "每一行都非负且和为 1；没有直接看到那次 softmax")
VALIDATION = Text(" Only the validation loss is computed so; training is right.", "只有验证损失是这样算的，训练没问题。")
HARMLESS_TITLE = Text("log_softmax in front of cross_entropy does nothing", "cross_entropy 前面的 log_softmax 没有作用")
HARMLESS = Text("cross_entropy applies log_softmax itself; a second one changes no value.",
                "cross_entropy 自带 log_softmax；多做一次，数值不变。")
HARMLESS_FIX = Text("Pass the logits to cross_entropy, or use nll_loss here.", "把 logits 直接交给 cross_entropy，或者这里改用 nll_loss。")


def check(losses: list[LossCall] | None, traces: list[OpTrace] | None, places: list[ModulePlaces] | None) -> Iterator[Finding]:
    found = [*_in_calls(losses or []), *_in_traces(traces or [], places or [])]
    loud = sorted(found, key=lambda pair: (not pair[0], pair[1].confidence != "certain"))
    if loud:
        yield loud[0][1]
        return
    yield from _harmless(losses or [])


def _in_calls(losses: list[LossCall]) -> Iterator[tuple[bool, Finding]]:
    """``(in training, finding)`` for torch losses that were given probabilities."""
    calls = [call for call in losses if call.function == "cross_entropy"]
    for call in calls:
        if call.origin == "softmax" and _rows_sum_to_one(call):
            yield call.grad, _of_call(call, "certain")
    by_place: dict[Site | None, list[LossCall]] = {}
    for call in calls:
        by_place.setdefault(call.site, []).append(call)
    for group in by_place.values():
        unknown = [call for call in group if call.origin is None and call.input_std > 1e-6]
        if len(unknown) >= 3 and len(unknown) == len(group) and all(map(_rows_sum_to_one, group)):
            yield group[0].grad, _of_call(group[0], "likely")


def _rows_sum_to_one(call: LossCall) -> bool:
    return (call.row_sum_min is not None and call.row_sum_max is not None and call.input_min >= 0 and _classes(call) > 1
            and abs(call.row_sum_min - 1) < 1e-2 and abs(call.row_sum_max - 1) < 1e-2)


def _classes(call: LossCall) -> int:
    return call.input_shape[call.class_dim or 0] if call.input_shape else 0


def _in_traces(traces: list[OpTrace], places: list[ModulePlaces]) -> Iterator[tuple[bool, Finding]]:
    """The same in hand-written losses, and behind copies and selections of the probabilities."""
    for trace in traces:
        graph = OpGraph(trace)
        training = trace.phase == "train"
        for op in trace.ops:
            first = _softmax_before(graph, op)
            if first is not None and (op.index in graph.in_loss or not training):
                yield training, _of_ops(graph, places, first, op)
                break


def _softmax_before(graph: OpGraph, op: Op) -> Op | None:
    """The softmax whose output this op takes the log-softmax of."""
    if not op.inputs or not _takes_log_softmax(graph, op):
        return None
    came = behind(graph, op.inputs[0], scaled=True)
    if came is None or came[0] != "softmax" or op.inputs[0].shape == () or op.inputs[0].shape[-1:] == (1,):
        return None
    first = came[1]
    given = dim_of(op) if op.name in ("log_softmax", "softmax") and first.shape == op.inputs[0].shape else None
    return first if given is None or given == dim_of(first, given) else None


def _takes_log_softmax(graph: OpGraph, op: Op) -> bool:
    if op.name == "cross_entropy":
        return True
    kind = activation(graph, op)
    if kind == "softmax":  # softmax, and then its logarithm
        return any(plain_name(user) == "log" for user in graph.uses(op, lambda user: user.name in PASSING or plain_name(user) in (
            "add", "clamp", "clamp_min")))
    return kind == "log_softmax"


def _of_call(call: LossCall, confidence: Confidence) -> Finding:
    classes = _classes(call)
    where, also = pointing(call.origin_made_at, call.origin_site, call.site, call.made_at)
    return Finding(
        cause=_cause(call.function, call.origin_site or call.origin_made_at, classes) + (EMPTY if call.grad else VALIDATION),
        fix=FIX.fill(function=call.function), where=where, also=also,
        evidence=(Evidence(ROWS, call.row_sum_max, LOGITS, step=call.step),
                  Evidence(RANGE, f"{number(call.input_min)} .. {number(call.input_max)}", LOGITS, step=call.step)),
        first_step=call.step, confidence=confidence, because=EMPTY if confidence == "certain" else BY_VALUE)


def _of_ops(graph: OpGraph, places: list[ModulePlaces], first: Op, second: Op) -> Finding:
    dim = dim_of(first, -1)
    classes = first.shape[dim if dim is not None else -1]
    name = {"sub": "Categorical(logits=...)"}.get(plain_name(second), second.name)
    where, also = pointing(made_where(places, graph, first), first.site, second.site)
    low, high = number(first.low or 0.0), number(first.high if first.high is not None else 1.0)
    return Finding(
        cause=_cause(name, first.site, classes) + (EMPTY if graph.trace.phase == "train" else VALIDATION), fix=FIX.fill(function=name),
        where=where, also=also,
        evidence=(Evidence(RANGE, f"{low} .. {high}", LOGITS, step=graph.trace.step),), first_step=graph.trace.step)


def _cause(function: str, place: Site | None, classes: int) -> Text:
    shown = Text(f" ({place.short})", f"（{place.short}）") if place else EMPTY
    return CAUSE.fill(function=function, where=shown, floor=number(math.log(1 + (classes - 1) / math.e)))


def _harmless(losses: list[LossCall]) -> Iterator[Finding]:
    for call in losses:
        if call.function == "cross_entropy" and call.origin == "log_softmax" and call.grad:
            where, also = pointing(call.origin_made_at, call.site, call.origin_site)
            yield Finding(cause=HARMLESS, fix=HARMLESS_FIX, where=where, also=also, first_step=call.step, level="note",
                          title=HARMLESS_TITLE)
            return
