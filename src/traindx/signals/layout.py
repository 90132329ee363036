"""Which dimension of a model's output is the classes', whatever reshaping lies between the output and where it is used."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from traindx.core.observed.ops import Op, OpTrace
from traindx.signals.op_graph import dim_of

_SAME = frozenset(("softmax", "log_softmax", "sigmoid", "exp", "float", "double", "half", "bfloat16", "to", "cpu", "cuda", "clone",
                   "contiguous", "detach", "data", "type", "__truediv__", "div", "requires_grad_"))
_RESHAPES = frozenset(("view", "reshape", "flatten", "unflatten", "squeeze", "unsqueeze", "view_as", "reshape_as"))
_SWAPS = frozenset(("transpose", "swapaxes", "swapdims"))
_LOSSES = frozenset(("cross_entropy", "nll_loss"))
CHOICES = frozenset(("argmax", "max", "topk"))


@dataclass(frozen=True)
class Source:
    """The op that a tensor is a reshaping of, and where ``dim`` of the tensor lies in it."""

    op: Op
    dim: int
    cut: str = ""

    @property
    def place(self) -> tuple[object, ...]:
        """What is alike for the same output in another step: the weights that made it, else its line; all but the batch size.

        ``cut`` is the part of it that was taken, ``out[:, 4:]``.
        """
        weights = tuple(operand.parameter for operand in self.op.inputs if operand.parameter)
        site = self.op.site
        return self.op.name, weights or (site and (site.file, site.line)), self.op.shape[1:], self.cut


def source_of(trace: OpTrace, op: Op, dim: int) -> Source | None:
    """Back from the first operand of ``op`` through reshapes and softmax; None where the dimension is lost on the way."""
    at: int | None = dim
    cut = ""
    operand = op.inputs[0] if op.inputs else None
    while operand is not None and at is not None and 0 <= operand.op < len(trace.ops):
        maker = trace.ops[operand.op]
        if maker.name == "__getitem__" and _sliced(maker):
            cut += (maker.scalars or {}).get("1", "")
        elif maker.name not in _SAME | _RESHAPES | _SWAPS | {"permute", "t", "T", "mT"} or not maker.inputs:
            return Source(maker, at, cut)
        else:
            at = back(maker, at)
        operand = maker.inputs[0]
    return None


def _sliced(op: Op) -> bool:
    """``out[:, 4:]``: ranges of some dimensions, of all samples; every dimension stays where it is."""
    return (len(op.inputs) == 1 and op.inputs[0].shape[:1] == op.shape[:1] and len(op.inputs[0].shape) == len(op.shape)
            and (op.scalars or {}).get("1", "").startswith("(slice(None, None, None), slice("))


def back(op: Op, dim: int) -> int | None:
    """The operand's dimension that became ``dim`` of the output; None where several were merged into it, or one was split.

    >>> from traindx.core.observed.ops import Input
    >>> back(Op(0, "flatten", None, (Input((40, 12, 7), "float32"),), (480, 7), "float32"), 1)
    2
    """
    before, after = op.inputs[0].shape, op.shape
    if op.name in _SAME:
        return dim
    if op.name in ("t", "T", "mT"):
        return {len(after) - 1: len(after) - 2, len(after) - 2: len(after) - 1}.get(dim, dim)
    if op.name in _SWAPS:
        first, second = _ints(op, len(before), ("dim0", "dim1"))[:2] or (-1, -1)
        return {first: second, second: first}.get(dim, dim)
    if op.name == "permute":
        order = _ints(op, len(before), ("dims",))
        return order[dim] if len(order) == len(before) else None
    behind = prod(after[dim + 1:])
    return next((k for k, size in enumerate(before) if size == after[dim] and prod(before[k + 1:]) == behind), None)


def _ints(op: Op, rank: int, names: tuple[str, ...]) -> list[int]:
    """Whole-number arguments by position or name, from 0."""
    found: list[int] = []
    for name, text in (op.scalars or {}).items():
        if name.isdigit() or name in names:
            value = ast.literal_eval(text)
            found += [v for v in (value if isinstance(value, (tuple, list)) else [value]) if isinstance(v, int)]
    return [value + rank if value < 0 else value for value in found]


def class_dims(trace: OpTrace) -> Iterator[Source]:
    """The outputs that go into torch losses over classes, with their class dimension."""
    for op in trace.ops:
        if op.name in _LOSSES and op.inputs and (source := source_of(trace, op, 1 if len(op.inputs[0].shape) > 1 else 0)):
            yield source


def choices(trace: OpTrace) -> Iterator[tuple[Op, Source]]:
    """Picks of the largest (argmax, max, topk) over one dimension of an output."""
    for op in trace.ops:
        if op.name in CHOICES and op.inputs and (dim := dim_of(op)) is not None and 0 <= dim < len(op.inputs[0].shape):
            if (source := source_of(trace, op, dim)) is not None:
                yield op, source
