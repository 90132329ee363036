"""Raw scores are used where (log-)probabilities belong.

What it is:
``nll_loss`` only picks the number that stands at the label: it wants log-probabilities. Raw scores, or probabilities without their logarithm,
make it a loss without a floor. The same holds for ``kl_div``; and for a hand-written log(clamp(x)) of unbounded scores, whose clamp hides
that they are no probabilities; and for teacher scores used as soft targets.

Why it is silent:
Shapes and types fit. Nothing checks that rows sum to one.

What you see:
A negative loss that keeps falling while accuracy does not follow, or a loss that is flat wherever the clamp holds.

Look-alikes:
log_softmax in front of nll_loss is right. A clamp at 1e-7 in front of log, on values that are probabilities, is only a guard.

Fix:
Use ``cross_entropy`` on the scores, or put log_softmax in front.

Before:
    F.nll_loss(model(x), y)
After:
    F.cross_entropy(model(x), y)

Experiment:
Put log_softmax in front of the loss: if the loss stays positive and accuracy rises, this was the cause.

Source:
PyTorch documentation of NLLLoss ("input ... is expected to contain log-probabilities") and KLDivLoss.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.ops import Op, OpTrace
from traindx.core.observed.program import LossCall
from traindx.core.text import Text, number
from traindx.signals.op_graph import PASSING, OpGraph, plain_name
from traindx.signals.where import pointing

ZH = """把原始分数当成了（对数）概率

是什么：
``nll_loss`` 只取标签位置上的那个数，它要的是对数概率。给它原始分数，或者没取对数的概率，损失就没有下限。``kl_div`` 也一样；
手写的 log(clamp(x)) 也一样：x 是没有上下界的分数，clamp 只是掩盖了它不是概率；把教师的原始分数当软标签也一样。

为什么不报错：
形状和类型都对得上，没有谁检查每一行的和是不是 1。

你会看到：
损失是负的，还一路往下走，准确率却没跟上；或者 clamp 起作用的地方损失不动。

容易混淆的情况：
nll_loss 前面有 log_softmax 是对的。对本来就是概率的值，log 之前 clamp 到 1e-7 只是保险。

怎么改：
直接对分数用 ``cross_entropy``，或者在前面加上 log_softmax。

改前：
    F.nll_loss(model(x), y)
改后：
    F.cross_entropy(model(x), y)

对照实验：
在损失前面加上 log_softmax：损失若一直为正、准确率上升，病因就是它。

来源：
PyTorch NLLLoss 文档（输入应是对数概率）和 KLDivLoss 文档。
"""
LEVEL = "error"
STEP = 2
EXPLAINS = ("curve/*", "loss/initial-loss-off", "numeric/gradient-explosion", "init/dead-units", "optim/lr-too-high", "loss/wrong-direction",
            "loss/unscaled-target", "numeric/nonfinite", "optim/clip-always", "data/labels-misaligned", "numeric/unstable-op")
EXPERIMENT = "log-softmax-first"

NLL = Text("{function} expects log-probabilities, but its input is {what}.", "{function} 要的是对数概率，送进去的却是{what}。")
SCORES = Text("raw scores: the exponentials of a row sum to {total}, not to 1", "原始分数：每行取指数再求和，得 {total}，不是 1")
PROBABILITIES = Text("probabilities, without their logarithm", "没有取对数的概率")
POSITIVE = Text("positive in places (up to {high})", "有正数（最大 {high}）")
CLAMPED = Text("log is taken of clamped scores: before the clamp they ran from {low} to {high}, so they are no probabilities, and where the "
               "clamp holds there is no gradient.",
               "这里对截断过的分数取 log：截断之前它们在 {low} 到 {high} 之间，并不是概率；截断起作用的地方没有梯度。")
TARGET = Text("cross_entropy takes a float target as probabilities, but this one goes down to {low}: these are scores.",
              "cross_entropy 把浮点目标当作概率，但这里的目标最小是 {low}：它们是原始分数。")
FIX = Text("Use cross_entropy on the scores, or put log_softmax in front of {function}.",
           "直接对分数用 cross_entropy，或者在 {function} 前面加上 log_softmax。")
FIX_CLAMP = Text("Use a loss on logits (binary_cross_entropy_with_logits, cross_entropy), or sigmoid / softmax first.",
                 "改用接收 logits 的损失（binary_cross_entropy_with_logits、cross_entropy），或者先做 sigmoid / softmax。")
FIX_TARGET = Text("Put a softmax on the target.", "先对目标做 softmax。")
SUM = Text("largest |ln of the sum of exponentials| of a row of the input", "输入各行「指数之和的对数」的最大绝对值")
RANGE = Text("range of the values", "取值范围")
ZERO = Text("0 for log-probabilities", "对数概率是 0")
UNIT = Text("within 0 .. 1", "在 0 到 1 之间")
TOLERANCE = 0.05  # in nats; rounding in half precision stays below
ENOUGH_CALLS = 2


def check(losses: list[LossCall] | None, traces: list[OpTrace] | None) -> Iterator[Finding]:
    graphs = [OpGraph(trace) for trace in traces or []]
    for finding in (*_in_calls(losses or [], graphs), *_clamped(graphs)):
        yield finding
        return


def _in_calls(losses: list[LossCall], graphs: list[OpGraph]) -> Iterator[Finding]:
    by_place: dict[tuple[Site | None, str], list[LossCall]] = {}
    for call in losses:
        if call.grad:
            by_place.setdefault((call.site, call.function), []).append(call)
    for (_, function), calls in by_place.items():
        call = calls[0]
        if function in ("nll_loss", "kl_div") and len(calls) >= min(ENOUGH_CALLS, len(losses)) and all(map(not_log_probabilities, calls)):
            if not any(_normalised_elsewhere(graph, call) for graph in graphs):
                yield _of_call(call)
        elif function == "cross_entropy" and all(map(_scores_as_target, calls)):
            yield Finding(cause=TARGET.fill(low=number(call.target_min or 0.0)), fix=FIX_TARGET, where=call.site, first_step=call.step,
                          evidence=(Evidence(RANGE, number(call.target_min or 0.0), UNIT, step=call.step),))


def not_log_probabilities(call: LossCall) -> bool:
    """Some value is positive, or no row's exponentials sum to one (kl_div may leave out parts of a distribution: only the first)."""
    if call.origin in ("log_softmax", "logsigmoid") or call.row_logsumexp is None or (weight := call.weight_in_root) == 0:
        return False
    if weight is not None and weight < 0:
        return False  # a term that is subtracted is not the likelihood of labels
    if call.input_max > TOLERANCE:
        return True
    return call.function == "nll_loss" and call.row_logsumexp > TOLERANCE and call.reduction != "none" and call.origin is None


def _scores_as_target(call: LossCall) -> bool:
    return call.target_shape == call.input_shape and len(call.target_shape) > 1 and "float" in call.target_dtype and (
        call.target_min is not None and call.target_min < -TOLERANCE)


def _normalised_elsewhere(graph: OpGraph, call: LossCall) -> bool:
    """The program subtracts the logsumexp of the same scores itself: nll_loss is only its way to pick."""
    for op in graph.trace.ops:
        if op.name in ("nll_loss", "kl_div") and op.site == call.site and op.inputs:
            came = graph.source(op.inputs[0])
            family = {came.index if came is not None else op.inputs[0].op}
            for other in graph.trace.ops:
                if other.name == "logsumexp" and other.index in graph.in_loss and other.inputs:
                    made = graph.source(other.inputs[0])
                    if (made.index if made is not None else other.inputs[0].op) in family:
                        return True
    return False


def _of_call(call: LossCall) -> Finding:
    where, also = pointing(call.site, call.origin_site, call.made_at, call.origin_made_at)
    if call.origin in ("softmax", "sigmoid"):
        what: Text = PROBABILITIES
    elif call.function == "kl_div":
        what = POSITIVE.fill(high=number(call.input_max))
    else:
        what = SCORES.fill(total=f"e^{number(call.row_logsumexp or 0.0)}")
    return Finding(
        cause=NLL.fill(function=call.function, what=what), fix=FIX.fill(function=call.function), where=where, also=also,
        evidence=(Evidence(SUM, number(call.row_logsumexp or 0.0), ZERO, step=call.step),
                  Evidence(RANGE, f"{number(call.input_min)} .. {number(call.input_max)}", step=call.step)), first_step=call.step)


def _clamped(graphs: list[OpGraph]) -> Iterator[Finding]:
    """log, or binary_cross_entropy, of scores that a clamp to [0, 1] has made look like probabilities."""
    for graph in graphs:
        for op in graph.trace.ops:
            if op.name not in ("log", "log_", "binary_cross_entropy", "logit") or not op.inputs or op.index not in graph.in_loss:
                continue
            clamp = _clamp_before(graph, op)
            before = graph.maker(clamp.inputs[0]) if clamp is not None and clamp.inputs else None
            if clamp is None or before is None or before.low is None or before.high is None:
                continue
            if before.low < -TOLERANCE or before.high > 1 + TOLERANCE:
                where, also = pointing(clamp.site, op.site, before.site)
                yield Finding(
                    cause=CLAMPED.fill(low=number(before.low), high=number(before.high)), fix=FIX_CLAMP, where=where, also=also,
                    evidence=(Evidence(RANGE, f"{number(before.low)} .. {number(before.high)}", UNIT, step=graph.trace.step),),
                    first_step=graph.trace.step)


def _clamp_before(graph: OpGraph, op: Op) -> Op | None:
    """The clamp to an interval within [0, 1] that bounds what ``op`` is given."""
    maker = graph.source(op.inputs[0], PASSING)
    while maker is not None and plain_name(maker) in ("add", "rsub", "sub") and len(maker.inputs) == 1:  # 1 - p, p + eps
        maker = graph.source(maker.inputs[0], PASSING)
    if maker is None or plain_name(maker) not in ("clamp", "clip", "hardtanh", "relu6", "clamp_min", "clamp_max"):
        return None
    bounds = _bounds(maker)
    return maker if bounds is not None and bounds[0] >= 0 and 0.5 < bounds[1] <= 1 else None


def _bounds(op: Op) -> tuple[float, float] | None:
    scalars = op.scalars or {}
    try:
        return float(scalars.get("min", scalars.get("1", "nan"))), float(scalars.get("max", scalars.get("2", "nan")))
    except ValueError:
        return None
