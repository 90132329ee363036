"""NaN or infinity gets into the training.

What it is:
One operation turns finite numbers into NaN or infinity: log(0), x/0, the infinite slope of sqrt at 0, 0 * inf, an exp that
overflows, a softmax over a row that is masked entirely. From the loss or the gradients it reaches every weight in one step.

Why it is silent:
Floating-point arithmetic raises nothing. ``torch.where`` and ``nan_to_num`` can even hide it: the loss stays finite while the
weights are NaN, because backward multiplies the infinite slope of the branch that was not chosen by 0, and 0 * inf is NaN.

What you see:
A loss of NaN after some good epochs; or a finite loss that jumps to a constant and never moves again.

Look-alikes:
-inf in an attention mask is right as long as each row keeps one entry. A GradScaler that meets inf, skips the step and halves its
scale does its job. A program that finds a bad batch itself and leaves the step out is sound, too.

Fix:
Make the operand safe before the operation, not its result afterwards.

Before:
    torch.where(x > 0, torch.sqrt(x), 0)
After:
    torch.sqrt(x.clamp_min(1e-12))

Experiment:
Replay the last good state with the operand kept away from the bad value: the run stays finite.

Source:
IEEE 754; PyTorch issue 10729 (where and NaN gradients); PyTorch's documentation of anomaly detection.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.finite import Nonfinite
from traindx.core.recording import Recording
from traindx.core.text import Text, number, same
from traindx.signals.finite import FiniteChecks, operation
from traindx.signals.loss_curve import blew_up_before

ZH = """训练里出现了 NaN 或无穷大

是什么：
某一个运算把正常的数变成了 NaN 或无穷大：log(0)、除以 0、sqrt 在 0 处无穷大的斜率、0 * inf、exp 上溢、整行都被遮住的 softmax。
它一旦进了损失或梯度，只要一步就会传遍所有参数。

为什么不报错：
浮点运算从不抛异常。``torch.where`` 和 ``nan_to_num`` 还会把它藏起来：没选中的那一支斜率是无穷大，反向时乘上 0，而 0 * inf 就是 NaN。
于是损失看着正常，参数已经全是 NaN。

你会看到：
训练好好的，几轮之后损失变成 NaN；或者损失仍是正常的数，却突然跳到一个常数，再也不动。

容易混淆的情况：
注意力掩码里的 -inf 没有问题，只要每一行至少留下一个位置。GradScaler 遇到 inf 就跳过这一步并把缩放减半，这是它的本职。
程序自己发现坏 batch 并跳过更新，也是对的。

怎么改：
在运算之前就让输入安全，不要等结果坏了再补。

改前：
    torch.where(x > 0, torch.sqrt(x), 0)
改后：
    torch.sqrt(x.clamp_min(1e-12))

对照实验：
从最后一个正常的状态重放，让输入避开那个坏值：运行应当一直正常。

来源：
IEEE 754；PyTorch issue 10729（where 与 NaN 梯度）；PyTorch 异常检测（anomaly detection）文档。
"""
LEVEL = "error"
STEP = 2
EXPLAINS = ("curve/*", "init/dead-units", "init/saturated", "init/gradient-vanishing", "init/activation-collapse", "data/constant-input",
            "optim/lr-*", "loss/constant", "loss/initial-loss-off", "record/*", "mode/bn-stats-diverge")
EXPERIMENT = "replay-finite"

# reason -> (what went wrong, what to do)
REASONS: dict[str, tuple[Text, Text]] = {
    "zero": (Text("of 0", "的输入是 0"), Text(
        "Keep the operand away from 0 before {op}: add a small eps or clamp it, or use a stable form (log_softmax, logsigmoid, "
        "binary_cross_entropy_with_logits).",
        "在 {op} 之前让输入离开 0：加一个小 eps，或先 clamp；也可以换成数值稳定的写法（log_softmax、logsigmoid、binary_cross_entropy_with_logits）。")),
    "negative": (Text("of a negative number", "的输入是负数"), Text(
        "Find out why the operand of {op} can be negative; if that is only rounding, clamp it at a small positive number.",
        "查清 {op} 的输入为什么会是负数；如果只是舍入误差，就把它 clamp 到一个很小的正数。")),
    "overflow": (Text("beyond the largest number of its dtype", "的结果超出了该类型能表示的最大值"), Text(
        "Bound the operand of {op} (clamp it, subtract the row's maximum, or stay in log space with logsumexp).",
        "限制 {op} 的输入：先 clamp，或减去每行的最大值，或用 logsumexp 一直在对数空间里算。")),
    "half": (Text("beyond 65504, the largest number of fp16", "的结果超过了 65504，也就是 fp16 的最大值"), Text(
        "Do {op} in fp32 or bf16, or scale its operands down first.", "用 fp32 或 bf16 计算 {op}，或者先把输入缩小。")),
    "edge": (Text("at the edge of its domain", "的输入落在定义域的边上"), Text(
        "Clamp the operand of {op} a little inside its domain, for example to [-1 + 1e-6, 1 - 1e-6].",
        "把 {op} 的输入 clamp 到定义域里面一点，例如 [-1 + 1e-6, 1 - 1e-6]。")),
    "empty-row": (Text("over a row in which every entry is -inf (all masked)", "遇到整行都是 -inf（全部掩掉了）"), Text(
        "Leave at least one entry of each row unmasked, or leave rows out that are masked entirely.",
        "每一行至少留下一个没有掩掉的位置，或者不用整行都掩掉的样本。")),
    "single": (Text("over a single value", "只有一个值可算"), Text(
        "An unbiased spread needs two values: use correction=0, or skip groups of one.",
        "无偏的标准差至少要两个值：用 correction=0，或者跳过只有一个值的组。")),
    "ignored": (Text("over no target at all (every one is ignored)", "拿到的目标全部忽略了"), Text(
        "Skip batches in which every target is ignored.", "目标全部忽略的 batch，跳过不用。")),
    "factor": (Text("with an operand that is NaN or infinite already", "的输入已经是 NaN 或无穷大"), Text(
        "Look at the lines that lead to this operand; no gradient flows there, so they are outside the graph.",
        "检查产生这个输入的那几行；没有梯度经过那里，它们在计算图之外。")),
    "": (Text("of finite numbers", "的输入全是有限数"), Text("Look at the range of the operand of {op}.", "检查 {op} 的输入范围。")),
}
FORWARD = Text("The loss became {value} in step {step}: {op} {what}.", "第 {step} 步，损失变成了 {value}：{op} {what}。")
BACKWARD = Text(
    "In step {step} the loss was finite ({value}) but gradients were not: {op} {what}, {slope}; a where() or a mask can hide this in "
    "forward, never in backward.",
    "第 {step} 步的损失是有限数（{value}），梯度却不是：{op} {what}，{slope}；where() 或掩码在前向能藏住它，在反向传播时藏不住。")
SLOPE = Text("where its slope is infinite", "那里的斜率是无穷大")
UNNAMED = {
    "forward": Text("The loss became {value} in step {step}; the operation that made it could not be told.",
                    "第 {step} 步，损失变成了 {value}；没能认出是哪一个运算造成的。"),
    "backward": Text("In step {step} the loss was finite ({value}) but the gradients of {names} were not.",
                     "第 {step} 步的损失是有限数（{value}），{names} 的梯度却不是。"),
    "step": Text("Weights ({names}) became NaN or infinite in the optimizer's step {step}.",
                 "第 {step} 步，优化器更新之后，权重 {names} 变成了 NaN 或无穷大。"),
    "input": Text("The loss became {value} in step {step} because the data held NaN or infinity.",
                  "第 {step} 步，损失变成了 {value}，因为数据里就有 NaN 或无穷大。"),
}
UNNAMED_FIX = Text("Run this step again with torch.autograd.set_detect_anomaly(True) and look at the operand of the operation that it names.",
                   "打开 torch.autograd.set_detect_anomaly(True) 重跑这一步，检查它点名的那个运算的输入。")
DATA_FIX = Text("Clean the data, or mask the missing values before they enter the model.", "清洗数据，或者在缺失值进入模型之前把它们掩掉。")
STEP_FIX = Text("Check the learning rate, the optimizer's eps and the dtype of the weights.", "检查学习率、优化器的 eps 和权重的数据类型。")
AFTER_GROWTH = Text("the loss had grown to {times} times its size before: the numbers overflowed at the end of a divergence",
                    "在此之前，损失已经涨到 {times} 倍：这是发散到最后的上溢")
NEAR = Text("the line was found by the kind of the operation", "这一行是按运算的种类找到的")
NO_LINE = Text("the operation's own line is not known", "不知道这个运算本身在哪一行")
OPERAND = Text("range of the finite operand values of {op}", "{op} 的输入里，有限数的范围")
BAD = Text("elements of the operand that are wrong", "输入里出问题的元素个数")
BAD_STEPS = Text("steps with a non-finite loss or gradient", "损失或梯度不是有限数的步数")
NONE = Text("none", "没有")


def check(checks: FiniteChecks, recording: Recording) -> Iterator[Finding]:
    if checks.harmful:
        yield _finding(checks.fault, checks, recording)


def _finding(fault: Nonfinite, checks: FiniteChecks, recording: Recording) -> Finding:
    lines = (fault.site, *fault.candidates, fault.loss_site, fault.backward_site)
    if fault.phase == "step":
        lines = (fault.step_site, fault.loss_site)
    places = tuple(dict.fromkeys(site for site in lines if site))
    cause, fix = _words(fault)
    growth = blew_up_before(recording, fault.step)
    because = (AFTER_GROWTH.fill(times=number(growth, 1)) if growth else same("") if fault.exact
               else NEAR if fault.site else NO_LINE)
    return Finding(
        cause=cause, fix=fix, where=places[0] if places else None, also=places[1:], evidence=tuple(_evidence(fault, checks)),
        explains=() if growth else ("numeric/gradient-explosion",), first_step=fault.step, because=because,
        confidence="certain" if fault.exact and not growth else "likely")


def _words(fault: Nonfinite) -> tuple[Text, Text]:
    value = "NaN" if fault.value is None or fault.value != fault.value else number(fault.value)
    names = ", ".join(fault.parameters) or "?"
    if not fault.op or fault.phase in ("input", "step"):
        fix = {"input": DATA_FIX, "step": STEP_FIX}.get(fault.phase, UNNAMED_FIX)
        return UNNAMED[fault.phase].fill(value=value, step=fault.step, names=names), fix
    what, fix = REASONS[fault.reason]
    text = BACKWARD if fault.phase == "backward" else FORWARD
    return text.fill(value=value, step=fault.step, op=operation(fault.op), what=what, slope=SLOPE), fix.fill(op=operation(fault.op))


def _evidence(fault: Nonfinite, checks: FiniteChecks) -> Iterator[Evidence]:
    if fault.low is not None and fault.high is not None:
        yield Evidence(OPERAND.fill(op=operation(fault.op)), f"{number(fault.low)} .. {number(fault.high)}", step=fault.step)
    if fault.count:
        yield Evidence(BAD, f"{fault.bad} / {fault.count}", same("0"), step=fault.step)
    yield Evidence(BAD_STEPS, checks.bad_steps, NONE)
