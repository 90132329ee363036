"""Op traces read backwards: what a sum is made of."""
from __future__ import annotations

from traindx.core.observed.ops import Input, Op, OpTrace
from traindx.signals.traces import Trace


def op(index, name, *inputs):
    return Op(index=index, name=name, site=None, inputs=tuple(inputs), shape=(), dtype="float32", requires_grad=True)


def of(index):
    return Input(op=index, shape=(), dtype="float32", requires_grad=True)


def trace(*ops):
    return Trace(1, tuple(ops), len(ops) - 1, OpTrace(step=1, phase="train", ops=tuple(ops)))


def test_an_addend_from_outside_the_trace_has_no_maker():
    """Its index is -1, which is no place in the list: the last op is the sum itself."""
    summed = trace(op(0, "mean"), op(1, "add", of(-1), of(0)))
    assert [(add.index, operand.op, sign) for add, operand, sign in summed.addends()] == [(1, -1, 1.0), (1, 0, 1.0)]


def test_a_sum_that_is_added_to_itself_is_looked_into_once():
    doubled = [op(0, "mean"), op(1, "add", of(0), of(0))]
    for index in range(2, 60):
        doubled.append(op(index, "add", of(index - 1), of(index - 1)))
    assert len(list(trace(*doubled).addends())) == 2 * 59
