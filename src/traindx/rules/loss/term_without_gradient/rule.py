"""One term of the loss cannot move anything.

What it is:
The loss is a sum, and one of its terms depends on the model but has no gradient: it was computed under ``no_grad``, from ``argmax`` or
detached values, or read out with ``.item()``.

Why it is silent:
The other terms have gradients, so that backward works; the term only shifts the value that is printed.

What you see:
The term hardly falls however large its weight is made.

Look-alikes:
Terms that are added for logging only after backward, a stop-gradient beside a live path, terms whose weight is 0 for a while.

Fix:
Compute the term with operations that have a gradient, outside ``no_grad``, and add the tensor itself.

Before:
    loss = ce + 0.1 * penalty.item()
After:
    loss = ce + 0.1 * penalty

Experiment:
Multiply the term's weight by 100: if nothing changes in the training, the term has no gradient.

Source:
PyTorch documentation, Autograd mechanics.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.ops import Input, Op
from traindx.core.text import Text, number
from traindx.signals.learning import Learners
from traindx.signals.traces import ADDS, READS, SUBS, Trace, TrainingTraces, passed_through
from traindx.signals.where import pointing

ZH = """损失里有一项没有梯度

是什么：
损失是几项之和，其中一项取决于模型，却没有梯度：它在 ``no_grad`` 里算出，来自 ``argmax`` 或 detach 过的值，或者用 ``.item()`` 取成了数。

为什么不报错：
别的项有梯度，反向传播照常工作；这一项只是把打印出来的数抬高或压低。

你会看到：
不管把这一项的权重调到多大，它几乎不降。

容易混淆的情况：
反向传播之后才加上、只用于记录的项；旁边另有通路的停梯度；权重暂时为 0 的项。

怎么改：
用有梯度的运算来算这一项，不要放在 ``no_grad`` 里，相加时直接用张量。

改前：
    loss = ce + 0.1 * penalty.item()
改后：
    loss = ce + 0.1 * penalty

对照实验：
把这一项的权重乘以 100：训练如果毫无变化，这一项就没有梯度。

来源：
PyTorch 文档 Autograd mechanics。
"""
LEVEL = "warning"
STEP = 2
EXPLAINS = ("curve/*",)

MAKES = frozenset(("tensor", "as_tensor", "asarray", "scalar_tensor"))

CAUSE = Text("A term of the loss (value {value}) depends on the model but has no gradient: {op} cuts it off.",
             "损失里有一项（值为 {value}）取决于模型，却没有梯度：{op} 把它切断了。")
FIX = Text("Compute this term from tensors that have gradients, without {op}.", "用有梯度的张量计算这一项，不要用 {op}。")
HAS = Text("the term requires a gradient", "这一项需要梯度")
NO_GRAD = Text("no_grad", "no_grad")
YES, NO = Text("yes", "是"), Text("no", "否")


def check(learners: Learners, traces: TrainingTraces) -> Iterator[Finding]:
    learning = {leaf.id for leaf in learners.learning()}
    for trace in traces.traces:
        for add, operand, _ in trace.addends():
            if (cut := _cut_behind(trace, operand, learning)) is not None:
                term = trace.ops[operand.op]
                yield _finding(trace, add, cut, number(term.low) if term.low is not None else "?")
                return
    yield from itertools.islice(itertools.chain(_read_out(traces.traces, learning), _rebuilt(traces.traces, learning)), 1)


def _cut_behind(trace: Trace, operand: Input, learning: set[int]) -> Op | None:
    """The op that took the gradient from a term which depends on parameters that learn; None where it was meant."""
    if operand.requires_grad or operand.op < 0 or not trace.ops[operand.op].dtype.startswith(("float", "bfloat")):
        return None
    term = trace.ops[operand.op]
    if (term.low == 0 and term.high == 0) or passed_through(trace, operand).name in ("detach", "data"):
        return None
    above = trace.above(operand.op)
    cuts = [op for op in trace.cuts() if op.index in above and trace.parameters(trace.above(op.index)) & learning]
    return cuts[0] if cuts else None


def _read_out(traces: list[Trace], learning: set[int]) -> Iterator[Finding]:
    """``loss + c * x.item()``: a plain number that follows a value read from the model, in the same proportion at two steps."""
    numbers = [list(_added_numbers(trace)) for trace in traces]
    for first, (trace, added) in enumerate(zip(traces, numbers)):
        for other, added_later in zip(traces[first + 1:], numbers[first + 1:]):
            for add, value in added:
                for later, value_later in added_later:
                    read = _follows(trace, other, value, value_later, learning) if add.site == later.site and value != value_later else None
                    if read is not None:
                        yield _finding(trace, add, read, number(value))
                        return


def _rebuilt(traces: list[Trace], learning: set[int]) -> Iterator[Finding]:
    """``loss + torch.tensor(numbers).sum()``: at two steps, numbers that were read from the model are made into a tensor, which is added."""
    seen: dict[tuple[Site | None, Site | None], float] = {}
    for trace in traces:
        for add, operand, _ in trace.addends():
            made = _made_of_numbers(trace, operand)
            read = _read_as(trace, made, learning) if made is not None else None
            if made is None or read is None or made.low is None:
                continue
            if seen.setdefault((add.site, made.site), made.low) != made.low:
                yield _finding(trace, add, made, number(trace.ops[operand.op].low or 0.0), read)
                return


def _made_of_numbers(trace: Trace, operand: Input) -> Op | None:
    if operand.requires_grad or operand.op < 0 or trace.ops[operand.op].low == trace.ops[operand.op].high == 0:
        return None
    return next((op for index in trace.above(operand.op) if (op := trace.ops[index]).name in MAKES and not op.inputs), None)


def _read_as(trace: Trace, made: Op, learning: set[int]) -> Op | None:
    """The read whose value is the largest of the new tensor, where its smallest was read as well."""
    def of(value: float | None) -> Op | None:
        near = (op for op in reads if op.value is not None and value and abs(op.value - value) <= 1e-6 * abs(value))
        return next(near, None)
    reads = [op for op in _reads(trace, learning) if op.index < made.index]
    return of(made.high) if of(made.low) is not None else None


def _added_numbers(trace: Trace) -> Iterator[tuple[Op, float]]:
    index = trace.root
    while 0 <= index < len(trace.ops) and trace.ops[index].inputs:
        op = trace.ops[index]
        if op.name in ADDS | SUBS and len(op.inputs) == 1:
            for text in (op.scalars or {}).values():
                try:
                    yield op, float(text)
                except ValueError:
                    continue
        index = op.inputs[0].op


def _follows(trace: Trace, other: Trace, value: float, later: float, learning: set[int]) -> Op | None:
    for read in _reads(trace, learning):
        for again in _reads(other, learning):
            if read.site == again.site and read.value and again.value and abs(value / read.value - later / again.value) < 1e-4 * abs(value / read.value):
                return read
    return None


def _reads(trace: Trace, learning: set[int]) -> list[Op]:
    return [op for op in trace.ops if op.name in READS and op.value and trace.parameters(trace.above(op.index)) & learning]


def _finding(trace: Trace, add: Op, cut: Op, value: str, read: Op | None = None) -> Finding:
    where, also = pointing(cut.site, read.site if read is not None else None, add.site)
    named = cut.name in MAKES or cut.name in READS or cut.name in ("detach", "data", "argmax") or not cut.dtype.startswith(("float", "bfloat"))
    op = Text(cut.name, cut.name) if named else NO_GRAD
    return Finding(
        cause=CAUSE.fill(value=value, op=op), fix=FIX.fill(op=op), where=where, also=also,
        evidence=(Evidence(HAS, NO, YES, step=trace.step),), first_step=trace.step)
