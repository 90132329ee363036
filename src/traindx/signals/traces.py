"""Reading op traces: what an op was computed from, where a graph was cut, what the backward root is a sum of."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from traindx.core.judge import Absent
from traindx.core.observed import Site
from traindx.core.observed.ops import Input, Op, OpTrace
from traindx.core.recording import Recording
from traindx.core.text import Text

READS = frozenset(("item", "tolist", "numpy", "__array__", "__float__", "__int__", "__index__"))
ADDS = frozenset(("add", "add_", "__add__", "__radd__", "__iadd__"))
SUBS = frozenset(("sub", "sub_", "__sub__", "__isub__", "rsub", "__rsub__", "subtract"))
SCALES = frozenset(("mul", "mul_", "__mul__", "__rmul__", "multiply", "div", "div_", "true_divide", "__truediv__",
                    "divide"))
PASSES = frozenset(("mean", "sum", "nanmean", "nansum", "squeeze", "unsqueeze", "reshape", "view", "flatten", "clone",
                    "float", "double", "to", "contiguous", "type", "expand", "half", "bfloat16", "cpu"))
_ALIASES = frozenset(("data", "detach", "view", "reshape", "flatten", "__getitem__"))
_NO_TRACE = Text("no op trace of a training step", "没有记下训练步里的运算")


@dataclass(frozen=True)
class Trace:
    """One traced training step, with its operands' makers followed."""

    step: int
    ops: tuple[Op, ...]
    root: int
    whole: OpTrace

    def maker(self, operand: Input) -> Op | None:
        return self.ops[operand.op] if 0 <= operand.op < len(self.ops) else None

    def above(self, *indices: int) -> set[int]:
        """Indices of all ops that these were computed from, themselves included."""
        seen: set[int] = set()
        stack = [index for index in indices if 0 <= index < len(self.ops)]
        while stack:
            index = stack.pop()
            if index not in seen:
                seen.add(index)
                stack.extend(operand.op for operand in self.ops[index].inputs if 0 <= operand.op < index)
        return seen

    def parameters(self, indices: set[int]) -> set[int]:
        """Ids of the trainable leaves that enter these ops."""
        return {operand.parameter for index in indices for operand in self.ops[index].inputs if operand.parameter}

    @cached_property
    def below(self) -> dict[int, list[int]]:
        """The ops that use each op's output."""
        uses: dict[int, list[int]] = {}
        for op in self.ops:
            for operand in op.inputs:
                if operand.op >= 0:
                    uses.setdefault(operand.op, []).append(op.index)
        return uses

    def cuts(self) -> Iterator[Op]:
        """Ops that were given something trainable and gave back something that is not; reads of values among them."""
        for op in self.ops:
            if not op.requires_grad and op.name != "zero_" and any(operand.requires_grad for operand in op.inputs):
                yield op

    def addends(self) -> Iterator[tuple[Op, Input, float]]:
        """What the backward root is a sum of: the op that adds, the addend, its sign. Numbers of one element only.

        Each op once: what is not made within the trace has no maker (-1), and sums of sums share theirs.
        """
        stack: list[tuple[int, float]] = [(self.root, 1.0)]
        seen: set[tuple[int, float]] = set()
        while stack:
            index, sign = stack.pop()
            if not 0 <= index < len(self.ops) or (index, sign) in seen:
                continue
            seen.add((index, sign))
            op = self.ops[index]
            if op.name in ADDS | SUBS and _single(op.shape):
                for position, operand in enumerate(op.inputs):
                    flips = op.name in SUBS and (position == 1) != (op.name in ("rsub", "__rsub__"))
                    yield op, operand, -sign if flips else sign
                    stack.append((operand.op, -sign if flips else sign))
            elif op.name == "sum" and op.inputs and self._is_stack(op.inputs[0]):
                for operand in self.ops[op.inputs[0].op].inputs:
                    yield self.ops[op.inputs[0].op], operand, sign
                    stack.append((operand.op, sign))
            elif op.name in SCALES | PASSES | {"neg"} and len(op.inputs) == 1:
                stack.append((op.inputs[0].op, sign * scale_of(op)))

    def _is_stack(self, operand: Input) -> bool:
        maker = self.maker(operand)
        return maker is not None and maker.name == "stack"

    def writes(self) -> Iterator[Op]:
        """Ops outside any module that write into a trainable leaf: a hand-written update."""
        for op in self.ops:
            anew = op.name in ADDS | SUBS and not op.requires_grad and len(op.inputs) == 2  # p.data = p.data - lr * g
            if op.module is None and (op.in_place or anew) and op.inputs and self.leaf_behind(op.inputs[0]):
                yield op

    def leaf_behind(self, operand: Input) -> int:
        """The trainable leaf that an operand is, or a view or detached alias of; 0 for none."""
        for _ in range(4):
            if operand.parameter:
                return operand.parameter
            maker = self.maker(operand)
            if maker is None or maker.name not in _ALIASES or not maker.inputs:
                return 0
            operand = maker.inputs[0]
        return 0


def passed_through(trace: Trace, operand: Input) -> Op:
    """The op behind scaling, averaging and reshaping; where there is none, the operand's own maker."""
    op = trace.ops[operand.op]
    while op.name in SCALES | PASSES and len(op.inputs) == 1 and (maker := trace.maker(op.inputs[0])) is not None:
        op = maker
    return op


def scale_of(op: Op) -> float:
    """-1 or +1: the sign that an op with one tensor operand gives it."""
    if op.name in ("neg", "neg_", "negative") or op.name in ("rsub", "__rsub__"):
        return -1.0
    if op.name in SCALES:
        for text in (op.scalars or {}).values():
            try:
                return -1.0 if float(text) < 0 else 1.0
            except ValueError:
                continue
    return 1.0


def _single(shape: tuple[int, ...]) -> bool:
    return all(size == 1 for size in shape)


@dataclass(frozen=True)
class TrainingTraces:
    """The traced steps that ended in a backward, first to last, and other forwards, those under no_grad among them."""

    traces: list[Trace]
    evaluations: list[Trace]

    @classmethod
    def of(cls, recording: Recording) -> TrainingTraces | Absent:
        every = [Trace(each.step, each.ops, each.root, each) for each in recording.of(OpTrace)]
        traces = [trace for trace in every if trace.whole.phase == "train"]
        others = [trace for trace in every if trace.whole.phase != "train"]
        return cls(traces, others) if traces else Absent(_NO_TRACE)

    def update_sites(self) -> list[Site]:
        """Lines of hand-written updates, first to last."""
        return list(dict.fromkeys(op.site for trace in self.traces for op in trace.writes() if op.site is not None))
