"""Whether the root of a hand-written loss is to be minimised or maximised, read from the operations that made it.

Only three shapes are known for sure: a mean of squared or absolute differences to data (to be minimised), the log-probabilities
of given labels, and the log-sigmoid of a score or of a gap between scores (to be maximised: it has no least value). Everything else
has no sense, and nothing is said of it.
"""
from __future__ import annotations

from traindx.core.observed import Site
from traindx.core.observed.ops import Input, Op
from traindx.signals.traces import ADDS, PASSES, SCALES, SUBS, Trace, scale_of

_SQUARES = frozenset(("square", "abs", "norm", "absolute"))
_LOG_SIGMOIDS = frozenset(("logsigmoid", "log_sigmoid"))
_LOGS = _LOG_SIGMOIDS | {"log", "log_softmax", "log2"}
_PICKS = frozenset(("gather", "__getitem__", "take_along_dim", "diagonal", "diag", "index_select"))
_CHOICES = frozenset(("multinomial", "argmax", "bernoulli", "topk", "max", "searchsorted"))
_SOFT_LABELS = frozenset(("one_hot", "eq", "__eq__", "softmax", "float", "to", "float32", "type"))
_GUARDS = frozenset(("clamp", "clip", "clamp_min", "clamp_max", "nan_to_num"))  # larger stays larger
DEPTH = 40


def sense_of_root(trace: Trace) -> int:
    """+1: to be minimised. -1: to be maximised. 0: not known."""
    return _sense(trace, trace.root, 1, DEPTH)


def _sense(trace: Trace, index: int, sign: int, depth: int) -> int:
    if not 0 <= index < len(trace.ops) or depth == 0:
        return 0
    op = trace.ops[index]
    if _is_error(trace, op):
        return sign
    if _is_log_likelihood(trace, op):
        return -sign
    if op.name in ("neg", "negative"):
        return _sense(trace, op.inputs[0].op, -sign, depth - 1)
    if op.name in ADDS | SUBS and len(op.inputs) == 2:
        return _of_sum(trace, op, sign, depth)
    if (op.name in SCALES | PASSES | ADDS | SUBS and op.inputs) or (op.name in _GUARDS and len(op.inputs) == 1):
        return _sense(trace, op.inputs[0].op, sign * int(scale_of(op)), depth - 1)
    return 0


def _of_sum(trace: Trace, op: Op, sign: int, depth: int) -> int:
    """A sum has the sense of its addends where those that are known agree; a penalty on weights alone has none."""
    left, right = op.inputs
    flip = -1 if op.name in SUBS else 1
    first = _sense(trace, left.op, sign * (flip if op.name in ("rsub", "__rsub__") else 1), depth - 1)
    second = _sense(trace, right.op, sign * (1 if op.name in ("rsub", "__rsub__") else flip), depth - 1)
    known = {sense for sense in (first, second) if sense}
    return known.pop() if len(known) == 1 else 0


def _is_error(trace: Trace, op: Op) -> bool:
    """``(p - y) ** 2``, ``abs(p - y)``, ``(p - y) * (p - y)``: one side learns, the other is data."""
    power = op.name in ("pow", "__pow__") and (op.scalars or {}).get("1") in ("2", "2.0", "4")
    square = power or op.name in _SQUARES
    twice = op.name in ("mul", "__mul__") and len(op.inputs) == 2 and op.inputs[0].op == op.inputs[1].op >= 0
    maker = trace.maker(op.inputs[0]) if (square or twice) and op.inputs else None
    if maker is None or maker.name not in SUBS or len(maker.inputs) != 2:
        return False
    sides = [side.requires_grad for side in maker.inputs]
    data = maker.inputs[sides.index(False)] if False in sides else None
    return True in sides and data is not None and not _touches_parameters(trace, data)


def _touches_parameters(trace: Trace, operand: Input) -> bool:
    return bool(trace.parameters(trace.above(operand.op)))


def _is_log_likelihood(trace: Trace, op: Op) -> bool:
    """The log-probability of given labels: picked by integers, weighted by a one-hot, both halves of a Bernoulli; or of an order."""
    if op.name in _LOG_SIGMOIDS:
        return bool(op.inputs) and op.inputs[0].requires_grad
    if op.name in _PICKS and op.inputs and _is_log(trace, op.inputs[0]):
        return all(index.dtype in ("int64", "int32") and _is_data(trace, index) for index in op.inputs[1:])
    if op.name in ("mul", "__mul__") and len(op.inputs) == 2:
        return any(_is_log(trace, log) and _is_one_hot(trace, label) for log, label in (op.inputs, op.inputs[::-1]))
    return op.name in ADDS and len(op.inputs) == 2 and all(_is_bernoulli_half(trace, half) for half in op.inputs)


def _is_log(trace: Trace, operand: Input) -> bool:
    maker = trace.maker(operand)
    return operand.requires_grad and maker is not None and maker.name in _LOGS


def _is_data(trace: Trace, operand: Input) -> bool:
    """Given from outside, or cut from such; sampled actions and argmax are not."""
    names = {trace.ops[index].name for index in trace.above(operand.op)}
    return not names & _CHOICES and not operand.requires_grad and not _touches_parameters(trace, operand)


def _is_one_hot(trace: Trace, operand: Input) -> bool:
    names = {trace.ops[index].name for index in trace.above(operand.op)}
    marked = bool(names & {"one_hot", "eq", "__eq__"}) and names <= _SOFT_LABELS | _PICKS | {"unsqueeze", "arange"}
    return marked and not operand.requires_grad and not _touches_parameters(trace, operand)


def _is_bernoulli_half(trace: Trace, operand: Input) -> bool:
    """``y * log(p)`` or ``(1 - y) * log(1 - p)``."""
    maker = trace.maker(operand)
    if maker is None or maker.name not in ("mul", "__mul__") or len(maker.inputs) != 2:
        return False
    return any(_is_log(trace, log) and not label.requires_grad for log, label in (maker.inputs, maker.inputs[::-1]))


def negation_site(trace: Trace) -> Site | None:
    """The line that turned the sign, nearest to the root."""
    index = trace.root
    for _ in range(DEPTH):
        if not 0 <= index < len(trace.ops):
            return None
        op = trace.ops[index]
        if op.name in ("neg", "negative", "rsub", "__rsub__") or (op.name in SCALES and scale_of(op) < 0):
            return op.site
        if op.name in SUBS and len(op.inputs) == 2 and op.inputs[1].requires_grad:
            return op.site
        if op.name not in SCALES | PASSES | ADDS | _GUARDS or not op.inputs:
            return None
        index = op.inputs[0].op
    return None
