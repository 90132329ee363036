"""Sigmoid is applied twice.

What it is:
The model ends with a sigmoid, and its probabilities go into a loss that applies sigmoid again (``binary_cross_entropy_with_logits``, or
a hand-written loss with ``sigmoid`` or ``logsigmoid``, as focal losses have).

Why it is silent:
Probabilities have the shape and dtype of logits. Squeezed into (0, 1), the second sigmoid can only answer between 0.5 and 0.73: no sample
can be called negative.

What you see:
A loss that stays near ln 2 = 0.69, masks or labels that are all on or all off.

Look-alikes:
A gate inside a network is a sigmoid of something computed, not of a sigmoid. sigmoid followed by ``binary_cross_entropy`` is right.

Fix:
Let the model return logits and take the sigmoid only where probabilities are read.

Before:
    return torch.sigmoid(self.mask(h))
After:
    return self.mask(h)

Experiment:
Feed the loss logit(p) instead of p: if the loss falls below ln 2, the second sigmoid was the cause.

Source:
PyTorch documentation of BCEWithLogitsLoss ("combines a Sigmoid layer and the BCELoss in one single class"); bounds by arithmetic.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.layout import ModulePlaces
from traindx.core.observed.ops import Op, OpTrace
from traindx.core.observed.program import LossCall
from traindx.core.text import EMPTY, Text, number
from traindx.signals.activations import activation, behind, made_where
from traindx.signals.op_graph import PASSING, OpGraph, plain_name
from traindx.signals.where import pointing

ZH = """sigmoid 做了两次

是什么：
模型末尾已经有一次 sigmoid，输出的概率又送进了内部还会做 sigmoid 的损失（``binary_cross_entropy_with_logits``，或手写的、带 ``sigmoid`` 或
``logsigmoid`` 的损失，比如 focal loss）。

为什么不报错：
概率和 logits 的形状、类型都一样。输入压在 (0, 1) 之间，第二次 sigmoid 的结果只能落在 0.5 到 0.73：没有一个样本能判成负类。

你会看到：
损失停在 ln 2 = 0.69 附近，掩码或标签要么全开，要么全关。

容易混淆的情况：
网络内部的门控，是对算出来的量做 sigmoid，不是对 sigmoid 的结果再做一次。sigmoid 配 ``binary_cross_entropy`` 是对的。

怎么改：
让模型直接返回 logits，只在需要读概率的地方再做 sigmoid。

改前：
    return torch.sigmoid(self.mask(h))
改后：
    return self.mask(h)

对照实验：
把送进损失的 p 换成 logit(p)：损失若降到 ln 2 以下，病因就是多出来的那次 sigmoid。

来源：
PyTorch BCEWithLogitsLoss 文档（它把 Sigmoid 层和 BCELoss 合成了一个类）；上下界由算术得出。
"""
LEVEL = "error"
STEP = 2
EXPLAINS = ("curve/*", "loss/initial-loss-off", "optim/lr-too-low", "data/class-imbalance", "data/labels-misaligned", "init/saturated",
            "init/bottleneck-zero")
EXPERIMENT = "logits-instead"

CAUSE = Text(
    "{function} applies sigmoid itself, but its input already went through sigmoid{where}: its probabilities stay between 0.5 and 0.73.",
    "{function} 内部自带 sigmoid，但送进去的输入已经做过一次 sigmoid{where}：它得到的概率只能落在 0.5 到 0.73 之间。")
FIX = Text("Pass the logits to {function}: remove the sigmoid in front of it.", "把 logits 直接交给 {function}：去掉它前面的 sigmoid。")
RANGE = Text("range of the loss input", "损失输入的取值范围")
LOGITS = Text("logits of either sign", "有正有负的 logits")
VALIDATION = Text(" Only the validation loss is computed so; training is right.", "只有验证损失是这样算的，训练没问题。")
TAKES_LOGITS = ("binary_cross_entropy_with_logits", "multilabel_soft_margin_loss", "soft_margin_loss")


def check(losses: list[LossCall] | None, traces: list[OpTrace] | None, places: list[ModulePlaces] | None) -> Iterator[Finding]:
    found = [*_in_calls(losses or []), *_in_traces(traces or [], places or [])]
    found.sort(key=lambda pair: not pair[0])
    if found:
        yield found[0][1]


def _in_calls(losses: list[LossCall]) -> Iterator[tuple[bool, Finding]]:
    """``(in training, finding)`` for torch losses that were given probabilities."""
    for call in losses:
        if call.function in TAKES_LOGITS and call.origin == "sigmoid" and 0 <= call.input_min <= call.input_max <= 1:
            where, also = pointing(call.origin_made_at, call.origin_site, call.site, call.made_at)
            span = f"{number(call.input_min)} .. {number(call.input_max)}"
            yield call.grad, Finding(
                cause=_cause(call.function, call.origin_site.short if call.origin_site else "", call.grad),
                fix=FIX.fill(function=call.function), where=where, also=also,
                evidence=(Evidence(RANGE, span, LOGITS, step=call.step),), first_step=call.step)


def _in_traces(traces: list[OpTrace], places: list[ModulePlaces]) -> Iterator[tuple[bool, Finding]]:
    """The same in hand-written losses, and behind copies and selections of the probabilities."""
    for trace in traces:
        graph = OpGraph(trace)
        training = trace.phase == "train"
        for op in trace.ops:
            if not op.inputs or not takes_sigmoid(graph, op) or not (op.index in graph.in_loss or not training):
                continue
            came = behind(graph, op.inputs[0])
            if came is not None and came[0] == "sigmoid":
                yield training, _of_ops(graph, places, came[1], op)
                break


def takes_sigmoid(graph: OpGraph, op: Op) -> bool:
    """A loss with logits, a sigmoid or logsigmoid, or softplus(x), which is -logsigmoid(-x)."""
    name = plain_name(op)
    if name in TAKES_LOGITS or activation(graph, op) in ("sigmoid", "logsigmoid"):
        return True
    if name == "softplus":  # as a loss, not as a layer: nothing but arithmetic follows
        return op.requires_grad and all(plain_name(user) in ("add", "sub", "mul", "neg", "mean", "sum", "rsub", "div")
                                        for user in graph.uses(op, lambda user: user.name in PASSING))
    return False


def _of_ops(graph: OpGraph, places: list[ModulePlaces], first: Op, second: Op) -> Finding:
    training = graph.trace.phase == "train"
    name = second.name if second.name in TAKES_LOGITS else activation(graph, second) or second.name
    where, also = pointing(made_where(places, graph, first), first.site, second.site)
    span = f"{number(first.low or 0.0)} .. {number(first.high if first.high is not None else 1.0)}"
    return Finding(
        cause=_cause(name, first.site.short if first.site else "", training), fix=FIX.fill(function=name), where=where, also=also,
        evidence=(Evidence(RANGE, span, LOGITS, step=graph.trace.step),), first_step=graph.trace.step)


def _cause(function: str, place: str, training: bool) -> Text:
    shown = Text(f" ({place})", f"（{place}）") if place else EMPTY
    return CAUSE.fill(function=function, where=shown) + (EMPTY if training else VALIDATION)
