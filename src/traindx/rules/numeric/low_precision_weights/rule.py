"""Half-precision weights swallow their updates.

What it is:
The weights themselves are bf16 or fp16. bf16 keeps 8 bits, so that near 1.0 the next number is 0.0078 away: an update of less than half
of that is rounded away, step after step.

Why it is silent:
The addition is done and rounded as the standard says. Biases and small weights still move, so that the loss may fall a little.

What you see:
Training that slows down or stops early, the sooner the smaller the learning rate, while fp32 goes on.

Look-alikes:
Autocast keeps fp32 weights. Optimizers with an fp32 master copy, and stochastic rounding, do move every weight in time. At the end of a
decay to 0 nothing moves anyway.

Fix:
Keep the weights in fp32 and compute under autocast, or use an optimizer with an fp32 master copy.

Before:
    model = Net().to(torch.bfloat16)
After:
    model = Net()
    with torch.autocast("cpu", dtype=torch.bfloat16): ...

Experiment:
The same run with fp32 weights: the loss falls further.

Source:
Micikevicius et al. (2018), "Mixed Precision Training", section 3.1 (master weights); the 50 % line is a rule of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.finite import StuckWeights
from traindx.core.observed.program import ModelSeen, OptimizerMade
from traindx.core.text import Text, number

ZH = """半精度权重吞掉了更新

是什么：
权重本身就是 bf16 或 fp16。bf16 只有 8 个二进制有效位，比 1.0 大的下一个数是 1.0078：更新量不到这个间隔的一半，就会一步接一步地舍掉。

为什么不报错：
加法照做，舍入也合乎标准。偏置和很小的权重还在动，所以损失还能降一点。

你会看到：
训练变慢或很早就停住，学习率越小停得越早；换成 fp32 却还能继续降。

容易混淆的情况：
autocast 的权重仍是 fp32。带 fp32 主权重的优化器，以及随机舍入，时间长了每个权重都会动。学习率衰减到 0 的末尾，本来就不动。

怎么改：
权重保持 fp32，用 autocast 做计算；或者用带 fp32 主权重的优化器。

改前：
    model = Net().to(torch.bfloat16)
改后：
    model = Net()
    with torch.autocast("cpu", dtype=torch.bfloat16): ...

对照实验：
同样的训练换成 fp32 权重：损失降得更低。

来源：
Micikevicius 等 (2018)，《Mixed Precision Training》3.1 节（主权重）；50 % 这条线是经验值。
"""
LEVEL = "warning"
STEP = 3
EXPLAINS = ("curve/plateau", "optim/lr-too-low", "optim/lr-zero", "loss/constant")
EXPERIMENT = "fp32"

STUCK = 0.5
WINDOWS = 3  # fewer say nothing
NEAR_PEAK = 0.3  # share of the largest learning rate: below, weights are meant to rest

CAUSE = Text(
    "The optimizer's weights are {dtype}: {share} % of the elements that had a gradient did not change a single bit within {steps} "
    "step{steps:|s}, for their updates are below half a unit in the last place.",
    "优化器里的权重是 {dtype}：有梯度的元素里，{share} % 在 {steps} 步之内一个比特也没有变，因为更新量不到最后一位的一半。")
FIX = Text("Keep the weights in fp32 and use autocast, or an optimizer with an fp32 master copy.",
           "权重保持 fp32 并使用 autocast，或者用带 fp32 主权重的优化器。")
SHARE = Text("elements with a gradient that stayed bit-equal over a window of steps (median of the windows)",
             "有梯度、却在一段训练里逐位不变的元素比例（各段的中位数）")


def check(windows: list[StuckWeights], optimizers: list[OptimizerMade] | None, models: list[ModelSeen] | None) -> Iterator[Finding]:
    for id in dict.fromkeys(window.optimizer for window in windows):
        mine = [window for window in windows if window.optimizer == id]
        peak = max((window.lr or 0.0 for window in mine), default=0.0)
        judged = [window for window in mine if (window.lr or 0.0) >= NEAR_PEAK * peak and peak > 0]
        if len(judged) >= WINDOWS and median(window.stuck for window in judged) > STUCK:
            yield _finding(judged, _made(id, optimizers or []), _model(models or []))


def _made(id: int, optimizers: list[OptimizerMade]) -> Site | None:
    return next((made.site for made in optimizers if made.id == id), None)


def _model(models: list[ModelSeen]) -> Site | None:
    """Where the model with half-precision parameters was made."""
    return next((model.made_at for model in models if any("16" in p.dtype for p in model.parameters)), None)


def _finding(judged: list[StuckWeights], made: Site | None, model: Site | None) -> Finding:
    share, first = median(window.stuck for window in judged), judged[0]
    sites = tuple(dict.fromkeys(site for site in (model, made, first.site) if site))
    return Finding(
        cause=CAUSE.fill(dtype=first.dtype, share=number(100 * share, 2), steps=first.steps), fix=FIX,
        where=sites[0] if sites else None, also=sites[1:], first_step=first.step,
        evidence=(Evidence(SHARE, round(share, 3), "< 0.5"),))
