"""A value grows beyond fp16's largest number.

What it is:
fp16 ends at 65504. A product, a power or a sum beyond it becomes infinity, and the next softmax, norm or subtraction makes NaN of it.

Why it is silent:
fp32 holds the same value without trouble, so that the model is sound; and overflow to infinity raises nothing.

What you see:
NaN or inf in the loss under float16 only. A GradScaler skips step after step, since no scale helps a forward pass that overflows.

Look-alikes:
A GradScaler that starts too high overflows in backward for a few steps and finds its scale: that is its job. -inf in a mask is meant.

Fix:
Use bfloat16, do this operation in fp32, or scale its operands first (queries by 1/sqrt(d) before the product, not after).

Before:
    scores = q @ k.transpose(-2, -1) / math.sqrt(d)
After:
    scores = (q / math.sqrt(d)) @ k.transpose(-2, -1)

Experiment:
The same run in bfloat16: the loss stays finite.

Source:
IEEE 754 half precision (largest number 65504); the product is computed again in fp32 to prove it.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.finite import Nonfinite
from traindx.core.observed.ops import Op, OpTrace
from traindx.core.text import Text, number
from traindx.signals.finite import FiniteChecks, operation

ZH = """数值超出了 fp16 的范围

是什么：
fp16 最大只到 65504。乘积、幂或求和一旦超过它就变成无穷大，后面的 softmax、归一化或减法再把它变成 NaN。

为什么不报错：
同样的值 fp32 装得下，所以模型本身没有错；而上溢成无穷大不会抛异常。

你会看到：
只有用 float16 时损失才出现 NaN 或 inf。GradScaler 一步接一步地跳过，因为前向上溢时，缩放多少都没有用。

容易混淆的情况：
GradScaler 的初始缩放太大，头几步在反向上溢，随后找到合适的缩放：这是它的本职。掩码里的 -inf 是有意的。

怎么改：
用 bfloat16，或者让这个运算用 fp32，或者先把输入缩小（在相乘之前把 query 除以 sqrt(d)，不要等乘完再除）。

改前：
    scores = q @ k.transpose(-2, -1) / math.sqrt(d)
改后：
    scores = (q / math.sqrt(d)) @ k.transpose(-2, -1)

对照实验：
同样的训练换成 bfloat16：损失一直正常。

来源：
IEEE 754 半精度（最大值 65504）；这里用 fp32 重算了一遍乘积来证实。
"""
LEVEL = "error"
STEP = 2
EXPLAINS = ("numeric/nonfinite", "curve/*", "init/saturated", "optim/lr-*", "loss/constant")
EXPERIMENT = "bf16"

MAKERS = frozenset(("pow", "__pow__", "square", "mul", "__mul__", "matmul", "__matmul__", "bmm", "mm", "linear", "einsum", "conv1d", "conv2d",
                    "exp", "sum", "add", "__add__", "prod", "cumsum"))
NEAR = 20_000.0  # a finite neighbour of the infinite elements: a product by a constant like 1e9 is another fault

HIDDEN = Text(
    "In step {step} {count} element{count:|s} of the result of {op} went beyond 65504, the largest number of fp16, and became infinite; "
    "the loss stayed finite, but these samples no longer count as they should.",
    "第 {step} 步，{op} 的结果有 {count} 个元素超过了 fp16 的最大值 65504，变成了无穷大；损失看着正常，可是这些样本已经起不到该起的作用。")
CAUSE = Text("In step {step} {op} went beyond 65504, the largest number of fp16, and became infinite.",
             "第 {step} 步，{op} 的结果超过了 fp16 的最大值 65504，变成了无穷大。")
CARRIED = Text("In step {step} {op} received infinite fp16 numbers: an operation in fp16 just before it went beyond 65504.",
               "第 {step} 步，{op} 收到了无穷大的 fp16 数：就在它之前，有一个 fp16 运算超过了 65504。")
FIX = Text("Use bfloat16, do {op} in fp32, or scale its operands down before it.",
           "改用 bfloat16，或者用 fp32 计算 {op}，或者先把它的输入缩小。")
BECAUSE = Text("the infinite operand was seen, the operation that made it was not", "看到了无穷大的输入，没有看到产生它的那个运算")
RANGE = Text("range of the result, computed again in fp32", "用 fp32 重算，结果的范围")
FINITE = Text("range of the finite operand values", "输入里有限数的范围")


def check(checks: FiniteChecks, traces: list[OpTrace] | None) -> Iterator[Finding]:
    if checks.harmful:
        if _in_half(checks.fault):
            yield _finding(checks.fault)
        return
    for trace in traces or []:
        for op in trace.ops if trace.phase == "train" else ():
            if _overflows(op, trace.ops):
                yield Finding(cause=HIDDEN.fill(step=trace.step, op=op.name.strip("_"), count=op.nonfinite), fix=FIX.fill(op=op.name.strip("_")),
                              where=op.site, first_step=trace.step, level="warning",
                              evidence=(Evidence(FINITE, f"{number(op.low or 0.0)} .. {number(op.high or 0.0)}", "|x| <= 65504", step=trace.step),))


def _overflows(op: Op, ops: tuple[Op, ...]) -> bool:
    """Finite fp16 operands, an infinite result, and finite elements near the limit beside it."""
    if op.dtype != "float16" or not op.nonfinite or op.name not in MAKERS:
        return False
    if any(0 <= operand.op < len(ops) and ops[operand.op].nonfinite for operand in op.inputs):
        return False
    return max(abs(op.low or 0.0), abs(op.high or 0.0)) > NEAR


def _in_half(fault: Nonfinite) -> bool:
    return fault.reason == "half" or (fault.dtype == "float16" and fault.reason in ("overflow", "factor"))


def _finding(fault: Nonfinite) -> Finding:
    sites = tuple(dict.fromkeys(
        site for site in (fault.site, *fault.candidates, fault.loss_site, fault.backward_site) if site))
    sure = fault.reason != "factor"
    shown = f"{number(fault.low or 0.0)} .. {number(fault.high or 0.0)}"
    return Finding(
        cause=(CAUSE if sure else CARRIED).fill(step=fault.step, op=operation(fault.op)), fix=FIX.fill(op=operation(fault.op)),
        where=sites[0] if sites else None, also=sites[1:], first_step=fault.step,
        confidence="certain" if sure and fault.exact else "likely", because=Text("", "") if sure else BECAUSE,
        evidence=(Evidence(RANGE if fault.reason == "half" else FINITE, shown, "|x| <= 65504", step=fault.step),))
