"""The optimizer is built anew again and again.

What it is:
The optimizer is constructed inside the loop, for the very same parameters: momentum, Adam's moments and its step count begin at zero
each time.

Why it is silent:
A fresh optimizer works. Its first steps are only not the steps that the old one would have made.

What you see:
Built for each step, momentum never gathers and Adam becomes a sign step of full size. Built for each epoch, the loss jumps or
limps at the start of every epoch.

Look-alikes:
An optimizer for each task, fold or client, with other data or with weights that were loaded in between, begins anew on purpose. So
does one whose state was loaded. Plain SGD has no state to lose.

Fix:
Build it once, before the loop. Change its learning rate in its groups, or through a scheduler.

Before:
    for epoch in range(epochs):
        optimizer = Adam(model.parameters(), lr=lr * 0.9 ** epoch)
After:
    optimizer = Adam(model.parameters(), lr=lr)
    scheduler = ExponentialLR(optimizer, gamma=0.9)
    for epoch in range(epochs):

Experiment:
Build it once: the jumps at the start of each epoch are gone.

Source:
Steps of each instance against the memory of its moments, 1/(1 - beta): ten times as many steps and more lose little (a rule of
thumb), and are a note.
"""
from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.gradients import Rebuilt
from traindx.core.observed.program import OptimizerMade
from traindx.core.text import Text, number

ZH = """优化器在循环里反复重建

是什么：
优化器在循环里面构造，参数还是同一批：动量、Adam 的两个矩和步数每次都从零开始。

为什么不报错：
新建的优化器能用，只是它最初几步和旧优化器接着走的不一样。

你会看到：
每一步都重建时，动量永远攒不起来，Adam 变成只看符号、每步走满的更新。每一轮重建时，每轮开头损失会跳一下，或慢半拍。

容易混淆的情况：
每个任务、每一折、每个客户端各建一个优化器，数据不同，或中间加载过权重，是有意重来。加载过状态的优化器也没有丢东西。普通 SGD 没有状态可丢。

怎么改：
在循环之前只建一次。要改学习率，就改参数组里的 lr，或用调度器。

改前：
    for epoch in range(epochs):
        optimizer = Adam(model.parameters(), lr=lr * 0.9 ** epoch)
改后：
    optimizer = Adam(model.parameters(), lr=lr)
    scheduler = ExponentialLR(optimizer, gamma=0.9)
    for epoch in range(epochs):

对照实验：
只建一次：每轮开头的跳动消失。

来源：
把每个实例走的步数和它的记忆长度 1/(1 - beta) 相比：步数是记忆长度的十倍以上时损失很小（经验值），只作提示。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("curve/spike", "curve/oscillating", "curve/plateau", "optim/lr-too-high", "optim/lr-too-low")
EXPERIMENT = "build-once"

CAUSE = Text("{name} was built {count} time{count:|s} for the same parameters, about every {steps} step{steps:|s}: its moments start "
             "from zero each time.",
             "{name} 为同一批参数建了 {count} 次，大约每 {steps} 步一次：它攒下的各阶矩每次都从零开始。")
FIX = Text("Build the optimizer once, before the loop.", "把优化器移到循环之前，只建一次。")
BUILT = Text("times it was built", "构造次数")
STEPS = Text("steps between two of them (median)", "相邻两次之间的更新步数（中位数）")
MEMORY = Text("at least ten times its memory of {memory} step{memory:|s}", "至少是它记忆长度（{memory} 步）的十倍")
WHY = Text("the same data and untouched weights between two of them", "相邻两次之间，数据相同，权重也没有动过")
LOST_ASKED, MEMORIES = 2, 10


def check(made: list[OptimizerMade], rebuilt: list[Rebuilt] | None) -> Iterator[Finding]:
    for each in rebuilt or []:
        lost = each.instances - 1 - each.kept_state - each.moved_between - each.other_data
        if each.memory and LOST_ASKED <= lost < len(made) and lost >= (each.instances - 1) / 2:
            yield _finding(each, median(each.steps))


def _finding(each: Rebuilt, steps: float) -> Finding:
    return Finding(
        cause=CAUSE.fill(name=each.class_name, count=each.instances, steps=number(steps)),
        fix=FIX,
        where=each.site,
        also=(each.step_site,) if each.step_site else (),
        evidence=(Evidence(BUILT, each.instances, "1"),
                  Evidence(STEPS, steps, MEMORY.fill(memory=number(each.memory)))),
        first_step=each.step,
        confidence="certain" if steps <= each.memory else "likely",
        because=Text("", "") if steps <= each.memory else WHY,
        level=None if steps < MEMORIES * each.memory else "note")
