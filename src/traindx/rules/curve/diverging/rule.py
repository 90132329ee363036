"""The loss grows instead of falling.

What it is:
The loss leaves its start upwards and stays there: it explodes within a few steps, or creeps up for most of the run.

Why it is silent:
Nothing in a training loop compares a loss with the one before.

What you see:
Losses of 1e10 and more, or an average that rises from epoch to epoch.

Look-alikes:
The losses of a GAN's two sides, of policy gradients and of contrastive learning may rise in a sound run. A curriculum that grows harder
stays below its start. A single spike is no divergence.

Fix:
Look for the cause first (sign of the loss, order of zero_grad and step, scale of inputs and targets); else lower the learning rate ten times.

Before:
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
After:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

Experiment:
The learning rate divided by ten, then by a hundred: if even the smallest rises, the direction is wrong.

Source:
The diagnosis tree of traindx ("goes up", "explodes"); 1e10 is a rule of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text, number
from traindx.signals.loss_curve import LossCurve

ZH = """损失不降反升

是什么：
损失从起点往上走，再也不回来：要么几步之内爆炸，要么大半程都在慢慢爬升。

为什么不报错：
训练循环里没有什么会拿这一步的损失去和上一步比较。

你会看到：
损失到了 1e10 以上，或者每一轮的平均值越来越大。

容易混淆的情况：
GAN 两方的损失、策略梯度和对比学习的损失，在正常的训练里也会上升。课程学习越学越难，但仍低于起点。单独一个尖峰不算发散。

怎么改：
先找病因（损失的符号、zero_grad 和 step 的顺序、输入和目标的尺度）；找不到，就把学习率降到十分之一。

改前：
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
改后：
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

对照实验：
学习率除以 10，再除以 100：如果最小的那个也上升，说明更新方向反了。

来源：
traindx 的诊断树（「往上走」「爆炸」）；1e10 是经验值。
"""
LEVEL = "warning"
STEP = 3
EXPLAINS = ("curve/oscillating", "curve/spike", "curve/train-val-gap", "curve/plateau")
EXPERIMENT = "lr-tenth"

HUGE = 1e10
GROWN = 1e4  # times the start: targets may be huge themselves
ABOVE = 2.0  # times the start, in the end
RISING = 0.7  # share of stretches that lie above the one before

EXPLODED = Text("The loss grew from {start} to {top} (step {step}).", "损失从 {start} 涨到了 {top}（第 {step} 步）。")
CREPT = Text("The loss rose for most of the run: from {start} to {end}.", "损失大半程都在上升：从 {start} 升到 {end}。")
FIX = Text("Look at the sign of the loss, the order of the loop and the scale of the data; else divide the learning rate by ten.",
           "检查损失的符号、循环里的顺序和数据的尺度；都没问题，就把学习率除以 10。")
BECAUSE = Text("a curve shows the symptom, not its cause", "曲线只能说明症状，说明不了病因")
START = Text("loss at the start and at its worst", "起点的损失与最坏时的损失")
FALL = Text("it falls", "下降")


def check(curve: LossCurve) -> Iterator[Finding]:
    step, top = max(curve.points, key=lambda point: point[1])
    start = curve.values[0]
    if top > HUGE and top > GROWN * max(abs(start), 1.0):
        yield _finding(curve, EXPLODED.fill(start=number(start), top=number(top), step=step), top, step)
    elif curve.supervised and (rise := _creeps(curve)):
        yield _finding(curve, CREPT.fill(start=number(rise[0]), end=number(rise[1])), rise[1], curve.points[0][0])


def _creeps(curve: LossCurve) -> tuple[float, float] | None:
    """(first, last) of the stretches' means where they rise for most of the run."""
    means = [value for _, value in curve.blocks()]
    if len(means) < 6 or means[0] <= 0 or means[-1] < ABOVE * max(means[0], curve.start):
        return None
    rising = sum(later > before for before, later in pairwise(means)) / (len(means) - 1)
    above = sum(value > means[0] for value in means[1:]) / (len(means) - 1)
    return (means[0], means[-1]) if rising >= RISING and above >= 0.8 else None


def _finding(curve: LossCurve, cause: Text, top: float, step: int) -> Finding:
    sites = tuple(site for site in (curve.where, curve.backward_site, curve.step_site) if site)
    return Finding(cause=cause, fix=FIX, where=sites[0] if sites else None, also=sites[1:], first_step=step, confidence="suspected",
                   because=BECAUSE, evidence=(Evidence(START, f"{number(curve.values[0])} -> {number(top)}", FALL),))
