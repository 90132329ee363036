"""The loss swings widely and does not settle.

What it is:
Averaged over many batches, the loss goes down to a half of its start and up again beyond its start, over and over.

Why it is silent:
Each single value looks like a noisy batch.

What you see:
A saw-tooth curve; results that depend on the step at which you stop.

Look-alikes:
Noise between mini-batches is normal: it averages out. Warm restarts bump, but stay below the start. GANs and RL swing by nature.

Fix:
Look for batches that differ in kind (sorted data) first; else lower the learning rate, or use larger batches.

Before:
    DataLoader(data, batch_size=32)
After:
    DataLoader(data, batch_size=32, shuffle=True)

Experiment:
Shuffle; then the learning rate divided by ten.

Source:
The diagnosis tree of traindx ("oscillates"); the counts are rules of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text, number
from traindx.signals.loss_curve import LossCurve

ZH = """损失大幅震荡，静不下来

是什么：
对很多个 batch 取平均之后，损失仍然一会儿降到起点的一半，一会儿又升到起点以上，反复多次。

为什么不报错：
单看一个值，都像是 batch 之间的噪声。

你会看到：
锯齿一样的曲线；结果取决于你停在哪一步。

容易混淆的情况：
小批量之间的噪声是正常的，平均之后就没了。热重启会鼓一下，但低于起点。GAN 和强化学习本来就摆动。

怎么改：
先看各个 batch 是不是不同类的数据（没有打乱）；不是的话，就降低学习率，或者加大 batch。

改前：
    DataLoader(data, batch_size=32)
改后：
    DataLoader(data, batch_size=32, shuffle=True)

对照实验：
打乱数据；再把学习率除以 10。

来源：
traindx 的诊断树（「震荡」）；次数是经验值。
"""
LEVEL = "warning"
STEP = 3
EXPLAINS = ("curve/spike", "curve/plateau")
EXPERIMENT = "lr-tenth"

SWINGS = 4  # from below half the start to above it
LOW = 0.5

CAUSE = Text("Averaged over {size} step{size:|s} each, the loss swung {swings} time{swings:|s} between less than half of its start "
             "({start}) and more than its start.",
             "每 {size} 步取一次平均，损失在起点（{start}）的一半以下和起点以上之间，来回摆动了 {swings} 次。")
FIX = Text("Shuffle the data if it is sorted; else lower the learning rate or use larger batches.",
           "数据若是排好序的，先打乱；否则降低学习率，或者加大 batch。")
BECAUSE = Text("a curve shows the symptom, not its cause", "曲线只能说明症状，说明不了病因")
COUNT = Text("swings", "摆动次数")


def check(curve: LossCurve) -> Iterator[Finding]:
    blocks = curve.blocks(count=60, least=8)
    means = [value for _, value in blocks]
    start = curve.start
    swings = _swings(means, LOW * start, start) if curve.supervised and len(means) >= 12 and start > 0 else 0
    if swings >= SWINGS:
        sites = tuple(site for site in (curve.where, curve.step_site) if site)
        yield Finding(cause=CAUSE.fill(size=blocks[1][0] - blocks[0][0], swings=swings, start=number(start)), fix=FIX,
                      where=sites[0] if sites else None, also=sites[1:], confidence="suspected", because=BECAUSE,
                      evidence=(Evidence(COUNT, swings, f"< {SWINGS}"),))


def _swings(values: list[float], low: float, high: float) -> int:
    """How often the values, having been below ``low``, rose above ``high``."""
    count, down = 0, False
    for value in values:
        if value < low:
            down = True
        elif value > high and down:
            count, down = count + 1, False
    return count
