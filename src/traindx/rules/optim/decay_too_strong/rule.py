"""Weight decay is stronger than learning.

What it is:
The decay pulls the weights to zero faster than the gradient moves them: they shrink towards nothing, and the model answers the same
for every input.

Why it is silent:
Shrinking is what weight decay is for. The loss settles at the level of guessing, which looks like a hard problem.

What you see:
A weight norm that falls steadily, a loss pinned at chance, in training as in validation.

Look-alikes:
Moderate decay in a long run (the loss falls all the same), pruning and sparsity that are meant.

Fix:
Lower the weight decay (usual: 1e-4 for SGD and Adam, 0.01 to 0.1 for AdamW), or the weight of a hand-written penalty.

Before:
    optimizer = SGD(model.parameters(), lr=0.1, weight_decay=0.5)
After:
    optimizer = SGD(model.parameters(), lr=0.1, weight_decay=1e-4)

Experiment:
Weight decay 0: the loss falls.

Source:
The update -lr (g + wd w): decay rules where wd |w| > |g|, by formula.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.amounts import percent
from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.learning import Drift, UpdateSeen
from traindx.core.observed.program import LossCall, OptimizerMade
from traindx.core.text import Text, number
from traindx.signals.learning import Course, Learners, ordinary, typical
from traindx.signals.traces import TrainingTraces

ZH = """权重衰减压过了学习

是什么：
衰减把权重拉向零，比梯度推动它们还快：权重越缩越小，模型对什么输入都给同样的答案。

为什么不报错：
权重衰减本来就是要让权重变小。损失停在瞎猜的水平，看着像是题目太难。

你会看到：
权重范数一路下降，训练和验证的损失都钉在瞎猜的水平。

容易混淆的情况：
长时间训练里适度的衰减（损失照样下降）；有意的剪枝和稀疏化。

怎么改：
调低 weight decay（常用值：SGD 和 Adam 用 1e-4，AdamW 用 0.01 到 0.1），或者调低手写惩罚项的权重。

改前：
    optimizer = SGD(model.parameters(), lr=0.1, weight_decay=0.5)
改后：
    optimizer = SGD(model.parameters(), lr=0.1, weight_decay=1e-4)

对照实验：
weight decay 设为 0：损失下降。

来源：
更新式 -lr (g + wd w)：当 wd |w| > |g| 时由衰减主导，按公式得出。
"""
LEVEL = "warning"
STEP = 3
EXPLAINS = ("curve/plateau", "init/gradient-vanishing", "init/activation-collapse", "init/dead-units", "init/symmetric", "loss/constant",
            "optim/lr-too-low", "optim/lr-too-high", "data/labels-misaligned")
EXPERIMENT = "decay-0"

TOWARD_ZERO = 0.7  # cosine of the update with minus the weights: half of its square is decay
SHRUNK = 0.5  # of the weights' size at the start
STUCK = 0.8  # of the first loss

CAUSE = Text("The updates point to zero (cosine {cosine} with minus the weights): the weights shrank to {scale} of their size while the "
             "loss went from {start} to {end}.",
             "更新指向零点（与「权重取负」的余弦是 {cosine}）：权重缩到原来的 {scale}，损失却从 {start} 变到 {end}。")
FIX = Text("Lower the weight decay (now {decay}); usual values are 1e-4 for SGD and Adam, 0.01 to 0.1 for AdamW.",
           "调低权重衰减（现在是 {decay}）；常用值：SGD 和 Adam 用 1e-4，AdamW 用 0.01 到 0.1。")
FIX_TERM = Text("Lower the weight of the penalty on the parameters.", "调低参数惩罚项的系数。")
POINTS = Text("cosine of the updates with minus the weights, median", "更新与「权重取负」的余弦（中位数）")
SIZE = Text("size of the weights against their start", "权重的大小与起点之比")


def check(learners: Learners, updates: list[UpdateSeen], drift: Drift, course: Course, losses: list[LossCall] | None,
          traces: TrainingTraces | None) -> Iterator[Finding]:
    cosine = typical([update.toward_zero for update in updates if 2 <= update.step <= 64])
    start, end = _course(losses or [], course)
    if cosine < TOWARD_ZERO or drift.scale > SHRUNK or end < STUCK * start or not ordinary(learners, losses or [], course.start):
        return
    made = next(iter(learners.stepped()), None)
    decay = _decay(made)
    penalty = _penalty(traces) if traces and not decay else None
    where = penalty or (made.site if made else None)
    if not decay and penalty is None:
        return
    yield Finding(
        cause=CAUSE.fill(cosine=number(cosine), scale=percent(drift.scale, 1), start=number(start), end=number(end)),
        fix=FIX.fill(decay=number(decay)) if decay else FIX_TERM, where=where,
        also=(made.site,) if made and made.site and made.site != where else (),
        evidence=(Evidence(POINTS, number(cosine), Text("about 0",
                                                        "约 0")), Evidence(SIZE, number(drift.scale), Text("about 1 or more", "约 1 或更大"))),
        first_step=updates[0].step, confidence="likely", because=Text("judged from the direction of the updates", "根据更新的方向判断"))


def _course(losses: list[LossCall], course: Course) -> tuple[float, float]:
    """The data's loss alone where it is known: a penalty falls of itself."""
    values = [call.value for call in losses if call.grad and call.value is not None]
    if len(values) < 8:
        return course.start, course.end
    return typical(values[:4]), typical(values[-4:])


def _decay(made: OptimizerMade | None) -> float:
    rates = []
    for settings in made.settings if made else ():
        try:
            rates.append(float(settings.get("weight_decay", "0")))
        except ValueError:
            continue
    return max(rates, default=0.0)


def _penalty(traces: TrainingTraces) -> Site | None:
    """The line that takes a norm of parameters in the loss."""
    for trace in traces.traces:
        above = trace.above(trace.root)
        for op in trace.ops:
            norm = op.name in ("pow", "norm", "square", "abs", "mul", "linalg_norm", "vector_norm")
            of_matrix = bool(op.inputs) and bool(op.inputs[0].parameter) and len(op.inputs[0].shape) > 1
            if norm and of_matrix and op.index in above and op.module is None:
                return op.site
    return None
