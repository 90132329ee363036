"""Recording -> Report as the user sees it: the chosen rules judged, how the run ended, remarks."""
from __future__ import annotations

import signal as signals
from collections.abc import Collection, Sequence

from traindx import messages
from traindx.boot import NOT_WATCHING
from traindx.core.findings import Report, Verdict
from traindx.core.judge import judge
from traindx.core.observed import MAX_STEPS, Ended, ProbeFailed
from traindx.core.observed.program import BackwardCall, Window
from traindx.core.ranks import judge_ranks
from traindx.core.recording import Recording
from traindx.core.rules import UnknownRule, all_pages, all_rules, matching
from traindx.core.text import EMPTY, Text
from traindx.errors import UsageError
from traindx.launch import Outcome
from traindx.ranks import Gathered
from traindx.ranks import remarks as ranks_remarks


def chosen(select: Sequence[str], ignore: Sequence[str]) -> frozenset[str]:
    """Names of the rules to judge. Raises UsageError for a pattern that matches none."""
    names = list(all_rules())
    try:
        kept = (matching(select, names) if select else set(names)) - matching(ignore, names)
    except UnknownRule as problem:
        pattern, near = problem.args
        if pattern in all_pages():
            raise UsageError(messages.JUDGED_ELSEWHERE.fill(rule=pattern, command=all_pages()[pattern].judged_by)) from None
        hint = messages.HINT_NEAR.fill(near=", ".join(near)) if near else EMPTY
        raise UsageError(messages.UNKNOWN_RULE.fill(pattern=pattern, near=hint)) from None
    if not kept:
        raise UsageError(messages.NO_RULE_LEFT)
    return frozenset(kept)


def diagnose(recording: Recording, rules: Collection[str] | None = None) -> Report:
    """Judges the recording by the rules named; the others are told as not checked."""
    known = all_rules()
    asked = [rule for name, rule in known.items() if rules is None or name in rules]
    report = judge_ranks(recording, asked) if len(recording.ranks) > 1 else judge(recording, asked)
    judged = {verdict.rule: verdict for verdict in report.verdicts}
    report.verdicts = [judged.get(name) or Verdict(name, "not-checked", messages.LEFT_OUT) for name in known]
    report.steps = recording.steps
    if recording.lost:
        report.remarks.append(messages.LOST_LINES.fill(count=recording.lost))
    return report


def after_run(recording: Recording, outcome: Outcome, rules: Collection[str] | None = None, ranks: Gathered | None = None) -> Report:
    """The report on a script that ``traindx run`` has run; ``ranks`` is what all ranks left, where there are several."""
    if ranks is not None:
        recording.ranks = ranks.recordings
    report = diagnose(recording, rules)
    if ranks is not None and ranks.ends:
        report.ranks = tuple(ranks.ends)
        report.remarks += ranks_remarks(ranks)
    report.status, report.seconds = outcome.status, outcome.seconds
    report.stopped = stopped_by(recording, outcome)
    if (why := no_training(recording, outcome.status != 0)) is not None:
        report.remarks.insert(0, messages.NO_TRAINING.fill(why=why))
    return report


def stopped_by(recording: Recording, outcome: Outcome) -> str | None:
    """What ended the script before its own end: ``max-steps``, a signal's name, the exception; else None."""
    if outcome.signal:
        try:
            return signals.Signals(outcome.signal).name
        except ValueError:
            return f"signal {outcome.signal}"
    ended = recording.last(Ended)
    if ended is None:
        return None
    return MAX_STEPS if ended.how == MAX_STEPS else ended.error


def no_training(recording: Recording, failed: bool = False) -> Text | None:
    """Why nothing was seen to be trained, None where something was."""
    backward = any(event.what == "backward" for window in recording.of(Window) for event in window.events)
    unwatched = any(failure.probe == NOT_WATCHING for failure in recording.of(ProbeFailed))
    if recording.steps or backward or unwatched or recording.of(BackwardCall):
        return None
    if failed:
        return messages.ENDED_EARLY
    return messages.NO_TORCH if recording.empty else messages.NO_BACKWARD
