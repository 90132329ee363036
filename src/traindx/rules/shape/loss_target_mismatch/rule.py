"""Prediction and target of a loss have different shapes.

What it is:
A loss such as ``mse_loss`` gets a column [B, 1] on one side and a row [B] on the other. It broadcasts them to [B, B] and averages over
all pairs.

Why it is silent:
PyTorch prints one warning, which scrolls by; some losses (poisson_nll, kl_div, gaussian_nll) print none. The value is a plain number.

What you see:
The loss ends at the spread of the target; the model predicts the mean for every sample.

Look-alikes:
A single number as target (real = 1 for a GAN) and one target row shared by a batch are broadcast one way only: no pairs arise.

Fix:
Make the shapes equal before the call.

Before:
    criterion(model(x), y)
After:
    criterion(model(x).squeeze(-1), y)

Experiment:
Squeeze the extra dimension: if the loss falls below where it stopped before, the mismatch was the cause.

Source:
PyTorch's warning "Using a target size that is different to the input size"; the effect by arithmetic.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.program import LossCall
from traindx.core.text import Text

ZH = """损失的预测和目标形状不一致

是什么：
``mse_loss`` 这类损失，一边收到列 [B, 1]，另一边收到 [B]。它把两边广播成 [B, B]，再对所有配对求平均。

为什么不报错：
PyTorch 只打印一次警告，一闪而过；有的损失（poisson_nll、kl_div、gaussian_nll）连警告也没有。算出来的仍是一个普通的数。

你会看到：
损失停在目标的离散程度附近，模型对每个样本都预测平均值。

容易混淆的情况：
目标只有一个数（GAN 里真样本记为 1），或者整个 batch 共用一行目标，只是单向广播，不会产生配对。

怎么改：
调用之前让两边形状一致。

改前：
    criterion(model(x), y)
改后：
    criterion(model(x).squeeze(-1), y)

对照实验：
去掉多余的维度：损失若降到原来的平台以下，病因就是形状不一致。

来源：
PyTorch 的警告「Using a target size that is different to the input size」；影响由算术得出。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("shape/silent-broadcast", "curve/*", "loss/initial-loss-off", "loss/unscaled-target", "optim/lr-*", "loss/constant",
            "data/labels-misaligned", "init/dead-units", "shape/batch-mixing")
EXPERIMENT = "squeeze-operand"

CAUSE = Text("{function} gets a prediction of shape {input} and a target of shape {target}: it pairs every prediction with every target "
             "({out}).",
             "{function} 收到的预测形状是 {input}，目标形状是 {target}：每个预测和每个目标都配了一次对（{out}）。")
FIX = Text("Make both {target}, for example with .squeeze(-1) or .view_as(target).",
           "让两边都是 {target}，例如用 .squeeze(-1) 或 .view_as(target)。")
SHAPES = Text("shapes of prediction and target", "预测和目标的形状")
EQUAL = Text("equal shapes", "形状相同")
ELEMENTWISE = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "poisson_nll_loss", "gaussian_nll_loss", "kl_div",
               "soft_margin_loss", "hinge_embedding_loss")


def check(losses: list[LossCall]) -> Iterator[Finding]:
    for call in sorted(losses, key=lambda call: (not call.grad, call.call)):
        if call.function in ELEMENTWISE and crossed(call.input_shape, call.target_shape):
            yield _finding(call)
            return


def crossed(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Each side is repeated along a dimension that only the other has."""
    rank = max(len(left), len(right))
    pairs = list(zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right))
    return any(a == 1 < b for a, b in pairs) and any(b == 1 < a for a, b in pairs)


def _finding(call: LossCall) -> Finding:
    shape, target = (str(list(shape)) for shape in (call.input_shape, call.target_shape))
    rank = max(len(call.input_shape), len(call.target_shape))
    padded = [(1,) * (rank - len(s)) + s for s in (call.input_shape, call.target_shape)]
    out = str([max(pair) for pair in zip(*padded)])
    return Finding(
        cause=CAUSE.fill(function=call.function, input=shape, target=target, out=out), fix=FIX.fill(target=target),
        where=call.site, also=(call.made_at,) if call.made_at else (),
        evidence=(Evidence(SHAPES, f"{shape}, {target}", EQUAL, step=call.step),), first_step=call.step,
        level=None if call.grad else "warning")
