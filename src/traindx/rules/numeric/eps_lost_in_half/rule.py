"""A small constant is 0, or a large one infinite, in fp16.

What it is:
An eps of 1e-8, a clamp at 1e-8 or a mask value of -1e9 that is written for fp32 meets fp16 numbers. There 1e-8 rounds to 0 and 1e9 is
infinite: the guard guards nothing, and 0 * -inf is NaN. The same holds for Adam's default eps when the weights are fp16.

Why it is silent:
The constant is converted without a word; the code reads as if it were safe.

What you see:
NaN at the first exact zero (a padded row, a unit that is off, a weight without gradient), often in the very first step.

Look-alikes:
The same constants in parts that run in fp32 (a loss under autocast, a cast before the norm) are right. bf16 has the range of fp32.

Fix:
Use an eps that fp16 has (1e-4 to 1e-7), torch.finfo(x.dtype).tiny or .min, or do this part in fp32.

Before:
    x / (x.norm(dim=-1, keepdim=True) + 1e-8)
After:
    x / (x.norm(dim=-1, keepdim=True) + 1e-4)

Experiment:
The same run in fp32: the constant does its work and the loss stays finite.

Source:
IEEE 754 half precision: smallest number 5.96e-8 (half of it rounds to 0), largest 65504.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding, Level
from traindx.core.observed.finite import FiniteSummary
from traindx.core.observed.ops import Op, OpTrace
from traindx.core.observed.program import ModelSeen, OptimizerMade
from traindx.core.text import Text

ZH = """小常数在 fp16 里成了 0，大常数成了无穷大

是什么：
eps 写成 1e-8、clamp 的下限是 1e-8、掩码值用 -1e9，这些都是给 fp32 用的，却遇上了 fp16 的数。在 fp16 里 1e-8 会舍成 0，1e9 是无穷大：
保护形同虚设，而 0 * -inf 就是 NaN。权重是 fp16 时，Adam 的默认 eps 也一样。

为什么不报错：
常数悄悄地转换了类型；代码读起来仿佛很安全。

你会看到：
一遇到恰好为 0 的值（填充的行、关闭的神经元、没有梯度的权重）就出现 NaN，往往第一步就有。

容易混淆的情况：
同样的常数用在 fp32 的部分（autocast 下的损失、先转成 fp32 再求范数）是对的。bf16 的范围和 fp32 一样。

怎么改：
用 fp16 表示得了的 eps（1e-4 到 1e-7），或 torch.finfo(x.dtype).tiny、.min；或者让这一部分用 fp32。

改前：
    x / (x.norm(dim=-1, keepdim=True) + 1e-8)
改后：
    x / (x.norm(dim=-1, keepdim=True) + 1e-4)

对照实验：
同样的训练换成 fp32：常数起作用，损失一直正常。

来源：
IEEE 754 半精度：最小的数是 5.96e-8（它的一半会舍成 0），最大是 65504。
"""
LEVEL = "error"
STEP = 2
EXPLAINS = ("numeric/nonfinite", "numeric/fp16-overflow", "numeric/gradient-explosion", "curve/*", "loss/constant", "optim/lr-*")
EXPERIMENT = "fp32"

ROUNDS_TO_ZERO = 2.0 ** -25  # half of fp16's smallest number, inclusive
INFINITE = 65520.0  # from here on fp16 rounds to infinity
GUARDS = frozenset(("add", "__add__", "__radd__", "__iadd__", "add_", "sub", "__sub__", "clamp", "clamp_", "clamp_min", "clamp_min_",
                    "clip", "maximum"))
LARGE = frozenset(("mul", "__mul__", "__rmul__", "__imul__", "mul_", "add", "__add__", "__radd__", "sub", "__sub__", "masked_fill",
                   "masked_fill_", "where", "full", "full_like"))
RISKY = frozenset(("div", "__truediv__", "__rtruediv__", "true_divide", "log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "pow",
                   "__pow__"))
ADAPTIVE = ("Adam", "RMSprop", "Adagrad", "Adadelta", "RAdam", "NAdam", "Adamax")

SMALL = Text("{value} is 0 in fp16: {name} guards nothing there, and a division, logarithm or root by 0 follows.",
             "{value} 在 fp16 里就是 0：{name} 起不到保护作用，接着就会除以 0，或者对 0 取对数、开方。")
BIG = Text("{value} is infinite in fp16, and {name} makes NaN or infinity of it.",
           "{value} 在 fp16 里是无穷大，{name} 用了它，得到的就是 NaN 或无穷大。")
ADAM = Text("{optimizer} holds fp16 weights, and its eps of {value} is 0 in fp16: where a gradient is 0 it divides 0 by 0.",
            "{optimizer} 里的权重是 fp16，而它的 eps（{value}）在 fp16 里是 0：梯度为 0 的地方，就成了 0 除以 0。")
FIX = Text("Use a constant that fp16 can hold (eps of 1e-4 to 1e-7, torch.finfo(x.dtype).min for masks), or do this part in fp32.",
           "换一个 fp16 能表示的常数（eps 取 1e-4 到 1e-7，掩码用 torch.finfo(x.dtype).min），或者让这部分用 fp32。")
ADAM_FIX = Text("Keep the weights in fp32 and use autocast; if they must be fp16, set eps to 1e-4.",
                "权重保持 fp32，用 autocast；一定要用 fp16 权重，就把 eps 设为 1e-4。")
CONSTANT = Text("the constant, and what it is in fp16", "这个常数，以及它在 fp16 里的值")
LOW = Text("smallest guarded value seen", "受它保护的值里，看到的最小值")


def check(traces: list[OpTrace] | None, summary: FiniteSummary | None, optimizers: list[OptimizerMade] | None,
          models: list[ModelSeen] | None) -> Iterator[Finding]:
    broke = summary is not None and summary.bad_roots + summary.bad_gradients > 0
    yield from _adaptive(optimizers or [], models or [])
    for trace in traces or []:
        if trace.phase == "train":
            consumers = _consumers(trace)
            for op in trace.ops:
                if op.dtype == "float16" and op.scalars:
                    yield from _lost(op, consumers, broke, trace.step)


def _adaptive(optimizers: list[OptimizerMade], models: list[ModelSeen]) -> Iterator[Finding]:
    half = {p.id for model in models for p in model.parameters if p.dtype == "float16"}
    for made in optimizers:
        for group, settings in zip(made.parameters, made.settings):
            value = _number(settings.get("eps", ""))
            if made.class_name.startswith(ADAPTIVE) and value and abs(value) <= ROUNDS_TO_ZERO and half & set(group):
                yield Finding(cause=ADAM.fill(optimizer=made.class_name, value=settings["eps"]), fix=ADAM_FIX, where=made.site,
                              first_step=max(made.step, 1), evidence=(Evidence(CONSTANT, f"{settings['eps']} -> 0", origin="formula"),))
                return


def _consumers(trace: OpTrace) -> dict[int, set[str]]:
    """Names of the operations that take each op's output, at once or through one view."""
    found: dict[int, set[str]] = {}
    for op in trace.ops:
        for operand in op.inputs:
            if operand.op >= 0:
                found.setdefault(operand.op, set()).add(op.name)
    return found


def _lost(op: Op, consumers: dict[int, set[str]], broke: bool, step: int) -> Iterator[Finding]:
    for text in (op.scalars or {}).values():
        value = abs(_number(text) or 0.0)
        if op.name in GUARDS and 0 < value <= ROUNDS_TO_ZERO and RISKY & consumers.get(op.index, set()):
            reached = broke or (op.low is not None and op.low <= 0)
            yield _finding(op, SMALL, text, "0", "error" if reached else "note", step)
        elif op.name in LARGE and value >= INFINITE and (op.nonfinite or broke):
            yield _finding(op, BIG, text, "inf", "error" if broke else "note", step)


def _finding(op: Op, words: Text, text: str, becomes: str, level: Level, step: int) -> Finding:
    evidence = [Evidence(CONSTANT, f"{text} -> {becomes}", origin="formula", step=step)]
    if op.low is not None and becomes == "0":
        evidence.append(Evidence(LOW, op.low, "> 0", step=step))
    return Finding(cause=words.fill(value=text, name=op.name.strip("_")), fix=FIX, where=op.site, first_step=step, level=level,
                   evidence=tuple(evidence))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
