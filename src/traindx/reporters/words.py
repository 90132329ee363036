"""Parts of a report that several reporters say alike."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from traindx import messages
from traindx.core.findings import Evidence, Judged, Proof, Report, Verdict
from traindx.core.observed import MAX_STEPS
from traindx.core.text import Text, joined, number, same

ERROR_LENGTH = 100  # of the exception that ended a run; the script's own traceback has it whole


def value_of(value: Any, unit: str | None = None) -> Text:
    """A measured value as people write it, with its unit."""
    said = value if isinstance(value, Text) else same(_plain(value))
    return said + same(f" {unit}") if unit else said


def _plain(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, (bool, str)):
        return str(value)
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, tuple):  # a shape
        return f"({', '.join(map(_plain, value))}{',' if len(value) == 1 else ''})"
    return ", ".join(map(_plain, value)) if isinstance(value, list) else str(value)


def evidence_of(evidence: Evidence) -> Text:
    """One line: what, value, what a sound run shows, where the number comes from."""
    inner: list[Text] = []
    if evidence.expected:
        inner.append(messages.EXPECTED.fill(value=evidence.expected))
    inner.append(messages.ORIGIN[evidence.origin])
    if evidence.step is not None:
        inner.append(messages.AT_STEP.fill(step=evidence.step))
    line = messages.EVIDENCE_ITEM.fill(what=evidence.what, value=value_of(evidence.value, evidence.unit))
    return line + messages.IN_BRACKETS.fill(inner=joined(inner, messages.SEMICOLON))


def how_it_ended(report: Report) -> list[Text]:
    """Steps, seconds, status; what stopped it, if anything did."""
    parts = [messages.STEPS.fill(count=report.steps)]
    if report.seconds:
        parts[0] = parts[0] + messages.IN_SECONDS.fill(seconds=number(round(report.seconds, 1)))
    if report.status is not None:
        parts.append(messages.EXIT.fill(status=report.status))
    if report.stopped:
        parts.append(_stopped(report.stopped))
    return parts


def _stopped(how: str) -> Text:
    if how == MAX_STEPS:
        return messages.STOPPED_BY_MAX_STEPS
    how = how if len(how) <= ERROR_LENGTH else how[:ERROR_LENGTH] + "…"
    by_signal = how.startswith(("SIG", "signal "))
    return messages.STOPPED_BY_SIGNAL.fill(signal=how) if by_signal else messages.STOPPED_BY_ERROR.fill(error=how)


def confidence_of(judged: Judged) -> Text:
    """The word, and the reason where it is not certain."""
    word = messages.CONFIDENCE[judged.finding.confidence]
    because = judged.finding.because
    return messages.REASON.fill(word=word, reason=because) if because.en else word


def ranks_of(ranks: Sequence[int], world: int) -> Text:
    """Which ranks, and whether these are all."""
    listed = same(", ".join(map(str, ranks)))
    return messages.ALL_RANKS.fill(ranks=listed) if len(ranks) == world else messages.SOME_RANKS.fill(ranks=listed, world=world)


def proof_of(proof: Proof) -> Text:
    """Outcome and reason in one line."""
    outcome = messages.OUTCOME[proof.outcome]
    return messages.PROVED.fill(outcome=outcome, why=proof.why) if proof.why.en else outcome


def folded_under(judged: Judged, report: Report) -> list[Judged]:
    return [other for other in report.findings if other.explained_by == judged.rule]


def causes(report: Report) -> list[Judged]:
    """Errors and warnings that nothing else explains, in order."""
    return [judged for judged in report.findings if judged.explained_by is None and judged.level != "note"]


def notes(report: Report) -> list[Judged]:
    return [judged for judged in report.findings if judged.explained_by is None and judged.level == "note"]


def tally(report: Report) -> Text:
    count = Counter(verdict.verdict for verdict in report.verdicts)
    return messages.TALLY.fill(found=count["found"], clear=count["clear"], unchecked=count["not-checked"])


def reasons_not_checked(verdicts: list[Verdict], limit: int) -> list[Text]:
    """Why rules were not checked, the commonest reasons first."""
    reasons = Counter(verdict.why for verdict in verdicts if verdict.verdict == "not-checked").most_common()
    said = [messages.REASON_COUNT.fill(count=count, why=why) for why, count in reasons[:limit]]
    rest = sum(count for _, count in reasons[limit:])
    return [*said, messages.OTHER_REASONS.fill(count=rest)] if rest else said
