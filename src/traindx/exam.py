"""The exam: steps 0 to 6 in order. A later step is not tried before the earlier ones pass."""
from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from traindx.core.exams import ExamReport, Proved, StepResult
from traindx.core.findings import Judged, Report
from traindx.core.recording import Recording, Tail
from traindx.core.text import Text
from traindx.diagnosis import diagnose
from traindx.errors import UsageError
from traindx.experiments import capacity, data, numerics, output, overfit, rate, resume, scales, seeds
from traindx.experiments.bench import Bench, OutOfTime
from traindx.experiments.case import Case, cannot_be_examined, hold_batch, plain_runs, same
from traindx.experiments.proofs import prove

STEPS: tuple[str, ...] = ("overfit", "data", "output", "lr", "init", "numerics", "capacity")
SEEDS = "seeds"
RESUME = resume.NAME
ASIDE = (SEEDS, RESUME)  # asked for by name only: they are no steps of the tree
NOT_REACHED = Text("step {step} comes first", "要先过第 {step} 步")
NO_TIME = Text("the time for this exam was used up (--total-seconds)", "这次检查的时间用完了（--total-seconds）")
STOPPED = Text("stopped by Ctrl-C", "按 Ctrl-C 中止")
NOT_ASKED = Text("not asked for (--step)", "没有要求做这一步（--step）")
FINDING_FAILS = Text("{count} finding{count:|s} of this step {count:stands|stand}", "这一步还有 {count} 条诊断结论成立")
NOT_REPEATABLE = Text("Two runs with the same seeds differ: something random is not seeded. Differences between runs then also hold chance.",
                      "种子相同的两次运行，结果却不同：还有随机来源没有固定，运行之间的差别里会掺进偶然。")
ENDED = Text("The program as written ended early ({ended}): {error}", "程序原样运行时提前结束（{ended}）：{error}")
UNKNOWN_STEP = Text("There is no step “{step}”. Steps: {known}.", "没有 {step} 这一步。可选的有：{known}。")
CANNOT = Text("nothing can be examined: {why}", "没法检查：{why}")
NOT_FOUND = Text("{rule} was not found in this program: nothing to prove", "这个程序里没有查出 {rule}，没有什么可证实的")
LOUD = ("error", "warning")


def chosen_steps(words: Sequence[str]) -> tuple[str, ...]:
    """Names of steps from ``overfit``, ``0``, ``lr,init`` ... Raises UsageError for an unknown one."""
    known = (*STEPS, *ASIDE)
    names = [name.strip() for word in words for name in word.split(",") if name.strip()]
    out = []
    for name in names:
        step = STEPS[int(name)] if name.isdecimal() and int(name) < len(STEPS) else name
        if step not in known:
            raise UsageError(UNKNOWN_STEP.fill(step=name, known=", ".join(known)))
        out.append(step)
    return tuple(out)


def examine(bench: Bench, script: str, steps: Collection[str] = (), everything: bool = False, seed_count: int = 5,
            resume_args: str | None = None) -> ExamReport:
    """Walks the steps; with ``everything`` past those that fail. Ctrl-C and the end of time keep what is done.
    ``resume_args``: what is added to the command to resume."""
    report = ExamReport(script)
    began = time.monotonic()
    try:
        _walk(bench, report, steps, everything, seed_count)
        if RESUME in steps and not report.impossible:
            report.steps.append(resume.examine(bench, report.repeatable, resume_args))
    except KeyboardInterrupt:
        report.interrupted = True
        _fill(report, STOPPED, steps)
    except OutOfTime:
        report.unfinished = True
        _fill(report, NO_TIME, steps)
    report.trials, report.seconds = bench.run_count, time.monotonic() - began
    return report


def _walk(bench: Bench, report: ExamReport, steps: Collection[str], everything: bool, seed_count: int) -> None:
    case = begin(bench, report, steps)
    if case is None:
        return
    if SEEDS in steps:
        report.seeds, _ = seeds.spread(bench, seed_count)
    wanted = set(STEPS).intersection(steps) if steps else set(STEPS)
    if not wanted:
        return
    hold_batch(case)
    report.pinned_by = case.pinned_by
    failed: int | None = None
    for number, name in enumerate(STEPS):
        if name not in wanted:
            report.steps.append(StepResult(number, "not-checked", NOT_ASKED))
        elif failed is not None and not everything:
            report.steps.append(StepResult(number, "not-checked", NOT_REACHED.fill(step=failed)))
        else:
            result = _step(case, number, report)
            report.steps.append(result)
            if result.verdict == "failed" and failed is None:
                failed = number


def begin(bench: Bench, report: ExamReport, steps: Collection[str] = ()) -> Case | None:
    """The first runs: does the program train, does it repeat itself, what do the rules say? None: no use to go on."""
    first, second = plain_runs(bench)
    report.sandbox = first.sandbox
    report.repeatable = same(first, second)
    if (why := cannot_be_examined(first, bench.plain.budget.seconds)) is not None:
        report.impossible = True
        report.remarks.append(CANNOT.fill(why=why))
        _fill(report, why, steps)
        return None
    if report.repeatable is False:
        report.remarks.append(NOT_REPEATABLE)
    if first.ended not in ("steps", "script"):
        report.remarks.append(ENDED.fill(ended=first.how, error=first.why))
    return Case(bench, first, report.repeatable, findings=suspicions(first.recording))


def suspicions(recording: str | None) -> list[Judged]:
    """What the rules say of a recorded trial: errors and warnings that nothing else explains, cause first."""
    if recording is None:
        return []
    seen = Recording()
    tail = Tail(Path(recording), seen)
    tail.read()
    tail.finish()
    return [judged for judged in diagnose(seen).findings if judged.level in LOUD and judged.explained_by is None]


def _step(case: Case, number: int, report: ExamReport) -> StepResult:
    result = _own(number)(case, report)
    due = case.findings if result.verdict == "failed" else [judged for judged in case.findings if _step_of(judged) == number]
    for judged in due:
        proved = Proved(judged, prove(case.bench, judged))
        case.findings = [other for other in case.findings if other is not judged]
        if proved.proof is not None and proved.proof.outcome == "refuted":
            report.refuted.append(proved)
        else:
            result.findings.append(proved)
    if result.verdict != "failed" and result.findings:
        result.verdict = "failed"
        result.why = FINDING_FAILS.fill(count=len(result.findings))
    return result


def _step_of(judged: Judged) -> int:
    from traindx.core.rules import all_rules
    return min(all_rules()[judged.rule].step, len(STEPS) - 1)


def _own(number: int) -> Callable[[Case, ExamReport], StepResult]:
    """What a step does itself."""
    return (_overfit, lambda case, _: data.examine(case), lambda case, _: output.examine(case), _rate,
            lambda case, _: scales.examine(case), lambda case, _: numerics.examine(case),
            lambda case, _: capacity.examine(case))[number]


def _overfit(case: Case, report: ExamReport) -> StepResult:
    result = overfit.examine(case)
    report.sharpness = overfit.sharpness(case)
    if report.sharpness is not None:
        result.evidence.append(overfit.sharpness_evidence(report.sharpness, case.rate))
    return result


def _rate(case: Case, report: ExamReport) -> StepResult:
    result, report.rate = rate.examine(case)
    return result


def _fill(report: ExamReport, why: Text, asked: Collection[str] = ()) -> None:
    """The steps that were not reached, said to be so."""
    if not asked or not set(asked) <= set(ASIDE):
        for number in range(len([one for one in report.steps if one.step < len(STEPS)]), len(STEPS)):
            report.steps.append(StepResult(number, "not-checked", why))
    if RESUME in asked and not any(one.step == resume.STEP for one in report.steps):
        report.steps.append(StepResult(resume.STEP, "not-checked", why))


def prove_one(bench: Bench, script: str, rule: str) -> ExamReport:
    """Only the experiment of one rule, where the rule finds its fault in the first run."""
    report = ExamReport(script)
    began = time.monotonic()
    try:
        case = begin(bench, report)
        for judged in case.findings if case else ():
            if judged.rule == rule:
                _file(report, Proved(judged, prove(bench, judged)))
        if case is not None and not report.steps and not report.refuted:
            report.remarks.append(NOT_FOUND.fill(rule=rule))
    except KeyboardInterrupt:
        report.interrupted = True
    except OutOfTime:
        report.unfinished = True
        report.remarks.append(NO_TIME)
    report.trials, report.seconds = bench.run_count, time.monotonic() - began
    return report


def prove_report(bench: Bench, report: Report) -> None:
    """Runs the experiment of every cause in a report on a run; refuted ones move to ``report.refuted``."""
    try:
        for judged in [found for found in report.findings if found.level in LOUD and found.explained_by is None]:
            proof = prove(bench, judged)
            if proof is None:
                continue
            report.proofs[judged.rule] = proof
            if proof.outcome == "refuted":
                report.findings.remove(judged)
                report.refuted.append(judged)
    except (OutOfTime, KeyboardInterrupt):
        report.remarks.append(STOPPED)


def _file(report: ExamReport, proved: Proved) -> None:
    if proved.proof is not None and proved.proof.outcome == "refuted":
        report.refuted.append(proved)
    else:
        number = _step_of(proved.judged)
        report.steps.append(StepResult(number, "failed", FINDING_FAILS.fill(count=1), findings=[proved]))
