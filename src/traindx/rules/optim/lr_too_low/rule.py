"""The learning rate is far too low.

What it is:
Each step changes the weights by less than a ten-thousandth of their size, so that in the whole run they hardly leave their start.

Why it is silent:
Every step goes in the right direction; the loss even falls, in the third decimal.

What you see:
A loss that creeps, at the level of an untrained model, while gradients are alive.

Look-alikes:
The late phase of fine-tuning, a warm-up that has just begun, adapters (LoRA) beside frozen weights, gradients that vanish.

Fix:
Raise the learning rate until the update is about a thousandth of the weights per step (start of a sweep: 1e-3 for Adam, 0.1 for SGD).

Before:
    optimizer = AdamW(model.parameters(), lr=1e-6)
After:
    optimizer = AdamW(model.parameters(), lr=1e-3)

Experiment:
Ten times the learning rate: the loss falls about ten times faster.

Source:
Update ratio of about 1e-3 as a rule of thumb: A. Karpathy's lecture notes for CS231n ("ratio of weights to updates").
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.amounts import percent
from traindx.core.findings import Evidence, Finding
from traindx.core.observed.learning import Drift, UpdateSeen
from traindx.core.observed.program import LossCall, OptimizerMade, SchedulerMade
from traindx.core.text import Text, number
from traindx.signals.learning import Course, Learners, ordinary, typical
from traindx.signals.traces import TrainingTraces

ZH = """学习率低得太多

是什么：
每一步只改动权重的不到万分之一，整次训练下来，权重几乎没有离开起点。

为什么不报错：
每一步的方向都对，损失也确实在降，只不过降在小数点后第三位。

你会看到：
梯度正常，损失却在没训练过的水平上一点点挪。

容易混淆的情况：
微调的后期；刚开始的预热；冻结权重旁边的适配器（LoRA）；梯度消失。

怎么改：
调高学习率，直到每步的更新约为权重的千分之一（扫描的起点：Adam 用 1e-3，SGD 用 0.1）。

改前：
    optimizer = AdamW(model.parameters(), lr=1e-6)
改后：
    optimizer = AdamW(model.parameters(), lr=1e-3)

对照实验：
学习率乘以 10：损失下降大约快十倍。

来源：
参数更新比例约 1e-3 是经验值：A. Karpathy 的 CS231n 讲义（ratio of weights to updates）。
"""
LEVEL = "warning"
STEP = 3
EXPLAINS = ("curve/plateau", "numeric/low-precision-weights", "curve/noise-sized-gain")
EXPERIMENT = "lr-x10"

LONG = 100  # steps
RATIO = 1e-4  # update / weight per step: ten times below the band
DRIFT = 0.02  # of the weights' size, whole run
GAIN = 0.1  # of the first loss
FACTOR = 0.05  # of the rate that the optimizer was built with
ALIVE = 1e-4  # gradient / weight

CAUSE = Text("Each step moves the weights by {ratio} of their size: after {steps} step{steps:|s} they are {drift} from where they began, "
             "and the loss went from {start} to {end}.",
             "每一步的更新，只有权重自身大小的 {ratio} 倍：{steps} 步之后，权重只离开起点 {drift}，损失从 {start} 变到 {end}。")
FIX = Text("Raise the learning rate of {rate}: about {better} would give the usual update of a thousandth.",
           "调高学习率（现在是 {rate}）：大约 {better}，才有通常那样千分之一的更新。")
FIX_FACTOR = Text("Let {scheduler} give a factor near 1 at its height: it multiplies the optimizer's own rate {base}, and the largest rate "
                  "was {peak}.",
                  "让 {scheduler} 在最高处给出接近 1 的倍数：它乘的是优化器自己的学习率 {base}，而实际用过的最大学习率只有 {peak}。")
UPDATE = Text("update ratio per step, median", "每步的参数更新比例（中位数）")
MOVED = Text("distance of the weights from their start, relative", "权重离开起点的距离（相对值）")
LOSS = Text("loss (first tenth -> last tenth)", "损失（最初十分之一 -> 最后十分之一）")


def check(learners: Learners, updates: list[UpdateSeen], drift: Drift, course: Course, losses: list[LossCall] | None,
          traces: TrainingTraces | None, schedulers: list[SchedulerMade] | None) -> Iterator[Finding]:
    largest = max((update.ratio for update in updates), default=0.0)
    ratio = largest if _decays(learners) else typical([update.ratio for update in updates])
    if not (course.steps >= LONG and 0 < ratio < RATIO and drift.drift < DRIFT and abs(course.start - course.end) < GAIN * abs(course.start)):
        return
    if not ordinary(learners, losses or [], course.start) or not _alive(updates) or _rises(learners):
        return
    made = next(iter(learners.stepped()), None)
    scheduler = _scheduler_of(learners, made, schedulers or [])
    sites = [site for site in (scheduler.site if scheduler else None, made.site if made else None, *(traces.update_sites() if traces else []), updates[0].site) if site is not None]
    yield Finding(
        cause=CAUSE.fill(ratio=number(ratio), steps=course.steps, drift=percent(drift.drift, 2), start=number(course.start, 4), end=number(course.end, 4)),
        fix=_fix(learners, made, scheduler, ratio),
        where=sites[0] if sites else None, also=tuple(dict.fromkeys(sites[1:])),
        evidence=(Evidence(UPDATE, number(ratio), Text("about 1e-3", "约 1e-3"), origin="measured"),
                  Evidence(MOVED, number(drift.drift), Text("above 0.1", "大于 0.1"), origin="measured"),
                  Evidence(LOSS, f"{number(course.start, 4)} -> {number(course.end, 4)}", Text("falling", "下降"))),
        first_step=updates[0].step, confidence="likely",
        because=Text("judged from the size of the updates", "根据更新的大小判断"))


def _fix(learners: Learners, made: OptimizerMade | None, scheduler: SchedulerMade | None, ratio: float) -> Text:
    if made is None:
        return FIX.fill(rate="?", better="?")
    rate = learners.rates[made.id]
    if scheduler is not None:
        return FIX_FACTOR.fill(scheduler=scheduler.class_name, base=number(rate.base), peak=number(rate.peak))
    return FIX.fill(rate=number(rate.peak), better=number(min(rate.peak * 1e-3 / ratio, 1.0), 1))


def _alive(updates: list[UpdateSeen]) -> bool:
    """Gradients that vanish make small updates at any rate: then the rate is not to blame."""
    return typical([update.gradient / update.weight for update in updates if update.weight > 0]) > ALIVE


def _rises(learners: Learners) -> bool:
    """A warm-up that goes on decides the rate."""
    return any(rate.rises > rate.steps / 4 and rate.last >= rate.peak for rate in learners.rates.values())


def _decays(learners: Learners) -> bool:
    """What is small at the end of a decay was meant; the largest update, near the rate's peak, was not."""
    return any(rate.last < 0.3 * rate.peak for rate in learners.rates.values())


def _scheduler_of(learners: Learners, made: OptimizerMade | None, schedulers: list[SchedulerMade]) -> SchedulerMade | None:
    """The scheduler that keeps the rate far below the one that the optimizer was built with: its factor is a rate itself."""
    rate = learners.rates[made.id] if made is not None else None
    if made is None or rate is None or rate.peak > FACTOR * rate.base:
        return None
    return next((each for each in schedulers if each.optimizer == made.id), None)
