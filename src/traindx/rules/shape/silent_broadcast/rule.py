"""Two batches are broadcast against each other.

What it is:
An operation in the loss combines one value per sample in a column, [B, 1], with one value per sample in a row, [B]. Broadcasting makes
[B, B] of them: every sample's prediction meets every sample's target.

Why it is silent:
The result is averaged to one number, which falls at first. Gradients exist and are finite.

What you see:
A regression that ends at the variance of the target and predicts the mean for everyone; a policy gradient that learns nothing.

Look-alikes:
Pairwise distances, attention scores, masks and positional grids also make [n, n] of two vectors, on purpose: both sides are expanded where
they meet, or the result is used as a matrix (multiplied, masked, indexed, sorted, put through a softmax) before it is averaged.

Fix:
Give both sides the same shape before they meet.

Before:
    ((pred - target) ** 2).mean()
After:
    ((pred.squeeze(-1) - target) ** 2).mean()

Experiment:
Squeeze the extra dimension: if the loss falls below where it stopped before, the broadcast was the cause.

Source:
PyTorch documentation, "Broadcasting semantics"; the effect by arithmetic: averaged over all pairs, the best constant prediction is the mean.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.ops import Input, Op, OpTrace
from traindx.core.observed.program import LossCall
from traindx.core.text import Text
from traindx.signals.op_graph import ELEMENTWISE, EXPANDING, PASSING, REDUCING, OpGraph, plain_name, size_of

ZH = """两个 batch 互相广播

是什么：
损失里有一步运算，一边是列 [B, 1]，一边是 [B]，都是每个样本一个值。广播之后变成 [B, B]：每个样本的预测都和所有样本的目标配了一次对。

为什么不报错：
结果最后求平均，只剩一个数，开始也会下降。梯度存在，也都是有限值。

你会看到：
回归的损失停在目标的方差附近，对谁都预测平均值；策略梯度什么也学不到。

容易混淆的情况：
成对距离、注意力分数、掩码、位置网格也会由两个向量得到 [n, n]，但那是有意的：两边在相遇处各自扩展维度，或者结果先当矩阵用
（相乘、加掩码、取下标、排序、做 softmax），再求平均。

怎么改：
运算之前先让两边形状一致。

改前：
    ((pred - target) ** 2).mean()
改后：
    ((pred.squeeze(-1) - target) ** 2).mean()

对照实验：
去掉多余的维度：损失若降到原来的平台以下，病因就是广播。

来源：
PyTorch 文档「Broadcasting semantics」；影响由算术得出：对所有配对求平均时，最好的常数预测就是均值。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "loss/initial-loss-off", "loss/unscaled-target", "optim/lr-*", "loss/constant", "data/labels-misaligned",
            "init/dead-units", "record/metric-mistake", "shape/batch-mixing")
EXPERIMENT = "squeeze-operand"

CAUSE = Text("{left} with {right} grows to {out} here: each of the {n} sample{n:|s} is paired with all {n}, and the loss averages over the "
             "pairs.",
             "{left} 和 {right} 在这里广播成了 {out}：{n} 个样本两两配对，损失是对所有配对求的平均。")
FIX = Text("Give both sides one shape before they meet, for example with .squeeze(-1) or .view_as(...).",
           "运算前让两边形状一致，例如用 .squeeze(-1) 或 .view_as(...)。")
SHAPES = Text("shapes of the operands and of the result", "两个输入和结果的形状")
ALIKE = Text("one value per sample", "每个样本一个值")

TRANSPOSING = ("t", "T", "mT", "transpose")
COMPARING = frozenset(("lt", "le", "gt", "ge", "__lt__", "__le__", "__gt__", "__ge__", "less", "less_equal", "greater", "greater_equal"))
BINARY = frozenset(("add", "sub", "mul", "div", "true_divide", "divide", "multiply", "subtract", "rsub", "pow", "maximum", "minimum",
                    "min", "max", "fmax", "fmin", "where", "xlogy", "addcmul", "addcdiv", "logaddexp", "lerp"))


def check(traces: list[OpTrace], losses: list[LossCall] | None) -> Iterator[Finding]:
    for trace in traces:
        if trace.phase != "train":
            continue
        graph = OpGraph(trace)
        counts = sample_counts(trace, losses or [])
        for op in trace.ops:
            pair = grown(op, counts)
            if pair and op.index in graph.in_loss and is_accident(graph, op, pair):
                yield _finding(trace, op, pair)
                return


def sample_counts(trace: OpTrace, losses: list[LossCall]) -> set[int]:
    """Numbers that count samples in this step: the batch, and the sizes and lengths of the loss targets."""
    shapes = [*trace.targets, *(call.target_shape for call in losses if call.step == trace.step)]
    counts = {trace.batch or 0, *(n for shape in shapes for n in shape), *(size_of(shape) for shape in shapes)}
    for op in trace.ops:  # no torch loss may be called at all, and no module either
        if op.inputs and op.inputs[0].origin == "input" and op.inputs[0].shape:
            counts |= {op.inputs[0].shape[0], size_of(op.inputs[0].shape[:2])}
        if trace.batch is None:  # tensors alone: the data are those that were there before the step
            counts |= {given.shape[0] for given in op.inputs if given.op < 0 and given.shape and not (given.origin or given.requires_grad)}
    return counts - {0, 1}


def grown(op: Op, counts: set[int]) -> tuple[Input, Input] | None:
    """The two operands, where each has been repeated as many times as there are samples, in different dimensions."""
    operands = [operand for operand in op.inputs if operand.shape]
    if plain_name(op) not in BINARY or len(operands) < 2:
        return None
    for i, left in enumerate(operands):
        for right in operands[i + 1:]:
            if set(_repeats(left.shape, op.shape)) & counts and _crossed(left.shape, right.shape, op.shape):
                return left, right
    return None


def _repeats(shape: tuple[int, ...], out: tuple[int, ...]) -> list[int]:
    """Sizes of the dimensions along which ``shape`` was repeated to ``out``."""
    padded = (1,) * (len(out) - len(shape)) + shape
    return [n for was, n in zip(padded, out) if was == 1 and n > 1]


def _crossed(left: tuple[int, ...], right: tuple[int, ...], out: tuple[int, ...]) -> bool:
    """One size, twice in the result: once from either side."""
    return len(_repeats(left, out)) == len(_repeats(right, out)) == 1 and _repeats(left, out) == _repeats(right, out)


def is_accident(graph: OpGraph, op: Op, pair: tuple[Input, Input]) -> bool:
    if not any(operand.requires_grad for operand in pair) and not _weighs_samples(graph, op):
        return False
    if not all(_follows_samples(graph, operand) for operand in pair) or _same_source(graph, *pair):
        return False
    return not _meant(graph, op, pair) and not _used_as_matrix(graph, op)


def _weighs_samples(graph: OpGraph, op: Op) -> bool:
    """Nothing here is trained, but the pairs then meet one trained value per sample: an advantage and its log-probability."""
    return any(user.shape == op.shape and any(operand.requires_grad and operand.shape and _repeats(operand.shape, user.shape) for operand in user.inputs)
               for user in graph.uses(op, _arithmetic))


def _follows_samples(graph: OpGraph, operand: Input) -> bool:
    """The operand's values come from data or a model's output, not from parameters and constants alone."""
    if operand.op not in graph.ops:
        return operand.origin != "parameter"
    return any(outer.origin != "parameter" for outer in graph.outside(operand.op))


def _same_source(graph: OpGraph, left: Input, right: Input) -> bool:
    """Both are one tensor in two shapes: all pairs of its elements are meant."""
    a, b = graph.source(left), graph.source(right)
    return a is not None and a is b


def _meant(graph: OpGraph, op: Op, pair: tuple[Input, Input]) -> bool:
    """The program expands where the two meet: both sides, or one of two computed sides, or one that is then laid crosswise."""
    expansions = [_expansion(graph, op, operand) for operand in pair]
    if all(expansions):
        return True
    for expansion, operand in zip(expansions, pair):
        if expansion is not None:
            both_computed = all(side.requires_grad for side in pair)
            at_the_op = operand.requires_grad and expansion.site == op.site
            if both_computed or at_the_op or expansion.name in TRANSPOSING or not _one_per_sample(pair):
                return True
    return False


def _one_per_sample(pair: tuple[Input, Input]) -> bool:
    """Both hold as many numbers as the other: a value per sample on either side, as a prediction and its target do."""
    return size_of(pair[0].shape) == size_of(pair[1].shape)


def _expansion(graph: OpGraph, op: Op, operand: Input) -> Op | None:
    """Where a dimension of size 1 was put in by hand, in the function where the op is."""
    maker = graph.maker(operand)
    while maker is not None and maker.name in PASSING and _nearby(maker.site, op.site):
        if maker.name in EXPANDING or "None" in _index_of(maker) or (maker.name in ("view", "reshape") and 1 in maker.shape):
            return maker
        maker = graph.maker(maker.inputs[0]) if maker.inputs else None
    return None


def _index_of(op: Op) -> list[str]:
    return _parts((op.scalars or {}).get("1", "")) if op.name == "__getitem__" else []


def _parts(index: str) -> list[str]:
    """Top-level items of an index written as text; None inside a slice does not count."""
    depth, parts, word = 0, [], ""
    inner = index[1:-1] if index.startswith("(") else index
    for letter in inner:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(word.strip())
            word = ""
        else:
            word += letter
    return [*parts, word.strip()]


def _nearby(one: Site | None, other: Site | None) -> bool:
    """In one function; at the top level of a script, within a few lines."""
    return (one is not None and other is not None and one.file == other.file and one.function == other.function
            and (one.function != "<module>" or abs(one.line - other.line) <= 5))


def _used_as_matrix(graph: OpGraph, op: Op) -> bool:
    """Anything but arithmetic and an average is done with the pairs, or they meet a matrix that was made on purpose.

    A comparison with a number (the two branches of a Huber or a quantile loss) is arithmetic too.
    """
    family = {op.index}
    for user in graph.uses(op, lambda user: _arithmetic(user) and user.shape[-2:] == op.shape[-2:]):
        name = plain_name(user)
        family.add(user.index)
        if name in REDUCING or name in ("item", "detach", "isnan", "isfinite", "any", "all") or (name in ("std", "var") and not user.shape):
            continue
        if not _arithmetic(user) or "dim" in (user.scalars or {}):
            return True
        if any(_made_square(graph, operand, op) for operand in user.inputs if operand.op not in family):
            return True
    return False


def _arithmetic(op: Op) -> bool:
    return plain_name(op) in ELEMENTWISE or (op.name in COMPARING and len(op.inputs) == 1)


def _made_square(graph: OpGraph, operand: Input, op: Op) -> bool:
    """Another matrix of all pairs, which did not grow by the same accident."""
    if operand.shape != op.shape:
        return False
    maker = graph.source(operand)
    while maker is not None and _arithmetic(maker):
        square = [each for each in maker.inputs if each.shape == op.shape]
        if not square:
            return False
        operand = square[0]
        maker = graph.source(operand)
    return True


def _finding(trace: OpTrace, op: Op, pair: tuple[Input, Input]) -> Finding:
    left, right, out = _shown(pair[0].shape), _shown(pair[1].shape), _shown(op.shape)
    n = next(iter(_repeats(pair[0].shape, op.shape)))
    return Finding(
        cause=CAUSE.fill(left=left, right=right, out=out, n=n), fix=FIX, where=op.site,
        evidence=(Evidence(SHAPES, f"{left}, {right} -> {out}", ALIKE, step=trace.step),), first_step=trace.step)


def _shown(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
