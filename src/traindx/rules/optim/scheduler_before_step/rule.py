"""The scheduler steps before the optimizer.

What it is:
``scheduler.step()`` is called ahead of the first ``optimizer.step()``, and so in every round: the first value of the schedule is
never used, and every later one comes a step (or an epoch) early.

Why it is silent:
torch prints one warning at the start, which is easily lost in a log. The training goes on.

What you see:
Often nothing. With a short warm-up, a few milestones or one drop for each epoch, the curve differs from the one intended.

Look-alikes:
A GradScaler that skips the first steps makes a right order look like this. Calls before training that bring a resumed schedule to
its place come from another line. Old code that tells the scheduler the epoch sets the rate itself.

Fix:
Step the optimizer first.

Before:
    scheduler.step()
    optimizer.step()
After:
    optimizer.step()
    scheduler.step()

Experiment:
Swap the two: the learning rate of step 1 is the one that the optimizer was built with.

Source:
PyTorch documentation, "How to adjust learning rate" (order since 1.1). Judged by the order of events before the first step.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.program import Event, SchedulerMade, Window
from traindx.core.text import Text

ZH = """学习率调度器比优化器先走

是什么：
``scheduler.step()`` 排在第一次 ``optimizer.step()`` 之前，之后每一轮也都如此：调度的第一个值从没用上，后面每个值都早来一步（或一轮）。

为什么不报错：
torch 只在开头打印一次警告，很容易淹没在日志里。训练照样跑。

你会看到：
多半看不出来。如果预热很短、里程碑很少，或每轮都大幅降低学习率，曲线就和设想的不一样。

容易混淆的情况：
GradScaler 跳过最初几步时，正确的顺序看上去也像这样。断点续训时，为了把调度器拨到原位的调用写在另一行。旧代码把轮数直接告诉调度器，学习率由它自己设定。

怎么改：
先更新优化器。

改前：
    scheduler.step()
    optimizer.step()
改后：
    optimizer.step()
    scheduler.step()

对照实验：
两行对调：第 1 步的学习率就是优化器建立时的值。

来源：
PyTorch 文档「How to adjust learning rate」（1.1 版起的顺序）。根据第一次更新之前各事件的先后判断。
"""
LEVEL = "warning"
STEP = 1

CAUSE = Text("{name}.step() runs before the first optimizer.step(): the first learning rate of the schedule is skipped.",
             "{name}.step() 在第一次 optimizer.step() 之前执行：调度的第一个学习率没用上就跳过了。")
FIX = Text("Call scheduler.step() after optimizer.step().", "把 scheduler.step() 放到 optimizer.step() 之后。")
CALLS = Text("scheduler steps before the first optimizer step", "第一次更新之前，调度器走的步数")
CALLS_ASKED = 3
LATEST = 8  # the step by which the optimizer must have begun: later, it was held back on purpose


def check(schedulers: list[SchedulerMade], windows: list[Window]) -> Iterator[Finding]:
    events = _events(windows)
    for made in schedulers:
        early = [event for event in _before_first_step(events, made.optimizer) if event.what == "scheduler" and event.who == made.id]
        if made.calls >= CALLS_ASKED and early and not made.mode and early[0].detail != "epoch" and early[0].site == made.call_site:
            yield _finding(made, early[0].site, sum(event.count for event in early), _step_site(events, made.optimizer))


def _events(windows: list[Window]) -> list[Event]:
    """Of the first windows, in order."""
    return [event for window in sorted(windows, key=lambda w: w.step) if window.step <= LATEST for event in window.events]


def _before_first_step(events: list[Event], optimizer: int) -> list[Event]:
    """Up to the optimizer's first step, or to the first that a GradScaler may have skipped; nothing where there is none."""
    for i, event in enumerate(events):
        if event.who == optimizer and event.what in ("step", "scaler-step"):
            return events[:i]
    return []


def _step_site(events: list[Event], optimizer: int) -> Site | None:
    return next((event.site for event in events if event.what == "step" and event.who == optimizer), None)


def _finding(made: SchedulerMade, call: Site | None, early: int, step: Site | None) -> Finding:
    return Finding(
        cause=CAUSE.fill(name=made.class_name),
        fix=FIX,
        where=call,
        also=tuple(site for site in (step, made.site) if site),
        evidence=(Evidence(CALLS, early, "0", step=1),))
