"""Several ranks, one report: each is judged by itself, what compares them is asked once, and equal findings become one."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from traindx.core.findings import Judged, Report, Verdict
from traindx.core.judge import ask, closed, merged
from traindx.core.observed import ProbeFailed
from traindx.core.recording import Recording
from traindx.core.rules import Rule

COMPARES = "compares_ranks"  # a signal with this attribute looks at all ranks at once


def judge_ranks(recording: Recording, rules: Iterable[Rule]) -> Report:
    """``recording`` is that of the rank that reports; ``recording.ranks`` holds all of them."""
    report = Report(signals=dict(recording.series), lost_lines=sum(each.lost for each in recording.ranks.values()))
    found: list[Judged] = []
    for rule in rules:
        said, verdict = _compared(rule, recording) if compares(rule) else _each(rule, recording)
        found += said
        report.verdicts.append(verdict)
    failed = [failure for each in recording.ranks.values() for failure in each.of(ProbeFailed)]
    return closed(report, found, failed)


def compares(rule: Rule) -> bool:
    try:
        return any(getattr(need, COMPARES, False) for need in rule.needs.values())
    except Exception:  # a rule that cannot be read: asking it says so
        return False


def _compared(rule: Rule, recording: Recording) -> tuple[list[Judged], Verdict]:
    said, verdict = ask(rule, recording)
    everyone = tuple(sorted(recording.ranks))
    return [replace(judged, ranks=judged.finding.ranks or everyone) for judged in said], verdict


def _each(rule: Rule, recording: Recording) -> tuple[list[Judged], Verdict]:
    """The rule on every rank; the ranks on which it finds something are named."""
    found: list[Judged] = []
    verdicts: list[Verdict] = []
    for rank, each in sorted(recording.ranks.items()):
        said, verdict = ask(rule, each)
        found += [replace(judged, ranks=(rank,)) for judged in said]
        verdicts.append(verdict)
    one = merged(found)
    ranks = tuple(sorted({rank for judged in found for rank in judged.ranks}))
    return [replace(judged, ranks=ranks) for judged in one], next(_in_order_of_weight(verdicts))


def _in_order_of_weight(verdicts: list[Verdict]) -> Iterator[Verdict]:
    for word in ("found", "clear", "not-checked"):
        yield from (verdict for verdict in verdicts if verdict.verdict == word)
