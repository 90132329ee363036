"""Gradients round to zero in fp16.

What it is:
Below 6e-8 fp16 has no numbers: a gradient that is smaller becomes exactly 0, and between 6e-8 and 6e-5 it keeps only a few bits. Without
loss scaling much of the backward pass is lost that way.

Why it is silent:
Zero is a legal gradient. The weights it belongs to simply stop moving.

What you see:
A loss that falls slowly or not at all in fp16 and well in fp32; early layers that hardly change.

Look-alikes:
Embedding rows that a batch does not touch, units that are off and masked inputs have true zeros: they come without the tiny
leftovers. A GradScaler keeps gradients far above the limit. At the end of a converged training small gradients do no harm.

Fix:
Scale the loss (torch.amp.GradScaler), or use bfloat16, which has the range of fp32.

Before:
    loss.backward()
    optimizer.step()
After:
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

Experiment:
The same run in bfloat16 or with a GradScaler: the share of zeros drops and the loss falls faster.

Source:
Micikevicius et al. (2018), "Mixed Precision Training", section 3.2; limits from the format (2**-24 and 2**-14).
"""
from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.finite import HalfGradients
from traindx.core.recording import Recording
from traindx.core.text import Text, number

ZH = """fp16 梯度下溢成 0

是什么：
fp16 在 6e-8 以下没有数：更小的梯度会变成 0，6e-8 到 6e-5 之间也只剩几位精度。不做损失缩放，反向传播的很大一部分就这样丢掉了。

为什么不报错：
0 是合法的梯度。对应的参数只是不再移动。

你会看到：
用 fp16 时损失降得慢甚至不降，换成 fp32 就正常；靠近输入的层几乎不变。

容易混淆的情况：
这个 batch 没用到的嵌入行、关闭的神经元、被遮住的输入，梯度本来就是 0，但不会同时留下一批极小的残余。
GradScaler 会把梯度抬到远高于下限的位置。训练收敛之后梯度很小，也没有害处。

怎么改：
做损失缩放（torch.amp.GradScaler），或者改用 bfloat16，它的数值范围和 fp32 一样。

改前：
    loss.backward()
    optimizer.step()
改后：
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()

对照实验：
同样的训练换成 bfloat16，或加上 GradScaler：0 的比例下降，损失降得更快。

来源：
Micikevicius 等 (2018)，《Mixed Precision Training》3.2 节；界限来自格式本身（2**-24 与 2**-14）。
"""
LEVEL = "error"
STEP = 2
EXPLAINS = ("curve/*", "numeric/scaler-missing", "init/gradient-vanishing", "optim/lr-too-low", "loss/constant")
EXPERIMENT = "bf16"

ZEROS = 0.3  # share of zeros beside tiny leftovers from which a tensor counts as lost
TINY = 0.5  # share of the other elements below the normal numbers
TENSORS = 0.3  # share of tensors that must be lost
NEAR_FLOOR = 0.2  # of the first loss: below it small gradients are natural

CAUSE = Text(
    "In fp16 {zero} % of the gradient elements of the affected tensors ({count} of {all}) are exactly 0 and most of the others lie "
    "below 6e-5, where fp16 loses its bits: without loss scaling the gradient underflows.",
    "受影响的张量（{all} 个里有 {count} 个）里，{zero} % 的梯度元素在 fp16 里恰好是 0，其余大多小于 6e-5，fp16 到了那里就一位位地丢精度："
    "没有损失缩放，梯度下溢了。")
FIX = Text("Scale the loss with torch.amp.GradScaler, or use bfloat16 instead of float16.",
           "用 torch.amp.GradScaler 做损失缩放，或者改用 bfloat16。")
ZERO = Text("elements that are exactly 0 in affected tensors", "受影响张量中恰好为 0 的元素")
LEFT = Text("of the others, elements on fp16's grid below its smallest normal number",
            "其余元素里，落在 fp16 最小正规数以下那段格点上的比例")
SCALED = Text("almost none with loss scaling", "做了损失缩放时几乎没有")


def check(gradients: list[HalfGradients], recording: Recording) -> Iterator[Finding]:
    losses = recording.series.get("loss", [])
    floor = NEAR_FLOOR * abs(losses[0][1]) if losses else 0.0
    level = dict(losses)
    judged = [seen for seen in gradients if not abs(level.get(seen.step, floor + 1)) < floor]
    lost = [seen for seen in judged if _affected(seen)]
    if len(lost) >= 3 and len(lost) >= 0.5 * len(judged):
        yield _finding(lost)


def _affected(seen: HalfGradients) -> list[int]:
    """Tensors that lost their gradient; empty where that is too few, or no tiny leftover proves it."""
    proof = [i for i, (zero, tiny) in enumerate(zip(seen.zero, seen.tiny)) if zero >= ZEROS and tiny >= TINY]
    gone = [i for i, zero in enumerate(seen.zero) if zero == 1.0]
    affected = proof + gone
    return sorted(affected) if proof and len(affected) >= TENSORS * len(seen.zero) else []


def _finding(lost: list[HalfGradients]) -> Finding:
    first = lost[0]
    affected = _affected(first)
    zero = median(first.zero[i] for i in affected)
    tiny = median(first.tiny[i] for i in affected if first.zero[i] < 1)
    sites = tuple(site for site in (first.backward_site, first.loss_site) if site)
    return Finding(
        cause=CAUSE.fill(zero=number(100 * zero, 2), count=len(affected), all=len(first.zero)), fix=FIX,
        where=sites[0] if sites else None, also=sites[1:], first_step=first.step,
        evidence=(Evidence(ZERO, round(zero, 3), SCALED, step=first.step), Evidence(LEFT, round(tiny, 3), SCALED, step=first.step)))
