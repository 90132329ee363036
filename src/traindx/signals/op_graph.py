"""An op trace as a graph: who made what, who used it, what a value is, and whether it gets into the loss."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property

from traindx.core.observed.ops import Input, Op, OpTrace

# the same numbers in another shape, place, dtype or selection of rows
PASSING = frozenset((
    "view", "reshape", "flatten", "squeeze", "unsqueeze", "permute", "transpose", "t", "T", "mT", "contiguous",
    "clone", "detach", "detach_", "data", "to", "float", "double", "half", "bfloat16", "type", "type_as", "cpu",
    "cuda", "__getitem__", "index_select", "select", "narrow", "expand", "expand_as", "view_as", "reshape_as",
    "swapaxes", "swapdims", "movedim", "moveaxis", "ravel", "unflatten", "requires_grad_", "chunk", "split",
    "unbind", "masked_select", "cat", "concat", "stack", "squeeze_", "unsqueeze_"))
EXPANDING = frozenset((
    "unsqueeze", "unsqueeze_", "t", "T", "mT", "transpose", "permute", "expand", "expand_as", "repeat",
    "swapaxes", "movedim"))
ELEMENTWISE = frozenset((
    "add", "sub", "mul", "div", "true_divide", "divide", "multiply", "subtract", "rsub", "pow", "square", "abs",
    "absolute", "neg", "negative", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "reciprocal", "sigmoid",
    "logsigmoid", "tanh", "relu", "softplus", "clamp", "clamp_min", "clamp_max", "clip", "where", "maximum",
    "minimum", "min", "max", "fmax", "fmin", "lgamma", "xlogy", "erf", "cosh", "sign", "nan_to_num",
    "leaky_relu", "elu", "gelu", "silu", "cos", "sin", "addcmul", "addcdiv", "lerp", "logaddexp", "logcosh",
    "float", "double", "to", "clone", "contiguous", "half", "bfloat16", "hypot", "huber_loss", "smooth_l1_loss",
    "mse_loss", "l1_loss"))
REDUCING = frozenset(("mean", "sum", "nanmean", "nansum", "average"))
_TWIN = {
    "__radd__": "add", "__rmul__": "mul", "__rsub__": "rsub", "__truediv__": "div", "__rtruediv__": "div",
    "__rdiv__": "div", "__rpow__": "pow", "__iadd__": "add", "__isub__": "sub", "__imul__": "mul",
    "__itruediv__": "div", "__idiv__": "div", "__div__": "div", "__neg__": "neg", "__pow__": "pow", "__add__":
    "add", "__sub__": "sub", "__mul__": "mul", "__abs__": "abs", "__matmul__": "matmul", "__rmatmul__":
    "matmul", "log_softmax_": "log_softmax"}


def plain_name(op: Op) -> str:
    """The op's name without operator spelling and in-place underscore: ``__rmul__`` and ``mul_`` are ``mul``."""
    name = _TWIN.get(op.name, op.name)
    return name[:-1] if name.endswith("_") and not name.endswith("__") and name[:-1] in ELEMENTWISE else name


def dim_of(op: Op, default: int | None = None) -> int | None:
    """The ``dim`` argument of an op, from 0; ``default`` where none was given (or None was), else None for several."""
    scalars = op.scalars or {}
    text = scalars.get("dim", scalars.get("1", "None"))
    rank = len(op.inputs[0].shape) if op.inputs else 0
    if text == "None":
        return default
    try:
        dim = int(text)
    except ValueError:
        return None
    return dim + rank if dim < 0 else dim


def implicit_dim(rank: int) -> int:
    """The dimension that softmax takes where none is given."""
    return 0 if rank in (0, 1, 3) else 1


def size_of(shape: tuple[int, ...]) -> int:
    product = 1
    for n in shape:
        product *= n
    return product


class OpGraph:
    """The ops of one trace with the edges both ways."""

    def __init__(self, trace: OpTrace) -> None:
        self.trace = trace
        self.ops = {op.index: op for op in trace.ops}
        self.users: dict[int, list[Op]] = {}
        for op in trace.ops:
            for index in {operand.op for operand in op.inputs if operand.op >= 0}:
                self.users.setdefault(index, []).append(op)

    def maker(self, operand: Input) -> Op | None:
        return self.ops.get(operand.op)

    def source(self, operand: Input, passing: frozenset[str] = PASSING) -> Op | None:
        """The op that computed these numbers, behind views, copies and casts; None where they came from outside."""
        op = self.maker(operand)
        while op is not None and op.name in passing and op.inputs:
            op = self.maker(op.inputs[0])
        return op

    def ancestors(self, *starts: int) -> set[int]:
        """Indices of everything that went into these ops, themselves included."""
        seen: set[int] = set()
        stack = [index for index in starts if index in self.ops]
        while stack:
            index = stack.pop()
            if index not in seen:
                seen.add(index)
                stack += [operand.op for operand in self.ops[index].inputs if operand.op in self.ops]
        return seen

    @cached_property
    def in_loss(self) -> set[int]:
        """Ops that went into the backward root. Where that is unknown: into a torch loss or a scalar with gradient."""
        root = self.trace.root
        if root in self.ops:
            return self.ancestors(root)
        ends = [op.index for op in self.trace.ops
                if op.requires_grad and size_of(op.shape) == 1 and not self.users.get(op.index)]
        return self.ancestors(*ends, *self.trace.losses)

    def uses(self, op: Op, through: Callable[[Op], bool]) -> Iterator[Op]:
        """Ops that use the result, directly or behind ops for which ``through`` holds (those are given too)."""
        seen: set[int] = set()
        stack = list(self.users.get(op.index, ()))
        while stack:
            user = stack.pop()
            if user.index in seen:
                continue
            seen.add(user.index)
            yield user
            if through(user):
                stack += self.users.get(user.index, ())

    def outside(self, index: int) -> Iterator[Input]:
        """Every operand from outside the trace that went into an op."""
        for ancestor in self.ancestors(index):
            for operand in self.ops[ancestor].inputs:
                if operand.op not in self.ops:
                    yield operand
