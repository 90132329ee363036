"""Step 2: loss and output. Does it start where theory says, use its input, keep samples apart, repeat itself in eval mode?"""
from __future__ import annotations

from statistics import mean
from typing import Any

from traindx.core.exams import StepResult
from traindx.core.findings import Evidence
from traindx.core.text import Text, number
from traindx.core.trials import Condition, Gauge, Trace
from traindx.experiments.case import Case
from traindx.experiments.proofs import curve
from traindx.experiments.statistics import Comparison, level

SEEDS = 5
HORIZONS = (100, 600)
SIDES = 3  # seeds with, and as many without the input
ALIKE = 0.01  # in log loss
AT_START = Text("initial loss at {count} seed{count:|s}", "{count} 个种子下的初始损失")
BASELINE = Text("the same with all inputs zero", "把输入全部置零再来一次")
APART = Text("samples kept apart, and the same input twice", "样本之间是否独立，同一输入两次是否一致")
PASSED = Text("the loss starts where theory puts it, and the input is used", "损失从理论值附近起步，输入也用上了")
PASSED_PARTLY = Text("nothing wrong was measured; not everything could be measured", "测到的都没问题，但有些量测不了")
UNUSED = Text("with all inputs zero the loss falls just as far: the input is not used",
              "输入全部置零，损失照样降得这么多：输入没有派上用场")
LEAKS = Text("in eval mode the output of a sample changes with another sample", "推理模式下，一个样本的输出会随另一个样本改变")
SAME_TWICE = Text("the same input twice in eval mode gives the same output", "推理模式下同一输入两次输出一致")
KEPT_APART = Text("in eval mode each output depends on its own sample only", "推理模式下每个输出只取决于自己的样本")
YES, NO = Text("yes", "是"), Text("no", "否")
INITIAL = Text("initial loss, mean over seeds", "初始损失（多个种子的平均）")
THEORY = Text("{theory} for outputs that know nothing", "输出一无所知时为 {theory}")
EXCESS = Text("excess of the initial loss, told as the standard deviation of the logits", "初始损失高出多少，折算成 logits 的标准差")
SMALL = Text("below 1", "小于 1")
SPREAD = Text("log loss with inputs zeroed minus as written", "输入置零和原样，对数损失之差")
ABOVE = Text("above 0", "大于 0")


def examine(case: Case) -> StepResult:
    plain = case.bench.plain
    starts = case.bench.run(AT_START.fill(count=SEEDS), [
        plain.measuring(Gauge("initial_loss")).for_steps(1).seeded(seed) for seed in range(SEEDS)])
    apart = case.bench.one(APART, plain.measuring(Gauge("batch_dependence"), Gauge("eval_twice")).for_steps(2))
    result = StepResult(2, "passed", PASSED)
    result.evidence += _initial(starts)
    faults = [*_unused(case, result), *_apart(apart, result)]
    if faults:
        result.verdict, result.why = "failed", faults[0]
    elif len(result.evidence) < 2:
        result.why = PASSED_PARTLY
    return result


def _initial(starts: list[Trace]) -> list[Evidence]:
    facts = [trace.facts.get("initial_loss") or {} for trace in starts]
    values = [fact["value"] for fact in facts if isinstance(fact.get("value"), (int, float))]
    theory = next((fact["chance"] for fact in facts if isinstance(fact.get("chance"), (int, float))), None)
    if not values:
        return []
    evidence = [Evidence(INITIAL, mean(values), THEORY.fill(theory=number(theory)) if theory else "", step=1)]
    excess = [fact["implied_std"] for fact in facts if isinstance(fact.get("implied_std"), (int, float))]
    return evidence + ([Evidence(EXCESS, mean(excess), SMALL, "formula", step=1)] if excess else [])


def _unused(case: Case, result: StepResult) -> list[Text]:
    """The input-independent baseline: a sound model does better with its input than without. Asked again after more steps,
    for many models learn the mix of the labels first."""
    comparison, unused = None, False
    for steps in HORIZONS:
        traces = _with_and_without(case, steps)
        if (comparison := _compared(traces)) is None:
            return []
        result.curves = {"as written": curve(traces[0]), "inputs zero": curve(traces[SIDES])}
        unused = comparison.effect < ALIKE and max(comparison.gap, comparison.gap_against) <= 0 and _fell(traces[:SIDES])
        if not unused or not case.supervised:
            break
    if comparison is not None:
        result.evidence.append(Evidence(SPREAD, comparison.effect, ABOVE))
    return [UNUSED] if unused and case.supervised else []


def _with_and_without(case: Case, steps: int) -> list[Trace]:
    seeds = [case.bench.plain.for_steps(steps).seeded(seed) for seed in range(SIDES)]
    return case.bench.run(BASELINE, [*seeds, *(trial.under(Condition("zero_inputs")) for trial in seeds)])


def _compared(traces: list[Trace]) -> Comparison | None:
    levels = tuple(value for trace in traces if (value := level(trace.losses)) is not None)
    if len(levels) < len(traces) or any(trace.failed_conditions() for trace in traces[SIDES:]):
        return None
    return Comparison(levels[:SIDES], levels[SIDES:], "higher")


def _fell(traces: list[Trace]) -> bool:
    """Whether the loss as written came down at all: else the baseline says nothing."""
    falls = [(level(trace.losses, 1), level(trace.losses)) for trace in traces]
    return all(start is not None and end is not None and start - end > 0.1 for start, end in falls)


def _apart(trace: Trace, result: StepResult) -> list[Text]:
    """Measured in eval mode, where BatchNorm and dropout no longer mix or draw.

    Two answers to one input are told, and judged by the rules alone: a model may draw on purpose, as a VAE does.
    """
    leaks: dict[str, Any] = trace.facts.get("batch_dependence") or {}
    twice: dict[str, Any] = trace.facts.get("eval_twice") or {}
    if twice.get("equal") is not None:
        result.evidence.append(Evidence(SAME_TWICE, YES if twice["equal"] else NO, YES))
    known = leaks.get("mixes") is not None and (leaks.get("samples") or {}).get("evidence") != "assumed"
    if known:
        result.evidence.append(Evidence(KEPT_APART, NO if leaks["mixes"] else YES, YES))
    return [LEAKS] if known and leaks["mixes"] and leaks.get("by_gradient") and leaks.get("by_exchange") else []
