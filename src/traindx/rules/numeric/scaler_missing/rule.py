"""Half precision without loss scaling.

What it is:
Training runs under a float16 autocast, and no GradScaler scales the loss. Gradients below 6e-8 become zero in float16, those below
6e-5 lose digits.

Why it is silent:
Zero is a legal gradient. The forward pass, and so the loss, look right.

What you see:
Early layers learn slowly or not at all, small losses stop falling, while fp32 goes on.

Look-alikes:
bfloat16 has the exponents of float32 and needs no scaling. A loss that is multiplied by hand is scaled. Evaluation under autocast has
no gradients.

Fix:
Scale the loss, or use bfloat16.

Before:
    loss.backward()
    optimizer.step()
After:
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

Experiment:
Use bfloat16: where the curve parts from the fp16 one, gradients were lost.

Source:
Least positive float16: 2**-24 = 6e-8, least normal one 2**-14 = 6e-5. PyTorch documentation, torch.amp.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.gradients import HalfPrecision, ScalerUse
from traindx.core.text import Text

ZH = """半精度训练没有损失缩放

是什么：
训练用了 float16 的 autocast，却没有用 GradScaler 放大损失。小于 6e-8 的梯度在 float16 里变成 0，小于 6e-5 的丢失有效数字。

为什么不报错：
0 也是合法的梯度。前向计算和损失看起来都正常。

你会看到：
靠前的层学得很慢或完全不学；损失变小之后不再下降，而 fp32 还能继续。

容易混淆的情况：
bfloat16 的指数范围和 float32 相同，不需要缩放。手动把损失乘上系数也是缩放。在 autocast 下做评估没有梯度。

怎么改：
放大损失，或改用 bfloat16。

改前：
    loss.backward()
    optimizer.step()
改后：
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

对照实验：
改用 bfloat16：曲线若和 fp16 分开，说明丢过梯度。

来源：
float16 的最小正数是 2**-24 = 6e-8，最小正规数是 2**-14 = 6e-5。PyTorch 的 torch.amp 文档。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("numeric/fp16-underflow", "init/gradient-vanishing", "curve/plateau")
EXPERIMENT = "bf16"

CAUSE = Text("{count} backward{count:|s} ran under a float16 autocast ({device}), and no GradScaler scaled the loss.",
             "有 {count} 次反向传播在 float16 的 autocast（{device}）下进行，却没有 GradScaler 放大损失。")
FIX = Text("Scale the loss with torch.amp.GradScaler, or use dtype=torch.bfloat16.",
           "用 torch.amp.GradScaler 放大损失，或改用 dtype=torch.bfloat16。")
COUNT = Text("backwards after float16 work, none of them scaled", "float16 计算之后没有缩放的反向传播次数")
BACKWARDS_ASKED, BY_HAND = 3, 8  # a loss multiplied by more than 8 is scaled by hand


def check(half: list[HalfPrecision] | None, scalers: list[ScalerUse] | None) -> Iterator[Finding]:
    for each in half or []:
        by_hand = each.weight is not None and each.weight > BY_HAND
        if each.backwards >= BACKWARDS_ASKED and not by_hand and not any(use.scales for use in scalers or []):
            yield _finding(each)


def _finding(each: HalfPrecision) -> Finding:
    return Finding(
        cause=CAUSE.fill(count=each.backwards, device=each.device),
        fix=FIX,
        where=each.backward_site or each.site,
        also=(each.site,) if each.site else (),
        evidence=(Evidence(COUNT, each.backwards, "0", step=each.step),),
        first_step=each.step)
