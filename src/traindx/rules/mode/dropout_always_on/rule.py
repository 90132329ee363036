"""Dropout stays on in eval mode.

What it is:
A dropout that is called as a function drops values although its module is in eval mode: ``F.dropout`` without
``training=self.training``, attention with a fixed ``dropout_p``, or a random mask made by hand.

Why it is silent:
Only ``nn.Dropout`` listens to ``eval()``. ``F.dropout`` takes ``training=True`` unless told otherwise, and
attention has no such flag.

What you see:
Predictions that differ from call to call in eval mode, and a test score below what the weights can do.

Look-alikes:
Monte Carlo dropout runs the same input many times in order to average. The noise of a VAE or of diffusion sampling
is no dropout.

Fix:
Pass the mode on, or use ``nn.Dropout``.

Before:
    h = F.dropout(h, 0.5)
After:
    h = F.dropout(h, 0.5, training=self.training)

Experiment:
Run the same input twice in eval mode: the two outputs must be equal.

Source:
PyTorch documentation of functional.dropout ("training: apply dropout if True", default True) and
scaled_dot_product_attention ("always applies dropout according to the specified dropout_p").
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.mode import DropInEval, ForwardPass
from traindx.core.observed.ops import Input, Op, OpTrace
from traindx.core.text import Text, number, same
from traindx.signals.op_graph import OpGraph, plain_name

ZH = """dropout 在推理模式下仍然起作用

是什么：
以函数形式调用的 dropout 在模块处于推理模式时照样丢弃：``F.dropout`` 没写 ``training=self.training``，
注意力的 ``dropout_p`` 写死了，或者手写了随机掩码。

为什么不报错：
只有 ``nn.Dropout`` 听 ``eval()`` 的。``F.dropout`` 不写参数就当作 ``training=True``；注意力函数根本没有这个开关。

你会看到：
推理模式下，同一个输入每次预测都不同；测试分数低于权重本来能达到的水平。

容易混淆的情况：
蒙特卡洛 dropout 会把同一个输入跑很多遍再取平均。VAE 和扩散模型采样时的噪声不是 dropout。

怎么改：
把模式传进去，或者改用 ``nn.Dropout``。

改前：
    h = F.dropout(h, 0.5)
改后：
    h = F.dropout(h, 0.5, training=self.training)

对照实验：
在推理模式下把同一个输入跑两遍：两次输出必须相同。

来源：
PyTorch 文档 functional.dropout（training 默认为 True）与 scaled_dot_product_attention（总是按 dropout_p 丢弃）。
"""
LEVEL = "error"
STEP = 3
EXPLAINS = ("curve/train-val-gap", "curve/noise-sized-gain", "repro/validation-moves-rng")
EXPERIMENT = "same-input-twice"

REPEATED = 0.6  # of the forwards got the very input of the one before: Monte Carlo dropout
CAUSE = Text(
    "{function} drops {rate} of the values here although {module} is in eval mode: each call predicts something else.",
    "{module} 已经处于推理模式，{function} 在这里仍然丢弃值（比例 {rate}）：同一个输入，每次预测都不同。")
CAUSE_MASK = Text(
    "A random mask zeroes hidden values here although {module} is in eval mode: predictions change from call to call.",
    "{module} 已经处于推理模式，这里的随机掩码仍然把一部分隐藏值清零：同一个输入，每次预测都不同。")
FIX = Text("Give {function} training=self.training, or use an nn.Dropout module.",
           "给 {function} 传 training=self.training，或改用 nn.Dropout 模块。")
FIX_ATTENTION = Text("Pass dropout_p=self.p if self.training else 0.0.",
                     "改成 dropout_p=self.p if self.training else 0.0。")
FIX_MASK = Text("Apply the mask only where self.training holds, or use nn.Dropout.",
                "只在 self.training 为真时使用掩码，或改用 nn.Dropout。")
FORWARDS = Text("forwards in eval mode with this dropout at work", "推理模式下，这个 dropout 仍起作用的前向次数")


MASK_SEEN = Text("evaluation passes, looked at op by op, with this mask", "逐个运算看过的评估里，出现这个掩码的次数")
BECAUSE = Text("a random mask on hidden units in eval mode may be meant", "也可能有意在推理模式下给隐藏单元加随机掩码")
UNIFORM = frozenset(("rand", "rand_like", "uniform_"))
BERNOULLI = frozenset(("bernoulli", "bernoulli_"))
COMPARED = frozenset(("lt", "le", "gt", "ge", "__lt__", "__le__", "__gt__", "__ge__", "less", "greater"))
SCALED = frozenset(("div", "mul", "float", "to", "type_as", "type", "half", "bool", "__invert__", "logical_not", "unsqueeze",
                    "view", "reshape", "expand", "expand_as", "clone", "add", "floor"))


def check(passes: list[ForwardPass], drops: list[DropInEval] | None, traces: list[OpTrace] | None) -> Iterator[Finding]:
    for drop in drops or []:
        if drop.repeats < REPEATED * drop.forwards:
            yield _finding(drop)
    averaged = {each.model for each in passes if each.count > 1 and each.same_input >= REPEATED * each.count}
    for trace in traces or []:
        graph = OpGraph(trace)
        for op in trace.ops:
            if trace.model in averaged or op.module_training is not False:
                continue
            draw = next((draw for mask, hidden in _masked(op) if (draw := _random_mask(graph, mask)) is not None
                         and _is_hidden(graph, hidden)), None)
            if draw is not None:
                yield _mask_finding(op, draw, trace)
                return


def _masked(op: Op) -> Iterator[tuple[Input, Input]]:
    """(what may be a mask, what it is laid on): either way round in a product, fixed in a fill with zero."""
    name = plain_name(op)
    if name == "mul" and len(op.inputs) == 2:
        yield op.inputs[0], op.inputs[1]
        yield op.inputs[1], op.inputs[0]
    elif name.startswith("masked_fill") and len(op.inputs) >= 2:
        scalars = op.scalars or {}
        if scalars.get("2", scalars.get("value")) in ("0", "0.0"):
            yield op.inputs[1], op.inputs[0]


def _random_mask(graph: OpGraph, operand: Input, depth: int = 6) -> Op | None:
    """The draw behind a 0/1 mask: ``bernoulli``, or uniform numbers that are compared; uncompared ones are noise."""
    op, compared = graph.maker(operand), False
    while op is not None and depth:
        if op.name in BERNOULLI or (op.name in UNIFORM and compared):
            return op
        compared |= op.name in COMPARED
        if op.name not in COMPARED and plain_name(op) not in SCALED:
            return None
        op, depth = next((made for each in op.inputs if (made := graph.maker(each)) is not None), None), depth - 1
    return None


def _is_hidden(graph: OpGraph, operand: Input, depth: int = 12) -> bool:
    """Computed with a weight: masks on the raw input are corruption, as denoisers use it."""
    waiting = [graph.maker(operand)]
    met: set[int] = set()
    while waiting and len(met) < 4 * depth:
        op = waiting.pop()
        if op is None or op.index in met:
            continue
        met.add(op.index)
        if any(each.parameter or each.origin == "parameter" for each in op.inputs):
            return True
        waiting += [graph.maker(each) for each in op.inputs]
    return False


def _mask_finding(op: Op, draw: Op, trace: OpTrace) -> Finding:
    return Finding(
        cause=CAUSE_MASK.fill(module=_named(op.module_class)), fix=FIX_MASK, where=op.site,
        also=(draw.site,) if draw.site and draw.site != op.site else (), evidence=(Evidence(MASK_SEEN, 1, "0", step=trace.step),), first_step=trace.step, confidence="likely",
        because=BECAUSE)


def _finding(drop: DropInEval) -> Finding:
    fix = FIX_ATTENTION if drop.function == "scaled_dot_product_attention" else FIX
    name = f"{drop.function}()"
    return Finding(
        cause=CAUSE.fill(function=name, rate=number(drop.rate), module=_named(drop.module_class)),
        fix=fix.fill(function=name), where=drop.site, also=(drop.forward_site,) if drop.forward_site else (),
        evidence=(Evidence(FORWARDS, drop.forwards, "0", step=drop.step),), first_step=drop.step)


def _named(module_class: str) -> Text:
    return same(module_class) if module_class else Text("the model", "模型")
