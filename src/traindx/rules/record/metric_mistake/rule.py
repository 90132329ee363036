"""The metric is computed wrongly.

What it is:
The training is sound, but the number that reports on it is not: the class is picked over the wrong dimension, predictions are
compared with targets of another shape, logits are cut at 0.5 (or probabilities at 0), batches count alike though the last
one is smaller, or answers about every pixel or node are divided by the number of samples.

Why it is silent:
All of these run: shapes agree by accident or broadcast, and the result lies between 0 and 1.

What you see:
A loss that falls and an accuracy that does not follow, or that changes with the batch size.

Look-alikes:
An argmax over positions (a span, a pointer, a keypoint) is meant where the loss is over positions too. A mask of equal labels
compares labels with labels. A threshold other than 0.5 on probabilities is a choice.

Fix:
Take the class over the dimension that the loss takes as the classes', compare equal shapes, cut logits at 0.

Before:
    guess = logits.argmax(1)
After:
    guess = logits.argmax(-1)

Experiment:
Compute the metric of one batch by hand, sample by sample.

Source:
The op trace of an evaluation, and arithmetic on its values.
"""
from __future__ import annotations

import re
from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.ops import Op, OpTrace
from traindx.core.observed.readings import Evaluation, Pass, Quantity, Said
from traindx.core.text import Text, number
from traindx.signals.layout import Source, choices, class_dims
from traindx.signals.op_graph import PASSING, REDUCING, size_of
from traindx.signals.said import FEWEST, Match, agrees, matches

ZH = """指标算错了

是什么：
训练本身没问题，报出来的数字却不对：取类别时用错了维度；预测和标签形状不同就拿来比较；logits 按 0.5 划线（或者概率按 0 划线）；
最后一个 batch 比较小，却和别的 batch 算同样的分量；每个像素或节点都算了一个答案，却除以样本数。

为什么不报错：
这些写法都能运行：形状碰巧相同，或者自动广播了，结果也都落在 0 和 1 之间。

你会看到：
损失在下降，准确率却不跟着上升；或者换个 batch 大小，准确率就变了。

容易混淆的情况：
如果损失也是在位置上算的（片段、指针、关键点），那么在位置维取 argmax 就是对的。同类标签的掩码是标签和标签比较。
给概率选 0.5 以外的阈值，是一种选择。

怎么改：
沿着损失所认的类别维取类别，比较前让形状一致，logits 用 0 划线。

改前：
    guess = logits.argmax(1)
改后：
    guess = logits.argmax(-1)

对照实验：
拿一个 batch，逐个样本手算一遍指标。

来源：
一次验证的算子轨迹，以及对其数值的算术。
"""
LEVEL = "warning"
STEP = 5
EXPLAINS = ("curve/train-val-gap", "curve/plateau")

MATTERS = 0.005  # half a point of accuracy (rule of thumb): below it, which mean was taken is a matter of taste
EQUALS = frozenset(("eq", "__eq__", "ne", "__ne__"))
ABOVE = frozenset(("gt", "__gt__", "ge", "__ge__"))

CAUSE_DIM = Text(
    "{op} takes the largest over dimension {taken} of the output {shape}, but the loss takes dimension {classes} as the classes.",
    "{op} 在输出 {shape} 的第 {taken} 维上取最大，而损失把第 {classes} 维当作类别维。")
FIX_DIM = Text("Take it over the classes: in the layout that it is given here, the classes are not dimension {dim}.",
               "改成沿类别维取最大：按这里收到的布局，第 {dim} 维不是类别维。")
CAUSE_BROADCAST = Text("The comparison of {left} with {right} broadcasts to {out}: every prediction is compared with every target.",
                       "{left} 和 {right} 比较时广播成了 {out}：每个预测都和每个目标比了一遍。")
FIX_BROADCAST = Text("Give both the same shape, e.g. prediction.squeeze(1).", "让两者形状一致，例如 prediction.squeeze(1)。")
CAUSE_CUT = Text("Logits are cut at {cut}: as a probability that is {p}, not one half. The loss ({loss}) takes the same tensor as logits.",
                 "logits 以 {cut} 为界：换算成概率是 {p}，不是二分之一。损失（{loss}）把同一个张量当作 logits。")
FIX_CUT = Text("Cut logits at 0, or take the sigmoid first and cut at 0.5.", "logits 以 0 为界，或者先做 sigmoid，再以 0.5 为界。")
CAUSE_MEAN = Text("The accuracy said is a mean over batches, though the last one has only {last} sample{last:|s} instead of {batch}: "
                  "over the samples it is {right}.",
                  "给出的准确率是各个 batch 的平均，可是最后一个 batch 只有 {last} 个样本，不是 {batch} 个：按样本算应当是 {right}。")
FIX_MEAN = Text("Add up the right answers and divide by the number of samples.", "累加答对的个数，再除以样本总数。")
CAUSE_MANY = Text("The accuracy said is {value}: {right} right answers were divided by {samples} sample{samples:|s}, but each sample has several targets.",
                  "给出的准确率是 {value}：用答对的 {right} 个除以了 {samples} 个样本，但每个样本有好几个目标。")
FIX_MANY = Text("Divide by the number of targets that were compared: targets.numel().", "除以比较过的目标个数：targets.numel()。")
ONE = Text("at most 1", "不超过 1")
ACCURACY = re.compile(r"(?<![a-z])acc(uracy|uracies)?(?![a-z])", re.IGNORECASE)
TAKEN = Text("size of the dimension that was taken", "所取那一维的大小")
CLASSES = Text("the {count} class{count:|es}", "{count} 个类别")
SIZE = Text("elements compared", "比较的元素个数")
CUT = Text("threshold on the logits", "logits 的阈值")
SAID = Text("number that the program gave", "程序给出的数字")
RIGHT = Text("{value} over all samples", "按全部样本是 {value}")


def check(traces: list[OpTrace], evaluations: list[Evaluation] | None) -> Iterator[Finding]:
    known = {source.place: source for trace in traces for source in class_dims(trace)}
    for trace in traces:
        for op in trace.ops:
            if op.name in EQUALS and _reduced(trace, op) and _all_pairs(op) and any(_computed(trace, o.op) for o in op.inputs):
                yield _broadcast(trace, op)
            elif op.name in ABOVE and (loss := _cut_logits(trace, op)):
                yield _cut(trace, op, loss)
        for op, source in choices(trace):
            loss_source = known.get(source.place)
            if loss_source is not None and loss_source.dim != source.dim and _is_metric(trace, op):
                yield _wrong_dim(trace, op, source, loss_source)
    for found in matches(evaluations or [], "over batches"):
        if abs(found.said.value / (100 if found.said.value > 1 else 1) - found.right) >= MATTERS:
            yield _mean_of_batches(found)
    told = [each for each in map(_above_one, evaluations or []) if each is not None]
    if len(told) >= FEWEST:
        yield _many_targets(*told[0])


def _above_one(evaluation: Evaluation) -> tuple[Said, Quantity, Pass, int] | None:
    """A number in a line that speaks of accuracy, which is above 1 and is a count of right answers over the number of samples."""
    for said in evaluation.said:
        if said.value > 1.0 and said.site is not None and ACCURACY.search(said.site.code):
            for one in evaluation.passes:
                for quantity in one.quantities:
                    share = quantity.total / max(one.samples, 1)
                    if quantity.counting and share > 1.0 and agrees(said, share):
                        return said, quantity, one, evaluation.step
    return None


def _users(trace: OpTrace, index: int) -> list[Op]:
    return [op for op in trace.ops if any(operand.op == index for operand in op.inputs)]


def _reduced(trace: OpTrace, op: Op) -> bool:
    """Whether the comparison is summed up to one number: a mask that is used as a matrix is not."""
    users = _users(trace, op.index)
    return bool(users) and all((user.name in REDUCING and user.shape == ()) or (user.name in PASSING and _reduced(trace, user))
                               for user in users)


def _all_pairs(op: Op) -> bool:
    if len(op.inputs) != 2:
        return False
    left, right = (size_of(operand.shape) for operand in op.inputs)
    return left == right > 1 and size_of(op.shape) == left * right


def _computed(trace: OpTrace, index: int) -> bool:
    """Whether parameters had a part in it: a prediction, not a label."""
    seen, stack = set(), [index]
    while stack:
        at = stack.pop()
        if 0 <= at < len(trace.ops) and at not in seen:
            seen.add(at)
            if any(operand.parameter for operand in trace.ops[at].inputs):
                return True
            stack += [operand.op for operand in trace.ops[at].inputs]
    return False


def _cut_logits(trace: OpTrace, op: Op) -> Op | None:
    """The loss on logits that takes the tensor which is compared with 0.5 here, and whose outcome meets a comparison."""
    if len(op.inputs) != 1 or (op.scalars or {}).get("1") != "0.5" or not _meets_targets(trace, op):
        return None
    cut = _passed(trace, op.inputs[0].op)
    losses = (each for each in trace.ops if each.name == "binary_cross_entropy_with_logits" and each.inputs)
    return next((loss for loss in losses if cut >= 0 and _passed(trace, loss.inputs[0].op) == cut), None)


def _passed(trace: OpTrace, index: int) -> int:
    """The op behind reshapes and casts."""
    while 0 <= index < len(trace.ops) and trace.ops[index].name in PASSING and trace.ops[index].inputs:
        index = trace.ops[index].inputs[0].op
    return index


def _meets_targets(trace: OpTrace, op: Op) -> bool:
    return any(user.name in EQUALS or (user.name in PASSING and _meets_targets(trace, user)) for user in _users(trace, op.index))


def _is_metric(trace: OpTrace, op: Op) -> bool:
    """What was picked has the targets' shape and is compared, or goes to NumPy to be."""
    size = size_of(op.shape)
    picked_like_targets = any(size_of(shape) == size for shape in trace.targets) or not trace.targets
    return picked_like_targets and _compared(trace, op)


def _compared(trace: OpTrace, op: Op) -> bool:
    reads = ("numpy", "tolist", "__array__")
    return any(user.name in EQUALS or user.name in reads or (user.name in PASSING and _compared(trace, user))
               for user in _users(trace, op.index))


def _wrong_dim(trace: OpTrace, op: Op, source: Source, loss: Source) -> Finding:
    sizes = op.inputs[0].shape if source.cut else source.op.shape
    shape = list(sizes)
    return Finding(
        cause=CAUSE_DIM.fill(op=op.name, shape=shape, taken=source.dim, classes=loss.dim),
        fix=FIX_DIM.fill(dim=(op.scalars or {}).get("1", (op.scalars or {}).get("dim", ""))), where=op.site,
        evidence=(Evidence(TAKEN, sizes[source.dim], CLASSES.fill(count=sizes[loss.dim]), step=trace.step),),
        first_step=trace.step)


def _broadcast(trace: OpTrace, op: Op) -> Finding:
    left, right = (list(operand.shape) for operand in op.inputs)
    return Finding(cause=CAUSE_BROADCAST.fill(left=left, right=right, out=list(op.shape)), fix=FIX_BROADCAST, where=op.site,
                   evidence=(Evidence(SIZE, size_of(op.shape), str(size_of(op.inputs[0].shape)), step=trace.step),), first_step=trace.step)


def _cut(trace: OpTrace, op: Op, loss: Op) -> Finding:
    return Finding(
        cause=CAUSE_CUT.fill(cut="0.5", p="0.62", loss=loss.name), fix=FIX_CUT, where=op.site,
        also=tuple(s for s in (loss.site,) if s is not None), evidence=(Evidence(CUT, 0.5, "0", step=trace.step),), first_step=trace.step)


def _mean_of_batches(found: Match) -> Finding:
    said, one = found.said, found.evaluated
    return Finding(
        cause=CAUSE_MEAN.fill(last=one.last_batch, batch=one.batch, right=number(found.right, 4)), fix=FIX_MEAN,
        where=found.quantity.site or said.site, also=tuple(s for s in (said.site,) if s is not None and s != found.quantity.site),
        evidence=(Evidence(SAID, f"{said.value:.{said.decimals}f}", RIGHT.fill(value=number(found.right, 4)), step=found.step),),
        first_step=found.step)


def _many_targets(said: Said, quantity: Quantity, one: Pass, step: int) -> Finding:
    value = f"{said.value:.{said.decimals}f}"
    return Finding(
        cause=CAUSE_MANY.fill(value=value, right=round(quantity.total), samples=one.samples), fix=FIX_MANY, where=said.site,
        also=tuple(s for s in (quantity.site,) if s is not None and s != said.site),
        evidence=(Evidence(SAID, value, ONE, step=step),), first_step=step)
