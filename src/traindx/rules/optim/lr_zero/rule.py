"""The learning rate is zero long before the training ends.

What it is:
The schedule takes the learning rate to nothing while most of the run is still ahead: a scheduler meant for epochs is stepped per batch,
``T_max`` or ``step_size`` counts the wrong thing, a warm-up counted in steps is stepped per epoch, or the rate was 0 from the start.

Why it is silent:
A step of length zero is a legal step; the loop runs on and the metrics are merely flat.

What you see:
The loss falls for a moment and is then frozen, with gradients that are alive.

Look-alikes:
The last steps of a planned decay, a warm-up from 0, cyclic schedules that come back, a plateau scheduler that has ended the training.

Fix:
Step the scheduler once in the unit that its arguments count: per epoch for epochs, per batch for the total number of batches.

Before:
    StepLR(optimizer, step_size=4)      # stepped after every batch
After:
    StepLR(optimizer, step_size=4 * len(loader))

Experiment:
Hold the learning rate at its peak: the loss goes on falling.

Source:
PyTorch documentation of torch.optim.lr_scheduler; a planned decay spends less than a tenth of its steps below a thousandth of its peak
(cosine 2 %, linear 0.1 %, by formula).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.amounts import percent
from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.data import LoaderMade
from traindx.core.observed.learning import RateSeen
from traindx.core.observed.program import OptimizerMade, SchedulerMade
from traindx.core.text import Text, number

ZH = """训练远没结束，学习率已经为零

是什么：
大半训练还没做，调度就把学习率降到了零：按轮设计的调度器每个 batch 都调用一次，``T_max`` 或 ``step_size`` 数错了单位，按步数设计的预热每轮才走一步，或者学习率从头就是 0。

为什么不报错：
步长为零的一步也是合法的一步。循环照跑，指标只是不再变化。

你会看到：
损失刚降一会儿就冻住了，梯度却还正常。

容易混淆的情况：
计划好的衰减的最后几步；从 0 开始的预热；还会回升的周期调度；已经判定训练到头的 plateau 调度。

怎么改：
调度器的参数按什么单位计数，就按什么单位调用 step：按轮就每轮一次，按 batch 就用总 batch 数。

改前：
    StepLR(optimizer, step_size=4)      # 每个 batch 之后都调用
改后：
    StepLR(optimizer, step_size=4 * len(loader))

对照实验：
把学习率固定在峰值：损失会继续下降。

来源：
PyTorch torch.optim.lr_scheduler 文档；计划好的衰减低于峰值千分之一的步数不到一成（按公式，余弦 2 %，线性 0.1 %）。
"""
LEVEL = "error"
STEP = 3
EXPLAINS = ("curve/*", "optim/lr-too-low", "loss/constant", "numeric/low-precision-weights", "optim/scheduler-before-step")
EXPERIMENT = "lr-set"

LOW = 1e-3  # of the rate that was meant
SHARE = 0.5  # of the steps spent there
SHORTEST = 20  # steps of a run that can be judged
UNBORN = 0.02  # of the rate that was meant, never reached

GONE = Text("{optimizer}'s learning rate falls from {peak} to {last}: below a thousandth of it since step {since}, for {low} of {steps} "
            "step{steps:|s}.",
            "{optimizer} 的学习率从 {peak} 降到 {last}：从第 {since} 步起不到原来的千分之一，{steps} 步里有 {low} 步是这样。")
NEVER = Text("{optimizer}'s learning rate is 0 in all {steps} step{steps:|s}.", "全部 {steps} 步里，{optimizer} 的学习率都是 0。")
WARMING = Text("{optimizer}'s warm-up never ends: after {steps} step{steps:|s} the learning rate is {last}, {share} of the {base} that was "
               "asked for.",
               "{optimizer} 的预热没有走完：{steps} 步之后，学习率才到 {last}，只有设定值 {base} 的 {share}。")
AGAIN = Text("{scheduler} counts {planned} step{planned:|s} but was stepped {calls} time{calls:|s}: the learning rate went down and up "
             "again {times} time{times:|s}.",
             "{scheduler} 按 {planned} 步来排，却走了 {calls} 次：学习率降下去又升上来，重复了 {times} 遍。")
SLEEPING = Text("{scheduler} plans {planned} step{planned:|s} but was stepped only {calls} time{calls:|s} in {steps} optimizer "
                "step{steps:|s}: the learning rate never leaves its start.",
                "{scheduler} 按 {planned} 步来排，优化器走了 {steps} 步，它却只走了 {calls} 次：学习率一直停在起点附近。")
OTHER_UNIT = Text("The scheduler is stepped in another unit than it counts", "学习率调度器按一种单位计数，却按另一种单位调用")
FIX_UNIT = Text("Step the scheduler in the unit that its arguments count: it was stepped {calls} time{calls:|s} in {steps} optimizer "
                "step{steps:|s}.",
                "调度器的参数按什么单位计数，就按什么单位调用它的 step()：优化器走了 {steps} 步，调度器走了 {calls} 次。")
FIX_RATE = Text("Give the optimizer a learning rate above 0, and let it fall only near the end.",
                "给优化器一个大于 0 的学习率，快结束时再降。")
CALLS = Text("scheduler steps in {steps} optimizer step{steps:|s}", "优化器走 {steps} 步，调度器走的次数")
RATE = Text("learning rate (meant -> last)", "学习率（设定值 -> 最后的值）")
EXPECTED = Text("near 0 only in the last tenth of the run", "只在最后十分之一的训练里接近 0")


def check(rates: list[RateSeen], optimizers: list[OptimizerMade], schedulers: list[SchedulerMade] | None,
          loaders: list[LoaderMade] | None) -> Iterator[Finding]:
    epochs = {loader.iterations for loader in loaders or []}
    for rate in rates:
        mine = [each for each in schedulers or [] if each.optimizer == rate.optimizer]
        cause = _cause(rate, mine) or next((said for each in mine if (said := _wrong_unit(rate, each, epochs)) is not None), None)
        if cause is not None and not any("Plateau" in each.class_name for each in mine):
            made = next((each for each in optimizers if each.id == rate.optimizer), None)
            yield _finding(cause, rate, made, mine)


def _wrong_unit(rate: RateSeen, scheduler: SchedulerMade, epochs: set[int]) -> Text | None:
    """A cosine planned in epochs that is stepped per batch; a one-cycle planned in batches that is stepped per epoch."""
    planned = int(float((scheduler.settings or {}).get({"CosineAnnealingLR": "T_max", "OneCycleLR": "total_steps"}.get(scheduler.class_name, ""), "0")))
    facts = {"scheduler": scheduler.class_name, "planned": planned, "calls": scheduler.calls, "steps": rate.steps}
    if scheduler.class_name == "CosineAnnealingLR" and planned in epochs and scheduler.calls >= max(4 * planned, rate.steps - 2):
        return AGAIN.fill(times=scheduler.calls // (2 * planned), **facts)
    if scheduler.class_name == "OneCycleLR" and 0 < 5 * scheduler.calls <= planned and rate.steps >= 0.8 * planned:
        return SLEEPING.fill(**facts)
    return None


def _cause(rate: RateSeen, schedulers: list[SchedulerMade]) -> Text | None:
    calls = sum(each.calls for each in schedulers)
    if rate.steps >= SHORTEST and rate.still == rate.steps:
        return NEVER
    if rate.steps >= SHORTEST and rate.low_steps > SHARE * rate.steps and 0 <= rate.last <= LOW * meant(rate):
        return GONE
    if rate.steps >= 2 * SHORTEST and 0 < calls <= rate.steps / 5 and 0 < rate.peak < UNBORN * rate.base:
        return WARMING
    return None


def meant(rate: RateSeen) -> float:
    """A range test may have gone far above what was meant; a warm-up may never have come there."""
    return min(rate.peak, rate.base) if rate.base > 0 else rate.peak


def _finding(cause: Text, rate: RateSeen, made: OptimizerMade | None, schedulers: list[SchedulerMade]) -> Finding:
    site = made.site if made else None
    sites: list[Site | None] = [each.site for each in schedulers] + [each.call_site for each in schedulers]
    places = [place for place in (*sites, rate.set_by_hand, site) if place is not None]
    calls = sum(each.calls for each in schedulers)
    wanted = rate.base if cause is WARMING else meant(rate)
    return Finding(
        cause=cause.fill(optimizer=made.class_name if made else "optimizer", peak=number(wanted), last=number(rate.last), base=number(rate.base),
                         since=rate.low_since, low=rate.low_steps, steps=rate.steps, share=percent(rate.peak / (rate.base or 1), 1)),
        fix=FIX_UNIT.fill(calls=calls, steps=rate.steps) if schedulers else FIX_RATE,
        where=places[0] if places else None,
        also=tuple(dict.fromkeys(places[1:])),
        evidence=(Evidence(RATE, f"{number(wanted)} -> {number(rate.last)}", EXPECTED, step=rate.low_since or rate.first_step),
                  *((Evidence(CALLS.fill(steps=rate.steps), calls),) if schedulers else ())),
        first_step=rate.low_since or rate.first_step,
        title=None if cause in (GONE, NEVER) else OTHER_UNIT)
