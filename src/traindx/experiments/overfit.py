"""Step 0: can a few samples be learnt by heart? If not, the fault is in the code and not in the idea."""
from __future__ import annotations

import math
from typing import Any

from traindx.core.exams import Shape, Sharpness, StepResult
from traindx.core.findings import Evidence
from traindx.core.text import EMPTY, Text, number
from traindx.core.trials import Condition, Gauge, Trace, Trial
from traindx.experiments.case import FEW, Case
from traindx.experiments.proofs import curve
from traindx.experiments.shapes import blow_up, settled, shape_of

STEPS = 300
MORE_STEPS = 1200  # where it still falls after the first
STUCK = 0.5  # share of the start's excess that must be left before a flat curve counts as a fault (rule of thumb)
NEAR = 0.02  # relative distance at which a level is called a floor
TITLE = Text("overfit {samples} sample{samples:|s}", "在 {samples} 个样本上过拟合")
WHOLE = Text("overfit one whole batch", "在一个完整的 batch 上过拟合")
FOLLOW_UP = Text("look again: {change}", "再看一次：{change}")

FITS = Text("{samples} held sample{samples:|s} are learnt by heart: the loss goes from {start} to {end} in {steps} step{steps:|s}",
            "固定的 {samples} 个样本全记住了：{steps} 步之内，损失从 {start} 降到 {end}")
FALLING = Text("the loss on {samples} held sample{samples:|s} still falls after {steps} step{steps:|s} ({start} to {end}): neither passed "
               "nor failed",
               "固定 {samples} 个样本，{steps} 步后损失还在下降（{start} 到 {end}）：算不上通过，也算不上失败")
NOT_SUPERVISED = Text("the loss moves as {shape}, but its floor is not known (no torch loss against a fixed target), so nothing can be "
                      "demanded; traindx run --prove looks for causes without one",
                      "损失曲线{shape}，可是不知道它的下限（不是 torch 的损失函数对固定目标算的），没法要求它降到哪里；traindx run "
                      "--prove 不用下限也能找病因")
PARTLY = Text("the loss on {samples} held sample{samples:|s} stops at {end} (start {start}): a small model may be at its limit",
              "固定 {samples} 个样本，损失停在 {end}（起点 {start}）：模型太小时这可能就是极限")
NAMES: dict[Shape, Text] = {
    "fits": Text("fits", "拟合成功"), "goes-up": Text("going up", "往上走"), "explodes": Text("exploding", "爆炸"),
    "oscillates": Text("oscillating", "震荡"), "flat": Text("flat", "不降")}
FAILED = Text("{samples} sample{samples:|s} cannot be learnt by heart: the curve is {shape} ({start} to {end})",
              "{samples} 个样本都记不住：曲线{shape}（{start} 到 {end}）")
SIGN = Text("It rises even at a hundredth of the learning rate: the sign of the objective or of the update is wrong.",
            "学习率降到百分之一，它仍然上升：目标函数或更新的符号反了。")
NOT_SIGN = Text("At a hundredth of the learning rate it no longer rises: the steps are too large.",
                "学习率降到百分之一，就不再上升：步子太大。")
TOO_LARGE = Text("At a tenth of the learning rate it is calm: the rate is too large.", "学习率降到十分之一，就平稳了：学习率太大。")
NOT_RATE = Text("A tenth of the learning rate does not cure it: look at numerics and at the data pipeline.",
                "学习率降到十分之一，还是治不好：去查数值和数据管线。")
LATE = Text("Calm at first and then sudden: rather numerics than the learning rate.", "先平稳、再突然冲上去：更像数值问题，而不是学习率。")
TOO_SMALL = Text("At ten times the learning rate it learns: the rate is too small for this many steps.",
                 "学习率放大到 10 倍，就学得动了：只有这么多步，学习率太小。")
NOT_SMALL = Text("Without regularisation and at ten times the learning rate it stays flat: look at the loss and at how it is wired.",
                 "去掉正则化、学习率放大到 10 倍，它还是不降：去查损失函数和它的接法。")
AT_FLOOR = Text("It stops at {floor}, which is {what}.", "它停在 {floor}，这正是{what}。")
LN_C = Text("ln C: the outputs carry nothing about the label", "ln C：输出里一点标签的信息也没有")
LABEL_ENTROPY = Text("the entropy of the labels: the input is not used", "标签的熵：输入没有派上用场")
VARIANCE = Text("the variance of the target: every sample gets the same answer", "目标的方差：所有样本得到同一个答案")
CONFLICT = Text("the floor that contradictory labels set", "标签互相矛盾所决定的下限")
DOUBLE = Text("the floor of a doubled activation, ln(1 + (C - 1)/e) for softmax", "激活做了两次时的下限（softmax 是 ln(1 + (C - 1)/e)）")
NO_LOSS = Text("the run on a held batch shows no losses: {why}", "固定 batch 的运行里看不到损失：{why}")
NEXT_FAILED = Text("Mend the cause below; no later step means anything before this one passes.",
                   "先改下面的病因；这一步不过，后面的步骤都没有意义。")
LIMIT = Text("sharpness (largest eigenvalue of the Hessian) on the held batch", "固定 batch 上的锐度（Hessian 的最大特征值）")
LIMIT_EXPECTED = Text("learning rate below 2/sharpness = {limit} for plain gradient descent",
                      "做纯梯度下降时，学习率要低于 2/锐度 = {limit}")


def examine(case: Case) -> StepResult:
    if case.pinned_by is None:
        return StepResult(0, "not-checked", case.pin_why)
    few = case.pinned(FEW).for_steps(STEPS)
    whole = case.pinned(None).for_steps(STEPS)
    trace, all_of_it = case.bench.run(TITLE.fill(samples=FEW), [few.measuring(*GAUGES), whole])
    facts = _facts(trace)
    shape = _shape(trace, facts)
    if shape is None and trace.ended == "steps":
        trace = case.bench.one(TITLE.fill(samples=FEW), case.pinned(FEW).for_steps(MORE_STEPS))
        shape = _shape(trace, facts)
    result = _judge(case, few, trace, shape, facts)
    result.curves = {f"{_samples(trace)} samples": curve(trace), "one batch": curve(all_of_it), **result.curves}
    return result


HELD = 3  # the step from which a batch is held in every way
GAUGES = (Gauge("label_floor", {"at": HELD}), Gauge("initial_loss", {"at": HELD}))


def _facts(trace: Trace) -> dict[str, Any]:
    """What the gauges know of the held samples: the floor, and the loss of the best constant answer."""
    floor, start = trace.facts.get("label_floor") or {}, trace.facts.get("initial_loss") or {}
    return {"floor": floor.get("floor") or 0.0, "double": floor.get("double_activation") if floor.get("probabilities") else None,
            "constant": start.get("constant"), "classes": start.get("classes")}


def _shape(trace: Trace, facts: dict[str, Any]) -> Shape | None:
    return shape_of(trace.losses, facts["floor"], facts["constant"]) if len(trace.losses) > 1 else None


def _samples(trace: Trace) -> int:
    """How many different ones were held: the pin repeats them to fill a batch."""
    return min(FEW, next((step.samples for step in trace.steps if step.samples), FEW))


def _said(text: Text, trace: Trace, **more: Any) -> Text:
    return text.fill(samples=_samples(trace), steps=len(trace.losses), start=number(trace.losses[0]),
                     end=number(settled(trace.losses)), **more)


def _judge(case: Case, trial: Trial, trace: Trace, shape: Shape | None, facts: dict[str, Any]) -> StepResult:
    if len(trace.losses) < 2:
        return StepResult(0, "not-checked", NO_LOSS.fill(why=trace.why if trace.error else trace.how))
    if shape == "fits":
        return StepResult(0, "passed", _said(FITS, trace), shape)
    if shape is None:
        return StepResult(0, "not-checked", _said(FALLING, trace))
    if shape == "flat" and not case.supervised:
        return StepResult(0, "not-checked", NOT_SUPERVISED.fill(shape=NAMES[shape]), shape)
    if shape == "flat" and _left(trace, facts) < STUCK and not _floor(trace, facts):
        return StepResult(0, "not-checked", _said(PARTLY, trace), shape)
    more, curves = _look_again(case, trial, trace, shape, facts)
    why = _said(FAILED, trace, shape=NAMES[shape]) + Text(". ", "。") + more
    return StepResult(0, "failed", why, shape, NEXT_FAILED, curves=curves)


def _left(trace: Trace, facts: dict[str, Any]) -> float:
    """Share of the excess over the floor that is left at the end."""
    start = min(trace.losses[0], facts["constant"] or math.inf)
    return (settled(trace.losses) - facts["floor"]) / max(start - facts["floor"], 1e-30)


def _look_again(case: Case, trial: Trial, trace: Trace, shape: Shape, facts: dict[str, Any]) -> tuple[Text, dict[str, Any]]:
    """The follow-up run that each shape asks for, and what it says."""
    factor = {"goes-up": 0.01, "explodes": 0.1, "oscillates": 0.1, "flat": 10.0}[shape]
    change = Text(f"learning rate x {factor:g}", f"学习率 × {factor:g}")
    again = case.bench.one(FOLLOW_UP.fill(change=change), trial.under(Condition("scale_lr", {"k": factor})))
    seen = _shape(again, facts)
    curves = {f"learning rate x {factor:g}": curve(again)}
    if shape == "goes-up":
        return (SIGN if seen in ("goes-up", "explodes") else NOT_SIGN), curves
    if shape == "flat":
        learns = seen == "fits" or (seen is None and _left(again, facts) < 0.5 * _left(trace, facts))
        said = TOO_SMALL if learns else NOT_SMALL
        return said + Text(" ", "") + _floor_text(trace, facts), curves
    cured = seen in ("fits", None)
    late = LATE if shape == "explodes" and blow_up(trace.losses) == "late" else EMPTY
    return (TOO_LARGE if cured else NOT_RATE) + late, curves


def _floor(trace: Trace, facts: dict[str, Any]) -> tuple[float, Text] | None:
    """The known level that the curve stopped at."""
    end = settled(trace.losses)
    classes = facts["classes"]
    constant = LABEL_ENTROPY if classes else VARIANCE
    known = [(facts["double"], DOUBLE), (facts["floor"] or None, CONFLICT), (facts["constant"], constant),
             (math.log(classes) if classes and classes > 1 else None, LN_C)]
    return next(((level, what) for level, what in known if level and abs(end - level) <= NEAR * level), None)


def _floor_text(trace: Trace, facts: dict[str, Any]) -> Text:
    found = _floor(trace, facts)
    return AT_FLOOR.fill(floor=number(found[0]), what=found[1]) if found else EMPTY


SHARPNESS = Text("sharpness on the held batch", "固定 batch 上的锐度")


def sharpness(case: Case) -> Sharpness | None:
    """Measured at the start of a fit of the held samples."""
    if case.pinned_by is None:
        return None
    trace = case.bench.one(SHARPNESS, case.pinned(None).measuring(Gauge("sharpness", {"at": HELD})).for_steps(HELD + 1))
    value = (trace.facts.get("sharpness") or {}).get("value")
    return Sharpness(value, 2 / value) if isinstance(value, (int, float)) and value > 0 else None


def sharpness_evidence(found: Sharpness, rate: float | None) -> Evidence:
    return Evidence(LIMIT, found.value, LIMIT_EXPECTED.fill(limit=number(found.limit)), "measured")
