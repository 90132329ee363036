"""The shapes of one training step, in the order of its lines: layers and operations, dimensions named by evidence."""
from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TypeVar

from traindx.core.observed import Compiled, Site
from traindx.core.observed.ops import Op, OpTrace
from traindx.core.observed.shapes import ModuleCall, OtherBatch, Shape, StepShapes
from traindx.core.recording import Recording
from traindx.signals.op_graph import ELEMENTWISE, plain_name, size_of

WANTED = 2  # the step whose trace is whole, and which was repeated with fewer samples
LOSSES = frozenset((
    "cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss",
    "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss", "gaussian_nll_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss", "hinge_embedding_loss", "ctc_loss"))
_BY_ELEMENT = frozenset(("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "kl_div",
                         "binary_cross_entropy_with_logits", "poisson_nll_loss", "soft_margin_loss"))
_COMPARING = frozenset(("lt", "le", "gt", "ge", "eq", "ne", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__",
                        "logical_and", "logical_or", "__and__", "__or__"))
_READING = frozenset(("item", "tolist", "__float__", "__int__", "__bool__", "__index__", "numpy", "__array__", "data",
                      "detach", "detach_", "requires_grad_", "__get__", "isnan", "isfinite", "cpu", "cuda", "contiguous"))
_IMAGE = ("Conv", "BatchNorm", "MaxPool", "AvgPool", "AdaptiveAvgPool", "AdaptiveMaxPool", "Upsample", "ConvTranspose",
          "InstanceNorm", "PixelShuffle")
_SPACE = {1: ("L",), 2: ("H", "W"), 3: ("D", "H", "W")}
BATCH = "B"
T = TypeVar("T")


@dataclass(frozen=True)
class Dim:
    """A dimension: its name ("" where nothing tells one) and size."""

    name: str
    size: int


Dims = tuple[Dim, ...]


@dataclass(frozen=True)
class Grid:
    """A broadcast in which both sides grow: their shapes, the result's, and the sign between the two."""

    left: Shape
    right: Shape
    out: Shape
    sign: str


@dataclass(frozen=True)
class Row:
    """One layer or operation. ``inputs`` are its operands, ``out`` its first result."""

    where: Site | None
    op: str
    module: str
    inputs: tuple[Dims, ...]
    out: Dims
    note: str = ""
    grid: Grid | None = None


@dataclass(frozen=True)
class Trouble:
    """The program raised with another number of samples than its own."""

    samples: int
    error: str
    where: Site | None


@dataclass(frozen=True)
class BatchDim:
    """How the batch dimension is known: ``how`` is loader or rows, ``fewer`` the samples of the repeated step; else ``why`` not."""

    size: int | None
    how: str = ""
    fewer: int | None = None
    why: str = ""


@dataclass(frozen=True)
class Shapes:
    """All that is told of one step. ``single`` is how the pass with one sample ended: passed, failed, or not checked and why."""

    step: int
    rows: tuple[Row, ...]
    batch: BatchDim
    troubles: tuple[Trouble, ...]
    single: str
    single_why: str = ""
    compiled: bool = False
    cut: bool = False
    variables: dict[tuple[str, int], dict[str, tuple[Dims, str]]] = field(default_factory=dict)


def shapes_of(recording: Recording) -> Shapes | None:
    """None where no training step was seen op by op."""
    traces = [trace for trace in recording.of(OpTrace) if trace.phase == "train"]
    if not traces:
        return None
    others = recording.of(OtherBatch)
    twin = comparable(traces, others)
    trace = next((each for each in traces if each.step == (twin.trace.step if twin and twin.trace else WANTED)), traces[-1])
    seen = next((each for each in recording.of(StepShapes) if each.step == trace.step), None)
    naming = Naming(trace, seen, twin)
    rows = [naming.row(item) for item in _in_order(trace, seen)]
    single = next((other for other in others if other.samples == 1), None)
    return Shapes(
        trace.step, tuple(rows), _batch_dim(twin, others), tuple(_troubles(others)), *_single(single, others),
        compiled=bool(recording.of(Compiled)), cut=trace.cut, variables=naming.variables(seen))


def comparable(traces: Iterable[OpTrace], others: Iterable[OtherBatch]) -> OtherBatch | None:
    """One of these steps with fewer samples: more than one of them if possible, since a size of 1 is many things."""
    fit = [other for other in others if not (other.error or other.why or other.shapes is None)
           and any(_moved(trace, other.trace) for trace in traces)]
    return max(fit, key=lambda other: other.samples, default=None)


def _moved(trace: OpTrace, other: OpTrace | None) -> bool:
    """The same step, but something has another size: it did get fewer samples."""
    return other is not None and trace.step == other.step and any(a.shape != b.shape for a, b in zip(trace.ops, other.ops))


def _batch_dim(twin: OtherBatch | None, others: Sequence[OtherBatch]) -> BatchDim:
    if twin is not None:
        return BatchDim(twin.full, twin.how, twin.samples)
    if not others:
        return BatchDim(None, why="one step only")
    return BatchDim(others[0].full or None, why=next((o.why for o in others if o.why), "it failed" if any(o.error for o in others) else ""))


def _troubles(others: Iterable[OtherBatch]) -> Iterator[Trouble]:
    return (Trouble(other.samples, other.error, other.error_site) for other in others if other.error)


def _single(single: OtherBatch | None, others: Sequence[OtherBatch]) -> tuple[str, str]:
    if single is None:
        return "not-checked", next((other.why for other in others if other.why), "")
    if single.error:
        return "failed", single.error
    return ("not-checked", single.why) if single.why or single.trace is None else ("passed", "")


# -- which rows --


def _in_order(trace: OpTrace, seen: StepShapes | None) -> Iterator[Op | ModuleCall]:
    """Leaf modules of libraries as one row each, operations of the user's own code, in the order in which they ran."""
    calls = seen.calls if seen else ()
    start = seen.start if seen else 0
    library = {(call.path, call.class_name) for call in calls if call.library}
    at = 0
    for call in calls:
        while at < min(call.op, len(trace.ops)):
            if _is_shown(trace.ops[at], start, library):
                yield trace.ops[at]
            at += 1
        if call.library and call.leaf and call.outputs:
            yield call
    for index in range(at, len(trace.ops)):
        if _is_shown(trace.ops[index], start, library):
            yield trace.ops[index]


def _is_shown(op: Op, start: int, library: set[tuple[str, str]]) -> bool:
    if op.index < start or op.site is None or op.name in _READING:
        return False
    return op.name in LOSSES or op.module is None or (op.module, op.module_class) not in library


# -- names --


class Naming:
    """Names of dimensions: what follows the number of samples is the batch; layers tell their own."""

    def __init__(self, trace: OpTrace, seen: StepShapes | None, twin: OtherBatch | None) -> None:
        self.twin = twin
        ops = twin.trace.ops if twin and twin.trace else ()
        calls = twin.shapes.calls if twin and twin.shapes else ()
        self._ops = {op.index: other for op, other in aligned(trace.ops, ops, lambda op: (op.name, op.site, len(op.inputs)))}
        self._calls = {id(call): other for call, other in aligned(seen.calls if seen else (), calls, lambda call: (call.path, call.site))}

    def row(self, item: Op | ModuleCall) -> Row:
        return self._of_op(item) if isinstance(item, Op) else self._of_call(item)

    def _of_op(self, op: Op) -> Row:
        twin = self._ops.get(op.index)
        out = self.dims(op.shape, twin.shape if twin else None)
        inputs = tuple(self.dims(operand.shape, twin.inputs[i].shape if twin else None) for i, operand in enumerate(op.inputs))
        note, grid = broadcast(op)
        return _by_role(Row(op.site, plain_name(op).strip("_") or op.name, op.module or "", inputs, out, note, grid))

    def _of_call(self, call: ModuleCall) -> Row:
        other = self._calls.get(id(call))
        ins = zip_longest(call.inputs, other.inputs if other else ())
        outs = zip_longest(call.outputs[:1], other.outputs[:1] if other else ())
        return _by_role(Row(call.site, call.class_name, call.path, tuple(self.dims(a, b) for a, b in ins if a is not None),
                            next((self.dims(a, b) for a, b in outs if a is not None), ())))

    def dims(self, shape: Shape, other: Shape | None) -> Dims:
        if self.twin is None or other is None or len(shape) != len(other):
            return tuple(Dim("", n) for n in shape)
        full, samples = self.twin.full, self.twin.samples
        return tuple(Dim(follows(a, b, full, samples) or "", a) for a, b in zip(shape, other))

    def variables(self, seen: StepShapes | None) -> dict[tuple[str, int], dict[str, tuple[Dims, str]]]:
        """By file and line: the names that held tensors while the line ran."""
        others = {(v.file, v.line, v.name): v.shape for v in self.twin.shapes.variables} if self.twin and self.twin.shapes else {}
        found: dict[tuple[str, int], dict[str, tuple[Dims, str]]] = {}
        for v in seen.variables if seen else ():
            dims = self.dims(v.shape, others.get((v.file, v.line, v.name)))
            found.setdefault((v.file, v.line), {}).setdefault(v.name, (dims, v.dtype))
        return found


def aligned(first: Sequence[T], second: Sequence[T], key: Callable[[T], object]) -> Iterator[tuple[T, T]]:
    """What is alike in two sequences from the start on, and from the end on: a loop over samples differs in between.

    >>> list(aligned("abbbcd", "abbcd", str))
    [('a', 'a'), ('b', 'b'), ('b', 'b'), ('c', 'c'), ('d', 'd')]
    """
    start = 0
    least = min(len(first), len(second))
    while start < least and key(first[start]) == key(second[start]):
        start += 1
    end = 0
    while end < least - start and key(first[-1 - end]) == key(second[-1 - end]):
        end += 1
    yield from zip(first[:start], second[:start])
    if end:
        yield from zip(first[-end:], second[-end:])


def follows(size: int, other: int, full: int, samples: int) -> str | None:
    """The name of a dimension that was ``size`` for ``full`` samples and ``other`` for ``samples``; None where it stayed.

    >>> follows(96, 93, 32, 31), follows(33, 32, 32, 31), follows(5, 5, 32, 31), follows(7, 3, 32, 31)
    ('B*3', 'B+1', None, '?')
    """
    if size == other:
        return None
    if size % full == 0 and size // full * samples == other:
        return BATCH if size == full else f"{BATCH}*{size // full}"
    return f"{BATCH}{size - full:+d}" if size - full == other - samples else "?"


def _by_role(row: Row) -> Row:
    """Names that a layer gives to its dimensions: features, channels, space, time, classes."""
    names = roles(row.op, len(row.inputs[0]) if row.inputs else 0)
    if row.op in ("cross_entropy", "nll_loss") and row.inputs and len(row.inputs[0]) > 1:
        names = ("", "K")
    inputs = tuple(_named(dims, names) if place == 0 else dims for place, dims in enumerate(row.inputs))
    same_rank = bool(row.inputs) and len(row.inputs[0]) == len(row.out)
    out = row.out if not same_rank or row.op in LOSSES else _named(row.out, names)
    if row.op in ("Embedding", "embedding") and row.inputs:
        ids = row.inputs[0] if row.op == "Embedding" else row.inputs[-1] if len(row.inputs[0]) == 2 else row.inputs[0]
        names = ("", "T", "d") if len(ids) == 2 else ("", "d")
        out = _named(row.out, names)
        inputs = tuple(_named(dims, names) if dims is ids else dims for dims in inputs) if row.op == "Embedding" else inputs
    return replace(row, inputs=inputs, out=out)


def roles(op: str, rank: int) -> tuple[str, ...]:
    """Names by position, "" where the layer says nothing.

    >>> roles("Conv2d", 4), roles("Linear", 3), roles("LSTM", 3)
    (('', 'C', 'H', 'W'), ('', '', 'd'), ('', 'T', 'd'))
    """
    if op.startswith(_IMAGE) or op in ("conv1d", "conv2d", "conv3d", "max_pool2d", "avg_pool2d"):
        space = next((int(letter) for letter in op if letter in "123"), 0)
        return ("", "C", *_SPACE[space]) if space and rank == space + 2 else ()
    if op in ("Linear", "linear", "LayerNorm", "RMSNorm"):
        return ("",) * (rank - 1) + ("d",) if rank else ()
    if op in ("RNN", "LSTM", "GRU", "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer"):
        return ("", "T", "d") if rank == 3 else ()
    return ()


def _named(dims: Dims, names: tuple[str, ...]) -> Dims:
    """Where the batch is known to be the dimension that a layer calls time, the two have changed places."""
    if len(dims) == 3 and len(names) == 3 and names[1] == "T" and dims[1].name == BATCH:
        names = ("T", "", names[2])
    return tuple(dim if dim.name or not name else Dim(name, dim.size) for dim, name in zip_longest(dims, names[:len(dims)], fillvalue="")
                 if isinstance(dim, Dim))


# -- broadcasting --


def broadcast(op: Op) -> tuple[str, Grid | None]:
    """The note on operands that were repeated; a grid where two of them grew, each along the other."""
    name = plain_name(op)
    if name not in ELEMENTWISE | _COMPARING | _BY_ELEMENT:
        return "", None
    shapes = [operand.shape for operand in op.inputs if operand.shape]
    out = joint(shapes)
    if out is None or len(shapes) < 2 or all(shape == out for shape in shapes):
        return "", None
    left, right = next(((a, b) for i, a in enumerate(shapes) for b in shapes[i + 1:] if joint([a, b]) not in (a, b)), (None, None))
    if left is None or right is None:
        small = min(shapes, key=size_of)
        return f"broadcast {shown(small)} -> {shown(out)}", None
    both = joint([left, right]) or out
    sign = {"sub": "-", "add": "+", "mul": "*", "div": "/", "rsub": "-"}.get(name, ",")
    return f"broadcast {shown(left)}+{shown(right)} -> {shown(both)}", Grid(left, right, both, sign)


def joint(shapes: Sequence[Shape]) -> Shape | None:
    """The shape that broadcasting gives; None where there is none.

    >>> joint([(4, 1), (4,)])
    (4, 4)
    """
    rank = max(map(len, shapes), default=0)
    out = []
    for sizes in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes)):
        large = {n for n in sizes if n != 1}
        if len(large) > 1:
            return None
        out.append(large.pop() if large else 1)
    return tuple(out)


def shown(shape: Shape) -> str:
    """
    >>> shown((4, 1)), shown((4,))
    ('(4,1)', '(4)')
    """
    return "(" + ",".join(map(str, shape)) + ")"


def cells(grid: Grid, most: int = 4) -> tuple[list[str], list[str], list[list[str]]]:
    """Heads of the rows and columns and what each cell combines, for the first ``most`` of the two dimensions that grew.

    >>> cells(Grid((2, 1), (2,), (2, 2), "-"))
    (['a0', 'a1'], ['b0', 'b1'], [['a0-b0', 'a0-b1'], ['a1-b0', 'a1-b1']])
    """
    rank = len(grid.out)
    left, right = ((1,) * (rank - len(shape)) + shape for shape in (grid.left, grid.right))
    down = next(d for d in range(rank) if right[d] == 1 < grid.out[d])
    along = next(d for d in range(rank) if left[d] == 1 < grid.out[d])
    rows = [f"a{i}" for i in range(min(most, grid.out[down]))]
    columns = [f"b{j}" for j in range(min(most, grid.out[along]))]
    return rows, columns, [[f"{row}{grid.sign}{column}" for column in columns] for row in rows]


# -- for reading --


def folded(rows: Sequence[Row], longest: int = 60) -> Iterator[Row | tuple[int, int]]:
    """Rows, with repeated blocks (twelve alike layers) once, followed by ``(rows of the block, how often more)``."""
    keys = [(row.where, row.op, _without_numbers(row.module), [_sizes(dims) for dims in row.inputs], _sizes(row.out)) for row in rows]
    at = 0
    while at < len(rows):
        period, more = _repeat(keys, at, longest)
        yield from rows[at:at + period]
        if more:
            yield period, more
        at += period * (1 + more)


def _repeat(keys: Sequence[object], at: int, longest: int) -> tuple[int, int]:
    """The shortest block from ``at`` on that comes at least three times in a row, and how often more; (1, 0) if none."""
    for period in range(1, min(longest, (len(keys) - at) // 3) + 1):
        more = 0
        while keys[at:at + period] == keys[at + period * (more + 1):at + period * (more + 2)]:
            more += 1
        if more >= 2:
            return period, more
    return 1, 0


def _sizes(dims: Dims) -> list[int]:
    return [dim.size for dim in dims]


def _without_numbers(path: str) -> str:
    return ".".join("*" if part.isdigit() else part for part in path.split("."))


def names_on(site: Site) -> list[str]:
    """Plain names that the statement of a line reads, in order."""
    try:
        tree = ast.parse(f"{site.code} pass" if site.code.endswith(":") else site.code)
    except SyntaxError:
        return []
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    return list(dict.fromkeys(node.id for node in sorted(names, key=lambda node: node.col_offset)))
