"""A formula is written by hand where torch has a stable one.

What it is:
log(softmax(x)), log(sum(exp(x))), log(sigmoid(x)), or x / x.norm() without an eps. Each is right on paper and breaks down in floating point for
inputs that are not unusual.

Why it is silent:
It gives the same numbers until a probability underflows to 0 or a vector is exactly 0.

What you see:
Nothing, for a long time; then one batch with -inf or NaN.

Look-alikes:
The same formulas with a clamp or an eps in between are safe enough.

Fix:
Use the stable form: log_softmax, logsumexp, logsigmoid, F.normalize.

Before:
    torch.log(torch.softmax(logits, dim=1))
After:
    torch.log_softmax(logits, dim=1)

Experiment:
Scale the logits by 100: the hand-written form gives -inf, the stable one does not.

Source:
PyTorch documentation of log_softmax ("slower and numerically unstable" when done in two steps).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.ops import Op, OpTrace
from traindx.core.text import Text, number

ZH = """手写了数值不稳定的公式

是什么：
log(softmax(x))、log(sum(exp(x)))、log(sigmoid(x))，或不带 eps 的 x / x.norm()。纸面上都对，但遇到并不罕见的输入，浮点数就算不下去。

为什么不报错：
在概率下溢成 0、或向量恰好为 0 之前，结果一模一样。

你会看到：
很长时间里什么也看不到；然后某个 batch 出现 -inf 或 NaN。

容易混淆的情况：
同样的公式，中间有 clamp 或 eps，就足够安全。

怎么改：
用稳定的写法：log_softmax、logsumexp、logsigmoid、F.normalize。

改前：
    torch.log(torch.softmax(logits, dim=1))
改后：
    torch.log_softmax(logits, dim=1)

对照实验：
把 logits 放大 100 倍：手写的得到 -inf，稳定的写法不会。

来源：
PyTorch log_softmax 文档（分两步做更慢，数值也不稳定）。
"""
LEVEL = "note"
STEP = 2
EXPERIMENT = None

LOGS = frozenset(("log", "log2", "log10"))
NORMS = frozenset(("norm", "linalg_vector_norm", "linalg_norm"))
DIVISIONS = frozenset(("div", "__truediv__", "true_divide"))
STABLE = {"softmax": "log_softmax", "sigmoid": "logsigmoid"}
VIEWS = frozenset(("squeeze", "unsqueeze", "view", "reshape", "gather", "__getitem__", "index_select"))

CAUSE = Text("{name} is taken of {inner}: where that underflows to 0 the result is -inf or NaN.",
             "对 {inner} 取 {name}：它一旦下溢成 0，结果就是 -inf 或 NaN。")
DIVIDED = Text("A vector is divided by its own norm without an eps: a vector of zeros gives NaN.",
               "向量除以自己的范数，没有加 eps：遇到全 0 的向量就得到 NaN。")
FIX = Text("Use {stable}.", "改用 {stable}。")
LOW = Text("smallest operand seen", "看到的最小输入")


def check(traces: list[OpTrace]) -> Iterator[Finding]:
    for trace in traces:
        for op in trace.ops if trace.phase == "train" else ():
            if op.requires_grad and (said := _unstable(op, trace.ops)):
                cause, stable, inner = said
                yield Finding(cause=cause, fix=FIX.fill(stable=stable), where=op.site, first_step=trace.step,
                              evidence=(Evidence(LOW, number(inner.low or 0.0), "> 0", step=trace.step),))


def _unstable(op: Op, ops: tuple[Op, ...]) -> tuple[Text, str, Op] | None:
    if op.name in LOGS and op.inputs and (inner := _maker(op, 0, ops)) is not None:
        if inner.name in STABLE:
            return CAUSE.fill(name=op.name, inner=inner.name), STABLE[inner.name], inner
        summed = _maker(inner, 0, ops) if inner.name == "sum" else None
        if summed is not None and summed.name == "exp":
            return CAUSE.fill(name=op.name, inner="sum(exp)"), "logsumexp", inner
    if op.name in DIVISIONS and len(op.inputs) == 2 and (inner := _maker(op, 1, ops)) is not None and inner.name in NORMS:
        return DIVIDED, "torch.nn.functional.normalize", inner
    return None


def _maker(op: Op, operand: int, ops: tuple[Op, ...]) -> Op | None:
    """The op that made an operand, looked at through views."""
    if len(op.inputs) <= operand:
        return None
    index = op.inputs[operand].op
    while 0 <= index < len(ops) and ops[index].name in VIEWS and ops[index].inputs:
        index = ops[index].inputs[0].op
    return ops[index] if 0 <= index < len(ops) else None
