"""Recording -> Report: every rule is asked, what it says is put in order, causes before symptoms."""
from __future__ import annotations

import fnmatch
import re
import typing
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from traindx.core.findings import CONFIDENCES, LEVELS, Finding, Judged, Report, Verdict
from traindx.core.observed import Observation, ProbeFailed, Site
from traindx.core.observed.words import words_for
from traindx.core.recording import Recording
from traindx.core.rules import Rule, all_rules
from traindx.core.text import Text, same

_IGNORE = re.compile(r"#\s*traindx:\s*ignore(?:\[([^\]]*)\])?")
_UNSEEN = Text("not seen in this run: {need}", "这次运行里没有看到：{need}")
_BROKEN = Text("the rule itself failed: {error}; please report it", "规则自己出错了：{error}；请反馈给我们")
_SWITCHED_OFF = Text("the probe {probe} stopped: {error}", "探针 {probe} 停了：{error}")


@dataclass(frozen=True)
class Absent:
    """A need that this recording cannot meet, and why."""

    why: Text


def judge(recording: Recording, rules: Iterable[Rule] | None = None) -> Report:
    """Asks every rule; never raises for a rule's own fault."""
    report = Report(signals=dict(recording.series), lost_lines=recording.lost)
    found: list[Judged] = []
    for rule in all_rules().values() if rules is None else rules:
        said, verdict = ask(rule, recording)
        found += said
        report.verdicts.append(verdict)
    return closed(report, found, recording.of(ProbeFailed))


def closed(report: Report, found: list[Judged], failed: Iterable[ProbeFailed]) -> Report:
    """The report with what was found, in order, and with what could not be looked at, each probe once."""
    kept, report.suppressed = _split_suppressed(found)
    report.findings = in_order(kept)
    report.remarks += dict.fromkeys(_SWITCHED_OFF.fill(probe=p.probe, error=p.error) for p in failed)
    return report


def ask(rule: Rule, recording: Recording) -> tuple[list[Judged], Verdict]:
    """One rule on one recording."""
    try:
        needs = {name: meet(need, recording) for name, need in rule.needs.items()}
        for need in needs.values():
            if isinstance(need, Absent):
                return [], Verdict(rule.name, "not-checked", need.why)
        said = [_judged(rule, finding) for finding in rule.check(**needs)]
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
        return [], Verdict(rule.name, "not-checked", _BROKEN.fill(error=error))
    return merged(said), Verdict(rule.name, "found" if said else "clear")


def meet(need: Any, recording: Recording) -> Any:
    """The value for one annotation of a check. An optional need (``X | None``) is None where absent."""
    if need is Recording:
        return recording
    if typing.get_origin(need) is list:
        kind = typing.get_args(need)[0]
        return recording.of(kind) or Absent(_UNSEEN.fill(need=words_for(kind)))
    options = [option for option in typing.get_args(need) if option is not type(None)]
    if options:
        value = meet(options[0], recording)
        return (None if typing.get_origin(options[0]) is not list else []) if isinstance(value, Absent) else value
    if isinstance(need, type) and issubclass(need, Observation):
        return recording.last(need) or Absent(_UNSEEN.fill(need=words_for(need)))
    return need.of(recording)  # a signal


def _judged(rule: Rule, finding: Finding) -> Judged:
    also = tuple(site for site in dict.fromkeys(finding.also) if site != finding.where)
    return Judged(rule.name, finding.level or rule.level, finding.title or rule.title, replace(finding, also=also),
                  rule.experiment, rule.explains + finding.explains)


def merged(said: list[Judged]) -> list[Judged]:
    """A rule at several places is one finding with ``also``."""
    if len(said) < 2:
        return said
    said = sorted(said, key=lambda j: (LEVELS.index(j.level), CONFIDENCES.index(j.finding.confidence), j.finding.first_step))
    first = said[0]
    places: list[Site] = list(first.finding.also)
    for other in said[1:]:
        for site in (other.finding.where, *other.finding.also):
            if site is not None and site != first.finding.where and site not in places:
                places.append(site)
    return [replace(first, finding=replace(first.finding, also=tuple(places)))]


def in_order(found: list[Judged]) -> list[Judged]:
    """Causes first: by level, step of the tree and confidence, but never before a finding that explains it."""
    rest = sorted(found, key=_rank)
    names = [judged.rule for judged in rest]
    explainers = {judged.rule: explainer for judged in rest
                  if (explainer := _explainer(judged, rest)) is not None}
    ordered = [replace(judged, explains=_present(judged, names),
                       explained_by=_root(judged.rule, explainers)) for judged in rest]
    causes = [judged for judged in ordered if judged.explained_by is None]
    return causes + [judged for judged in ordered if judged.explained_by is not None]


def _rank(judged: Judged) -> tuple[int, int, int, int]:
    step = all_rules()[judged.rule].step if judged.rule in all_rules() else 0
    return (LEVELS.index(judged.level), CONFIDENCES.index(judged.finding.confidence), step, judged.finding.first_step)


def _explainer(judged: Judged, found: list[Judged]) -> str | None:
    for other in found:
        if other.rule != judged.rule and other.level != "note" and _matches(judged.rule, other.explains):
            return other.rule
    return None


def _root(rule: str, explainers: dict[str, str]) -> str | None:
    """The cause at the end of the chain of explanations; a circle counts as no explanation."""
    seen: set[str] = set()
    at: str = rule
    while at in explainers and at not in seen:
        seen.add(at)
        at = explainers[at]
    return None if at == rule or at in seen else at


def _present(judged: Judged, names: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name != judged.rule and _matches(name, judged.explains))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _split_suppressed(found: list[Judged]) -> tuple[list[Judged], list[Judged]]:
    kept = [judged for judged in found if not _ignored(judged)]
    return kept, [judged for judged in found if _ignored(judged)]


def _ignored(judged: Judged) -> bool:
    """``# traindx: ignore[family/slug]`` stands on the guilty line; without brackets it ignores every rule there."""
    where = judged.finding.where
    comment = _IGNORE.search(where.code) if where else None
    if comment is None:
        return False
    names = [name.strip() for name in (comment[1] or "*").split(",")]
    return _matches(judged.rule, names)


def not_checked(why: Text | str) -> Absent:
    return Absent(same(why) if isinstance(why, str) else why)
