"""Step 3: the learning rate. Short runs over a logarithmic grid; first it is counted how many cannot be run at all."""
from __future__ import annotations

from traindx.core.exams import RateRange, StepResult
from traindx.core.findings import Evidence
from traindx.core.text import EMPTY, Text, number
from traindx.core.trials import Condition, Trace
from traindx.experiments.case import Case
from traindx.experiments.rates import HIGHEST, INFEASIBLE_LINE, LOWEST, RateRun, grid, read, wider

STEPS = 100
SEEDS = 2
SWEEP = Text("learning rates {low:.0e} .. {high:.0e}", "学习率 {low:.0e} .. {high:.0e}")
INTERVAL = Text("a good learning rate lies between {low:.1e} and {high:.1e}; the program uses {used}",
                "合适的学习率在 {low:.1e} 到 {high:.1e} 之间；程序用的是 {used}")
REFUSED = Text("no interval is given: {why}", "不给区间：{why}")
DIVERGES = Text("; from {rate:.1e} on it diverges", "；从 {rate:.1e} 起发散")
TOO_HIGH = Text("the program's learning rate {used} cannot be run: from {rate:.1e} on it diverges",
                "程序的学习率 {used} 跑不起来：从 {rate:.1e} 起就发散")
TOO_MANY = Text("{share} % of the learning rates from {low:.0e} to {high:.0e} cannot be run, above the line of one third",
                "{low:.0e} 到 {high:.0e} 之间，有 {share} % 的学习率跑不起来，超过了三分之一这条线")
BACK = Text("Do not tune further; go back to the code: inputs not normalised, initialisation too large, a log that is missing?",
            "别再调了，回去查代码：输入没归一化？初始化太大？漏了一个 log？")
SHARE = Text("infeasible share of the grid", "网格里不可行点的比例")
LINE = Text("at most 1/3 (a line to argue about, not a standard)", "不超过 1/3（可以争论的参考线，不是标准）")
STEEPEST = Text("steepest fall", "下降最陡处")
THIRD = Text("take a rate 3 to 10 times smaller than this", "取比它小 3 到 10 倍的学习率")
CANNOT = Text("the learning rate cannot be set: {why}", "改不了学习率：{why}")
NO_LOSSES = Text("no losses were seen in the sweep", "扫描中没有看到损失")


def examine(case: Case) -> tuple[StepResult, RateRange | None]:
    tried: dict[float, list[Trace]] = {}
    wanted = grid()
    while wanted:
        tried |= _sweep(case, wanted)
        if (why := _impossible(tried)) is not None:
            return StepResult(3, "not-checked", why), None
        wanted = wider(_runs(tried))
    runs = _runs(tried)
    found = read(runs, case.rate)
    first = [run for run in runs if LOWEST * 0.99 <= run.rate <= HIGHEST * 1.01]
    share = sum(not run.feasible for run in first) / len(first)
    result = _judge(found, share)
    result.curves, result.log_x = {"final loss": [(run.rate, _final(run)) for run in runs if run.feasible]}, True
    result.evidence = [Evidence(SHARE, round(share, 3), LINE)]
    if found.steepest:
        result.evidence.append(Evidence(STEEPEST, found.steepest, THIRD, "rule of thumb"))
    return result, found


def _sweep(case: Case, rates: list[float]) -> dict[float, list[Trace]]:
    trials = [case.bench.plain.under(Condition("fix_lr", {"lr": rate})).for_steps(STEPS).seeded(seed)
              for rate in rates for seed in range(SEEDS)]
    traces = case.bench.run(SWEEP.fill(low=min(rates), high=max(rates)), trials)
    return {rate: traces[at * SEEDS:(at + 1) * SEEDS] for at, rate in enumerate(rates)}


def _impossible(tried: dict[float, list[Trace]]) -> Text | None:
    traces = [trace for some in tried.values() for trace in some]
    failed = next((state for trace in traces for state in trace.failed_conditions()), None)
    if failed is not None:
        return CANNOT.fill(why=failed.why)
    return NO_LOSSES if not any(trace.losses for trace in traces) else None


def _runs(tried: dict[float, list[Trace]]) -> list[RateRun]:
    return sorted((RateRun(rate, tuple(tuple(trace.losses) for trace in traces)) for rate, traces in tried.items()),
                  key=lambda run: run.rate)


def _final(run: RateRun) -> float:
    import math
    return math.exp(run.level)


def _judge(found: RateRange, share: float) -> StepResult:
    used = number(found.used) if found.used is not None else "?"
    diverges = found.diverges_at
    if found.used is not None and diverges is not None and found.used >= diverges * 0.99:
        return StepResult(3, "failed", TOO_HIGH.fill(used=used, rate=diverges), next=BACK if share > INFEASIBLE_LINE else EMPTY)
    if share > INFEASIBLE_LINE:
        why = TOO_MANY.fill(share=round(100 * share), low=LOWEST, high=HIGHEST)
        return StepResult(3, "failed", why, next=BACK)
    if found.interval is None:
        return StepResult(3, "not-checked", REFUSED.fill(why=found.refused or EMPTY))
    low, high = found.interval
    why = INTERVAL.fill(low=low, high=high, used=used) + (DIVERGES.fill(rate=diverges) if diverges else EMPTY)
    return StepResult(3, "passed", why)
