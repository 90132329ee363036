"""Softmax and sigmoid in an op trace, by name or written by hand, and the values that come from them."""
from __future__ import annotations

from collections.abc import Iterable

from traindx.core.observed import Site
from traindx.core.observed.layout import ModulePlaces
from traindx.core.observed.ops import Input, Op
from traindx.signals.op_graph import PASSING, OpGraph, plain_name

_NAMED = {"softmax": "softmax", "log_softmax": "log_softmax", "sigmoid": "sigmoid", "sigmoid_": "sigmoid",
          "logsigmoid": "logsigmoid", "log_sigmoid": "logsigmoid"}
_QUOTIENTS = ("div", "true_divide", "divide")


def activation(graph: OpGraph, op: Op) -> str | None:
    """``softmax``, ``log_softmax``, ``sigmoid`` or ``logsigmoid`` where the op's result is one, else None."""
    name = plain_name(op)
    if name in _NAMED:
        return _NAMED[name]
    if name in _QUOTIENTS and _is_normalised_exp(graph, op):
        return "softmax"
    if name in (*_QUOTIENTS, "reciprocal") and _is_logistic(graph, op):
        return "sigmoid"
    if name == "sub" and _minus_logsumexp(graph, op):
        return "log_softmax"
    return None


def _is_normalised_exp(graph: OpGraph, op: Op) -> bool:
    """``e / e.sum(dim)`` with ``e = exp(...)``."""
    if len(op.inputs) != 2:
        return False
    above, below = graph.maker(op.inputs[0]), graph.source(op.inputs[1])
    return (above is not None and below is not None and plain_name(above) == "exp" and below.name == "sum"
            and bool(below.inputs) and below.inputs[0].op == above.index)


def _is_logistic(graph: OpGraph, op: Op) -> bool:
    """``1 / (1 + exp(-x))``."""
    if len(op.inputs) != 1 or (plain_name(op) != "reciprocal" and not _has_one(op)):
        return False
    below = graph.maker(op.inputs[0])
    if below is None or plain_name(below) != "add" or len(below.inputs) != 1 or not _has_one(below):
        return False
    power = graph.maker(below.inputs[0])
    return power is not None and plain_name(power) == "exp"


def _has_one(op: Op) -> bool:
    return bool({"1", "1.0"} & set((op.scalars or {}).values()))


def _minus_logsumexp(graph: OpGraph, op: Op) -> bool:
    """``x - logsumexp(x)``."""
    if len(op.inputs) != 2:
        return False
    lse = graph.source(op.inputs[1])
    if lse is None or lse.name != "logsumexp" or not lse.inputs:
        return False
    return lse.inputs[0].op == op.inputs[0].op >= 0


def behind(graph: OpGraph, operand: Input, scaled: bool = False) -> tuple[str, Op] | None:
    """The activation that these numbers came out of, and its op, behind views, copies and (``scaled``) a factor."""
    op = graph.maker(operand)
    while op is not None and op.inputs:
        kind = activation(graph, op)
        if kind is not None:
            return kind, op
        tempered = scaled and plain_name(op) in (*_QUOTIENTS, "mul") and len([i for i in op.inputs if i.shape]) == 1
        if op.name not in PASSING and not tempered:
            return None
        op = graph.maker(op.inputs[0])
    return None


def made_where(places: Iterable[ModulePlaces], graph: OpGraph, op: Op) -> Site | None:
    """Where the module was made whose forward the op is (a module's forward that is just this op)."""
    if op.module is None:
        return None
    matches = [(each.model != graph.trace.model, place.made_at) for each in places for place in each.places
               if place.path == op.module and place.class_name == op.module_class]
    return min(matches, key=lambda match: match[0])[1] if matches else None
