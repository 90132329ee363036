"""Step 5: numerics. Where something is not finite, which op made it; in half precision, what fp32 and bf16 do instead."""
from __future__ import annotations

import math
from typing import Any

from traindx.core.exams import StepResult
from traindx.core.findings import Evidence
from traindx.core.text import Text, number
from traindx.core.trials import Condition, Gauge, Trace
from traindx.experiments.case import Case
from traindx.experiments.proofs import curve
from traindx.experiments.statistics import Comparison, decide, level

STEPS = 150
SEEDS = 3
WATCHING = Text("losses and gradients, unrounded", "看损失和梯度，不做四舍五入")
AGAIN = Text("the same in {precision}", "改用 {precision} 再跑")
NOT_RUN = Text("the run did not come to a step: {error}", "这次运行一步也没走到：{error}")
PASSED = Text("losses and gradients stay finite over {steps} step{steps:|s}", "{steps} 步之内，损失和梯度都是有限数")
PASSED_HALF = Text("losses stay finite, and fp32 does no better than the precision used", "损失都是有限数，换成 fp32 也不比现在的精度好")
NONFINITE = Text("at step {step} something is no longer finite: made by {op} at {place}",
                 "第 {step} 步出现了 NaN 或无穷大：由 {place} 的 {op} 产生")
NONFINITE_SOMEWHERE = Text("at step {step} something is no longer finite; the op could not be found",
                           "第 {step} 步出现了 NaN 或无穷大；没能找到是哪个运算")
BETTER = Text("in fp32 the loss falls further: precision is what holds it back", "用 fp32 损失降得更低：拖后腿的是精度")
NORMS = Text("largest gradient norm against the median", "最大梯度范数与中位数之比")
NORMS_EXPECTED = Text("below 100", "小于 100")
SCALE = Text("loss scale, first and last", "损失缩放系数，开头和最后")


def examine(case: Case) -> StepResult:
    gauges = (Gauge("nonfinite"), Gauge("precision_scale"))
    trace = case.bench.one(WATCHING, case.bench.plain.measuring(*gauges).for_steps(STEPS))
    if not trace.steps:
        return StepResult(5, "not-checked", NOT_RUN.fill(error=trace.why))
    result = StepResult(5, "passed", PASSED.fill(steps=len(trace.steps)), curves={"as written": curve(trace)})
    result.evidence = _norms(trace)
    broken = next((step.step for step in trace.steps if step.loss is not None and not math.isfinite(step.loss)), None)
    found: dict[str, Any] = trace.facts.get("nonfinite") or {}
    if found.get("found") or broken is not None:
        result.verdict, result.why = "failed", _what_broke(found, broken)
    elif case.program.get("autocast") in ("float16", "bfloat16"):
        _in_fp32(case, result)
    return result


def _what_broke(found: dict[str, Any], broken: int | None) -> Text:
    site = found.get("site") or {}
    if not found.get("found"):
        return NONFINITE_SOMEWHERE.fill(step=broken)
    place = f"{site.get('file', '?')}:{site.get('line', '?')}"
    return NONFINITE.fill(step=found.get("step", broken), op=found.get("op") or found.get("phase"), place=place)


def _norms(trace: Trace) -> list[Evidence]:
    norms = sorted(step.grad_norm for step in trace.steps if step.grad_norm is not None and math.isfinite(step.grad_norm))
    evidence = []
    if norms and norms[len(norms) // 2] > 0:
        evidence.append(Evidence(NORMS, float(number(norms[-1] / norms[len(norms) // 2])), NORMS_EXPECTED, "measured"))
    scales = [step.scale for step in trace.steps if step.scale is not None]
    if scales:
        evidence.append(Evidence(SCALE, (scales[0], scales[-1])))
    return evidence


def _in_fp32(case: Case, result: StepResult) -> None:
    """Half precision is sound when full precision does no better."""
    base = case.bench.plain.for_steps(STEPS)
    seeds = [base.seeded(seed) for seed in range(SEEDS)]
    full = [trial.under(Condition("precision", {"to": "fp32"})) for trial in seeds]
    traces = case.bench.run(AGAIN.fill(precision="fp32"), [*seeds, *full])
    levels = [level(trace.losses) for trace in traces]
    known = [value for value in levels if value is not None]
    result.curves["fp32"] = curve(traces[SEEDS])
    if len(known) < len(levels):
        return
    comparison = Comparison(tuple(known[:SEEDS]), tuple(known[SEEDS:]), "lower")
    if decide(comparison, False, True) == "proved":
        result.verdict, result.why = "failed", BETTER
    else:
        result.why = PASSED_HALF
