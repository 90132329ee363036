"""A suspicion becomes an experiment: runs as written against runs with one thing changed, seeds added until decided."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx.core.exams import Points
from traindx.core.findings import Judged, Proof
from traindx.core.text import Text
from traindx.core.trials import Condition, Trace
from traindx.experiments.bench import Bench
from traindx.experiments.plans import LINEAR_NAME, PLANS, SHORTEST, Measurement, Plan, linear
from traindx.experiments.statistics import Comparison, decide, decide_same, told

SEEDS = (2, 3, 5)  # runs a side: more are added while undecided
PROVING = Text("proving {rule}: {title}", "证实 {rule}：{title}")
AS_WRITTEN, CHANGED = "as written", "changed"
TOO_SHORT = Text("the program ended after {steps} step{steps:|s}: too few to compare", "程序只跑了 {steps} 步就结束，太少，没法比较")
NO_STATISTIC = Text("the runs do not show it: {statistic}", "这些运行里看不到这个量：{statistic}")
NOT_RUN = Text("a run under the change ended early ({ended}): {error}", "改动后的运行提前结束（{ended}）：{error}")
NOT_APPLIED = Text("the change could not be made ({condition}): {why}", "这个改动做不了（{condition}）：{why}")
MEASURED = Text("measured in {count} run{count:|s}", "在 {count} 次运行里实测")
NOT_MEASURED = Text("the measurement could not be taken", "测不了")
CONTRADICTED = Text("the measurement shows the opposite", "实测结果相反")
MIXED = Text("the runs disagree", "几次运行结果不一致")


def prove(bench: Bench, judged: Judged) -> Proof | None:
    """None where the rule has no experiment. Raises OutOfTime."""
    plan = PLANS.get(judged.experiment or "")
    if plan is None:
        return None
    name = str(judged.experiment)
    title = PROVING.fill(rule=judged.rule, title=plan.title)
    if isinstance(plan, Measurement):
        return _by_measurement(bench, name, plan, title)
    return _by_comparison(bench, name, plan, _aimed(plan, judged), title, max(0, judged.finding.first_step - 1))


def _aimed(plan: Plan, judged: Judged) -> tuple[Condition, ...]:
    """The change, told where the finding points."""
    where = judged.finding.where
    if where is None:
        return plan.change
    sites = [where, *judged.finding.also]
    aim = {"lines": [[site.file, site.line] for site in sites]}
    return tuple(Condition(c.name, {**c.settings, **aim}) if c.name in AIMED else c for c in plan.change)


AIMED = frozenset(("squeeze_operand",))  # conditions that act at the finding's own lines


def _by_comparison(bench: Bench, name: str, plan: Plan, change: tuple[Condition, ...], title: Text, before: int) -> Proof:
    """``before``: steps until the fault begins, as in a second phase of training; horizons count from there."""
    undecided = Proof("undecided", name)
    for horizon, seeds, last in _stages(plan):
        horizon += before
        plain, changed = _pairs(bench, title, change, horizon, seeds)
        if (problem := _unusable(plain, changed, change)) is not None:
            return Proof("undecided", name, why=problem)
        comparison, statistic = _compared(plan, plain, changed, horizon)
        if comparison is None:
            return Proof("undecided", name, why=NO_STATISTIC.fill(statistic=statistic))
        outcome = decide_same(comparison, last) if plan.same else decide(comparison, plan.refutes, last)
        undecided = Proof(outcome, name, round(comparison.effect, 4), round(comparison.spread, 4),
                          told(comparison, statistic), _curves(plain, changed))
        if outcome != "undecided":
            break
    return undecided


def _stages(plan: Plan) -> Iterator[tuple[int, int, bool]]:
    """``(horizon, seeds, last)``: the shortest and fewest first."""
    for horizon in plan.horizons:
        for seeds in SEEDS:
            yield horizon, seeds, (horizon, seeds) == (plan.horizons[-1], SEEDS[-1])


def _pairs(bench: Bench, title: Text, change: tuple[Condition, ...], horizon: int, seeds: int) -> tuple[list[Trace], list[Trace]]:
    base = bench.plain.for_steps(horizon)
    plain = [base.seeded(seed) for seed in range(seeds)]
    traces = bench.run(title, [*plain, *(trial.under(*change) for trial in plain)])
    return traces[:seeds], traces[seeds:]


def _unusable(plain: Sequence[Trace], changed: Sequence[Trace], change: Sequence[Condition]) -> Text | None:
    """Why nothing can be compared."""
    asked = {condition.name for condition in change}
    for trace in changed:
        for state in trace.failed_conditions():
            if state.name in asked:
                return NOT_APPLIED.fill(condition=state.name, why=state.why)
    for trace in (*plain, *changed):
        if trace.ended in ("refused", "lost", "memory"):
            return NOT_RUN.fill(ended=trace.how, error=trace.why)
    for trace in changed:
        if trace.ended == "raised" and len(trace.steps) < SHORTEST:
            return NOT_RUN.fill(ended=trace.how, error=trace.why)
    shortest = min(len(trace.losses) for trace in (*plain, *changed))
    return TOO_SHORT.fill(steps=shortest) if shortest < SHORTEST else None


def _compared(plan: Plan, plain: Sequence[Trace], changed: Sequence[Trace], horizon: int) -> tuple[Comparison | None, Text]:
    """Both sides over the same number of steps, and what was compared."""
    traces = [*plain, *changed]
    horizon = min(horizon, *(len(trace.steps) for trace in traces))
    values, name = [plan.statistic.of(trace, horizon) for trace in traces], plan.statistic.name
    if None in values and plan.statistic.of_loss and (instead := linear(traces, horizon)):
        values, name = [*instead], LINEAR_NAME
    known = tuple(value for value in values if value is not None)
    if len(known) < len(values):
        return None, name
    return Comparison(known[:len(plain)], known[len(plain):], plan.direction), name


def _curves(plain: Sequence[Trace], changed: Sequence[Trace]) -> dict[str, Points]:
    return {f"{name}, seed {seed}": curve(trace) for name, traces in ((AS_WRITTEN, plain), (CHANGED, changed))
            for seed, trace in enumerate(traces)}


def curve(trace: Trace) -> Points:
    """The losses of a trace as points."""
    return [(step.step, step.loss) for step in trace.steps if step.loss is not None]


def _by_measurement(bench: Bench, name: str, plan: Measurement, title: Text) -> Proof:
    base = bench.plain.under(*plan.change).measuring(plan.gauge).for_steps(plan.steps)
    traces = bench.run(title, [base, base.seeded(1)])
    seen = [plan.shows(trace.facts.get(plan.gauge.name) or {}) for trace in traces]
    if None in seen:
        return Proof("undecided", name, why=_why_not(traces, plan))
    if all(seen):
        return Proof("proved", name, why=MEASURED.fill(count=len(seen)))
    return Proof("undecided", name, why=MIXED if any(seen) else CONTRADICTED)


def _why_not(traces: Sequence[Trace], plan: Measurement) -> Text:
    for trace in traces:
        said = (trace.facts.get(plan.gauge.name) or {}).get("not_measured")
        if said:
            return Text(said["en"], said["zh"])
        if trace.error:
            return NOT_RUN.fill(ended=trace.how, error=trace.why)
    return NOT_MEASURED
