"""The gradient explodes and takes the training with it.

What it is:
In one step the gradient is a hundred times its usual size (or beyond 1000 from the first step on) while the loss itself still looks
normal; the optimizer takes that step, and the weights land where the loss is far higher.

Why it is silent:
A large gradient is a number like any other. Nothing limits a step unless you clip it.

What you see:
A loss that falls, jumps up within one step and does not come back; in recurrent nets often NaN soon after.

Look-alikes:
A spike after which the loss goes on as before; a norm that is large because the loss is summed or the targets are large, while the loss
falls; a gradient that grows only after the loss has grown (then the step was too long: see the learning rate).

Fix:
Clip the gradient norm between backward and step, at about the 90th percentile of the norms seen before, or lower the learning rate.

Before:
    loss.backward()
    optimizer.step()
After:
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

Experiment:
The same run with the norm clipped at its running median: the jump is gone.

Source:
Pascanu, Mikolov, Bengio (2013), "On the difficulty of training recurrent neural networks"; the factors are rules of thumb.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median

from traindx.core.findings import Evidence, Finding
from traindx.core.recording import Recording
from traindx.core.text import Text, number
from traindx.signals.loss_curve import LossCurve, Points

ZH = """梯度爆炸，训练随之崩掉

是什么：
某一步的梯度是平时的上百倍（或者从第一步起就超过 1000），而这时损失本身还正常；优化器照着它走了一步，参数落到了损失高得多的地方。

为什么不报错：
梯度再大也只是一个数。不做裁剪，就没有什么能限制一步走多远。

你会看到：
损失一路下降，忽然在一步之内跳上去，再也回不来；循环网络往往很快就变成 NaN。

容易混淆的情况：
尖峰过后损失照常下降；因为损失用了求和、或目标数值很大而梯度范数很大，但损失在下降；损失先变大、梯度才跟着变大（那是步子太长，去看学习率）。

怎么改：
在 backward 和 step 之间裁剪梯度范数，上限取之前范数的 90 分位左右；或者调低学习率。

改前：
    loss.backward()
    optimizer.step()
改后：
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()

对照实验：
同样的训练，把范数裁剪到它的滑动中位数：那次跳变消失。

来源：
Pascanu、Mikolov、Bengio (2013)，《On the difficulty of training recurrent neural networks》；倍数是经验值。
"""
LEVEL = "error"
STEP = 4
EXPLAINS = ("curve/*", "init/dead-units", "init/saturated", "init/activation-collapse", "loss/constant")
EXPERIMENT = "clip-gradients"

JUMP = 100.0  # times the running median
ABSOLUTE = 1e3
LARGE = 1e2
WINDOW = 50  # steps of the running median
HARM = 3.0  # times the loss before
AHEAD = 20  # steps in which the loss must follow

CAUSE = Text(
    "In step {step} the gradient norm was {norm}, {times} times its usual {usual}; the loss had been {before} until then and is {after} "
    "after that step.",
    "第 {step} 步的梯度范数是 {norm}，是平时（{usual}）的 {times} 倍；在此之前损失是 {before}，走完这一步变成 {after}。")
CAUSE_START = Text(
    "The gradient norm was {norm} from the start (step {step}) with a loss of {before}; after that step the loss is {after}.",
    "从一开始（第 {step} 步）梯度范数就是 {norm}，而损失只有 {before}；走完这一步，损失变成 {after}。")
FIX = Text("Clip the gradient norm between backward and step (clip_grad_norm_), or lower the learning rate.",
           "在 backward 和 step 之间裁剪梯度范数（clip_grad_norm_），或者调低学习率。")
BECAUSE = Text("the loss followed the gradient; that the length of this step did the harm would be proved by clipping it",
               "损失是跟着梯度变坏的；祸首是不是这一步太长，要裁剪之后再跑一次才能证实")
NORM = Text("gradient norm", "梯度范数")
LOSS = Text("loss before and after", "这一步之前和之后的损失")
USUAL = Text("about {usual}", "约 {usual}")


def check(curve: LossCurve, recording: Recording) -> Iterator[Finding]:
    norms = recording.series.get("raw_grad_norm") or recording.series.get("grad_norm") or []
    losses = recording.series.get("loss", [])
    clipped = {step for step, _ in recording.series.get("clip_norm", [])}
    for i, (step, norm) in enumerate(norms):
        usual = median([value for _, value in norms[max(0, i - WINDOW):i]]) if i >= 3 else None
        if step in clipped or not math.isfinite(norm) or not _large(norm, usual, losses, step):
            continue
        # a huge gradient that leaves the net worse than before; a large one, worse than it was untrained
        if harm := _harm(losses, step, 0.0 if norm > ABSOLUTE else curve.start):
            yield _finding(curve, step, norm, usual, harm)
            return


def _large(norm: float, usual: float | None, losses: Points, step: int) -> bool:
    """A jump over the running median; in the first steps, a size out of all proportion to a loss that is still normal."""
    if usual is not None and norm > JUMP * max(usual, 1e-6) and norm > LARGE:
        return True
    if usual is not None or norm <= ABSOLUTE:
        return False
    first = next((abs(value) for _, value in losses if math.isfinite(value)), 0.0)
    loss = next((abs(value) for at, value in losses if at == step), math.inf)
    return norm > JUMP * loss and loss <= HARM * first


def _harm(losses: Points, step: int, untrained: float) -> tuple[float, float] | None:
    """(loss before, loss after) where the loss was normal until the step, rose right after it (over ``untrained``, too) and stayed up."""
    before = [value for at, value in losses if step - WINDOW <= at < step and math.isfinite(value)]
    before = before or [value for at, value in losses if at == step and math.isfinite(value)]
    after = [value for at, value in losses if step < at <= step + AHEAD]
    if not before or not after:
        return None
    usual = median(before)
    if usual <= 0 or median(before[-5:]) > HARM * usual:
        return None  # the loss had risen first: a step was too long, whatever the gradient
    if any(not math.isfinite(value) for value in after):
        return usual, math.nan
    late = [value for at, value in losses if at > step][-max(AHEAD, len(losses) // 5):]
    stays = not all(map(math.isfinite, late)) or median(late) > 1.5 * usual
    return (usual, median(after)) if len(after) >= 3 and median(after) > HARM * max(usual, untrained) and stays else None


def _finding(curve: LossCurve, step: int, norm: float, usual: float | None, harm: tuple[float, float]) -> Finding:
    before, after = number(harm[0]), "NaN" if math.isnan(harm[1]) else number(harm[1])
    words = CAUSE if usual is not None else CAUSE_START
    shown = number(usual) if usual is not None else ""
    sites = tuple(site for site in (curve.step_site, curve.backward_site, curve.loss_site) if site)
    return Finding(
        cause=words.fill(step=step, norm=number(norm), usual=shown, before=before, after=after,
                         times=number(norm / usual, 2) if usual else ""),
        fix=FIX, where=sites[0] if sites else None, also=sites[1:], first_step=step, confidence="likely", because=BECAUSE,
        explains=("numeric/nonfinite",),
        evidence=(Evidence(NORM, norm, USUAL.fill(usual=shown) if usual is not None else "< 1000", step=step),
                  Evidence(LOSS, f"{before} -> {after}", step=step)))
