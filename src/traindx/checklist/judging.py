"""Facts -> twenty items. A tick needs evidence; without any, an item is not done. A person's word never overrides what was found."""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from traindx.checklist import words
from traindx.checklist.evidence import Facts, settings_of
from traindx.core.observed.checkpoints import FileRead
from traindx.core.observed.fed import Labels
from traindx.core.observed.gradients import ClipUse
from traindx.core.observed.program import ModelSeen
from traindx.core.text import Text, joined, number, same
from traindx.runs.comparing import groups, mapping, rows_of
from traindx.runs.words import LINES

State = Literal["ticked", "failed", "not-done"]
ASKED = (3, 17, 19)  # what a person knows
ENOUGH = 3  # seeds, learning rates
SETTLED_BY = {1: "data", 2: "data", 3: "data --serve", 4: "data", 5: "exam --step overfit", 6: "shapes --assert", 7: "run",
              9: "exam --step lr", 13: "run", 16: "exam --step resume"}
FAILED_BY = {7: "shapes", 10: "exam --step lr"}  # where a person's word would change nothing
PASSED: dict[str, State] = {"passed": "ticked", "failed": "failed"}


@dataclass(frozen=True)
class Item:
    """One line of the list. ``settle`` is the command that would settle it, "" where it is settled."""

    item: int
    title: Text
    state: State
    evidence: Text
    settle: str = ""


Said = tuple[State, Text]


def judge(facts: Facts) -> list[Item]:
    """The twenty, in order."""
    return [_item(number_, facts) for number_ in range(1, 21)]


def _item(number_: int, facts: Facts) -> Item:
    state, evidence = CHECKS[number_](facts)
    answer = facts.answers.get(str(number_))
    if answer is not None and state == "not-done":
        state = "failed" if answer.get("state") == "failed" else "ticked"
        evidence = words.ANSWERED.fill(text=str(answer.get("text", "")), date=str(answer.get("date", "")))
    return Item(number_, words.TITLES[number_], state, evidence, "" if state == "ticked" else settling(number_, facts))


def settling(item: int, facts: Facts) -> str:
    """A command that exists and would settle an item, or shows what in the script must change for it."""
    argv = facts.run.fields.get("argv")
    command = " ".join([str(facts.run.fields.get("script", "SCRIPT")), *map(str, argv if isinstance(argv, list) else [])])
    state = CHECKS[item](facts)[0]
    if item in EXPLAINED and (state == "failed" or item in NEVER_ANSWERED):
        return f"traindx explain {next((rule for rule in EXPLAINED[item] if _is_found(rule, facts)), EXPLAINED[item][0])}"
    if item == 18:
        return f"traindx run {command}  (x{ENOUGH})"
    if item == 20:
        return f"traindx runs note {facts.run.name}"
    by = FAILED_BY.get(item) if state == "failed" else None
    if by or item in SETTLED_BY:
        return f"traindx {by or SETTLED_BY[item]} {command}"
    return f"traindx checklist {facts.run.name} --answer {item}='...'"


def _is_found(rule: str, facts: Facts) -> bool:
    return facts.verdicts.get(rule, ("", ""))[0] == "found"


def _by_rules(*rules: str) -> Callable[[Facts], Said]:
    """Ticked where all of the rules are clear, failed where one was found; the first names the one that must have been checked."""
    def check(facts: Facts) -> Said:
        if not facts.verdicts:
            return "not-done", words.NO_REPORT
        for rule in rules:
            if _is_found(rule, facts):
                return "failed", words.FOUND.fill(rule=rule)
        clear = [rule for rule in rules if facts.verdicts.get(rule, ("", ""))[0] == "clear"]
        if rules[0] in clear:
            return "ticked", words.CLEAR.fill(rules=", ".join(clear))
        return "not-done", words.UNCHECKED.fill(rule=rules[0], why=facts.verdicts.get(rules[0], ("", "-"))[1])
    return check


def _loss(facts: Facts) -> Said:
    """What the rules say of the run; where they say nothing, the exam's step 2."""
    state, said = LOSS_RULES(facts)
    return (state, said) if state != "not-done" else _or_exam("output", (state, said), facts)


def _viewed(facts: Facts) -> Said:
    """A page that was written is not yet a page that was looked at."""
    if not facts.data:
        return "not-done", words.YOURS
    page, date = facts.data.get("page"), str(facts.data.get("date"))[:10]
    if facts.marks:
        counted = ", ".join(f"{count} x {mark}" for mark, count in Counter(facts.marks.values()).most_common())
        return "ticked", words.MARKED.fill(count=len(facts.marks), page=page, marks=counted)
    if facts.data.get("viewed"):
        return "ticked", words.VIEWED.fill(page=page, date=str(facts.data["viewed"])[:10])
    return "not-done", words.NOT_VIEWED.fill(page=page, date=date)


def _yours(facts: Facts) -> Said:
    return "not-done", words.YOURS


def _classes(facts: Facts) -> Said:
    labels = facts.run.events.last(Labels)
    if labels is None:
        return "not-done", words.NO_LABELS
    if labels.classes and labels.counts:
        total, low = sum(labels.counts.values()), min(labels.counts.values())
        return "ticked", words.CLASSES.fill(count=len(labels.counts), low=low, total=total, share=number(100 * low / max(total, 1)))
    if labels.value_mean:
        return "ticked", words.VALUES.fill(mean=number(labels.value_mean[0]), std=number(labels.value_std[0]))
    return "not-done", words.NO_LABELS


def _overfit(facts: Facts) -> Said:
    return _or_exam("overfit", ("not-done", words.NO_EXAM), facts)


def _or_exam(name: str, otherwise: Said, facts: Facts) -> Said:
    """What a step of the exam says, where it was checked."""
    from traindx.exam import STEPS
    for row in rows_of(facts.exam.get("steps")):
        named = row.get("name") or (STEPS[row["step"]] if row.get("step") in range(len(STEPS)) else None)
        if named == name and row.get("verdict") in PASSED:
            verdict = str(row["verdict"])
            said = words.EXAM_STEP.fill(step=words.EXAM_NAMES.get(name, name), verdict=words.VERDICTS[verdict])
            return PASSED[verdict], said
    return otherwise


def _shapes(facts: Facts) -> Said:
    places, printed = facts.shape_assertions, facts.shapes.get("assertions")
    if places:
        return "ticked", words.ASSERTS.fill(count=len(places), where=places[0])
    if isinstance(printed, int) and printed:
        return "not-done", words.NOT_PASTED.fill(count=printed, date=str(facts.shapes.get("date"))[:10])
    return "not-done", words.NO_ASSERTS


def _dtypes(facts: Facts) -> Said:
    found = [parameter.dtype for model in facts.run.events.of(ModelSeen) for parameter in model.parameters]
    if not found:
        return "not-done", words.NO_MODEL
    kinds = sorted(set(found))
    if len(kinds) > 1:
        return "failed", words.DTYPES.fill(dtypes=", ".join(kinds))
    return "ticked", words.DTYPE.fill(count=len(found), dtype=kinds[0])


def _swept(facts: Facts) -> Said:
    lr = mapping(facts.exam.get("lr"))
    if lr and (lr.get("interval") or lr.get("refused")):
        return "ticked", words.EXAM_LR.fill(interval=str(lr.get("interval") or lr.get("refused")))
    rates = sorted({rate for run in (facts.run, *facts.siblings) for rate in settings_of(run)[0]})
    if len(rates) >= ENOUGH:
        return "ticked", words.SWEPT.fill(count=len(rates), rates=", ".join(map(number, rates[:8])))
    return "not-done", words.ONE_RATE if len(rates) < 2 else words.SWEPT.fill(count=len(rates), rates=", ".join(map(number, rates)))


def _together(facts: Facts) -> Said:
    seen: dict[int, set[float]] = {}
    for run in (facts.run, *facts.siblings):
        rates, batches = settings_of(run)
        for batch in batches:
            seen.setdefault(batch, set()).update(rates)
    if len(seen) < 2:
        return _rate_fits(facts) or ("not-done", words.ONE_BATCH)
    batches_text = ", ".join(map(str, sorted(seen)))
    rates = set().union(*seen.values())
    if len(rates) == 1:
        return "failed", words.NOT_TOGETHER.fill(batches=batches_text, rate=number(next(iter(rates))))
    return "ticked", words.TOGETHER.fill(batches=batches_text, rates=", ".join(map(number, sorted(rates))))


def _rate_fits(facts: Facts) -> Said | None:
    """With one batch size: whether the rate used lies in the interval that was swept at that size."""
    lr = mapping(facts.exam.get("lr"))
    known = [*lr["interval"], lr.get("used")] if isinstance(lr.get("interval"), list) else []
    values = [float(value) for value in known if isinstance(value, (int, float))]
    if len(values) != 3:
        return None
    low, high, used = values
    said = {"used": number(used), "low": number(low), "high": number(high)}
    return ("ticked", words.RATE_FITS.fill(**said)) if low <= used <= high else ("not-done", words.RATE_OUTSIDE.fill(**said))


def _initialised(facts: Facts) -> Said:
    for rule in ("init/gain-mismatch", "init/symmetric"):
        if _is_found(rule, facts):
            return "failed", words.FOUND.fill(rule=rule)
    places = facts.initialisations
    if places:
        return "ticked", words.INITIALISED.fill(count=len(places), where=places[0])
    loaded = [file.path for file in facts.run.events.of(FileRead) if file.tensors]
    if loaded:
        return "ticked", words.LOADED.fill(file=loaded[0])
    return _or_exam("init", ("not-done", words.DEFAULT_INIT), facts)


def _clipped(facts: Facts) -> Said:
    for rule in ("optim/clip-after-step", "optim/clip-before-unscale"):
        if _is_found(rule, facts):
            return "failed", words.FOUND.fill(rule=rule)
    count = facts.run.measured.counts.get("clip_limit", 0)
    if count or facts.run.events.of(ClipUse):
        return "ticked", words.CLIPPED.fill(count=count or 1)
    return "not-done", words.NOT_CLIPPED


def _curves(facts: Facts) -> Said:
    counts = {name: facts.run.measured.counts.get(name, 0) for name in ("loss", "lr", "grad_norm")}
    missing = [name for name, count in counts.items() if not count]
    if missing:
        return "not-done", words.CURVE_MISSING.fill(names=", ".join(missing))
    return "ticked", words.RECORDED.fill(loss=counts["loss"], lr=counts["lr"], norm=counts["grad_norm"])


def _seeds(facts: Facts) -> Said:
    seeds = mapping(facts.run.record.get("seeds"))
    unseeded = seeds.get("unseeded")
    if isinstance(unseeded, list) and unseeded:
        return "failed", words.UNSEEDED.fill(what=", ".join(map(str, unseeded)))
    calls = [f"{call.get('function')}({call.get('seed')})" for call in rows_of(seeds.get("calls")) if call.get("seed") is not None]
    return ("ticked", words.SEEDED.fill(calls=", ".join(calls[:5]))) if calls else ("not-done", words.NO_SEED)


def _kept(facts: Facts) -> Said:
    if _is_found("record/best-is-alias", facts):
        return "failed", words.FOUND.fill(rule="record/best-is-alias")
    found = mapping(facts.run.record.get("checkpoints"))
    saved = [str(row.get("path")) for row in rows_of(found.get("saved"))]
    if not saved:
        return "failed", words.NONE_SAVED
    best, last = found.get("best"), found.get("last")
    if best and len(saved) > 1:
        return "ticked", words.SAVED.fill(best=best, last=last)
    return "not-done", words.ONE_SAVED.fill(file=saved[0])


def _resume(facts: Facts) -> Said:
    if _is_found("repro/resume-incomplete", facts):
        return "failed", words.FOUND.fill(rule="repro/resume-incomplete")
    return _or_exam("resume", ("not-done", words.NO_EXAM), facts)


def _mean(facts: Facts) -> Said:
    seeds = mapping(facts.exam.get("seeds"))
    finals = [float(value) for value in seeds.get("final") or () if isinstance(value, (int, float))]
    if len(finals) >= ENOUGH and isinstance(seeds.get("spread"), (int, float)):
        mean = number(sum(finals) / len(finals), 4)
        return "ticked", words.MEAN.fill(count=len(finals), metric="loss", mean=mean, spread=number(seeds["spread"]))
    metric, made = groups([facts.run, *(run for run in facts.siblings if run.status == "finished" and run.curves)])
    own = next((group for group in made if facts.run.name in group.runs), None)
    count = len(own.runs) if own else 1
    if own is None or count < ENOUGH or own.spread is None or not math.isfinite(own.spread) or len(set(own.values)) < 2:
        return "not-done", words.FEW_SEEDS.fill(count=count)
    return "ticked", words.MEAN.fill(count=count, metric=metric, mean=number(own.mean, 4), spread=number(own.spread))


def _concluded(facts: Facts) -> Said:
    missing = [LINES[name] for name, text in facts.run.notes.items() if not text]
    return ("not-done", words.NO_NOTES.fill(names=joined(missing))) if missing else ("ticked", words.NOTES)


OF_LOSS = ("loss/double-softmax", "loss/logits-as-probabilities", "loss/double-sigmoid", "loss/wrong-direction", "loss/initial-loss-off",
           "shape/loss-target-mismatch", "shape/silent-broadcast")
LOSS_RULES = _by_rules(*OF_LOSS)
# where the script itself must change: the page of the rule that was found, else of the first
EXPLAINED = {8: OF_LOSS, 11: ("init/gain-mismatch", "init/symmetric"),
             12: ("numeric/gradient-explosion", "optim/clip-after-step", "optim/clip-before-unscale"),
             14: ("repro/unseeded",), 15: ("record/best-is-alias",)}
NEVER_ANSWERED = (8, 11, 12, 14)  # seen in the run, whatever a person says
CHECKS: dict[int, Callable[[Facts], Said]] = {
    1: _by_rules("data/split-overlap"),
    2: _by_rules("data/normalised-on-everything", "data/normalised-differently", "data/scaled-twice"),
    3: _viewed, 4: _classes, 5: _overfit, 6: _shapes, 7: _dtypes, 8: _loss,
    9: _swept, 10: _together, 11: _initialised, 12: _clipped, 13: _curves, 14: _seeds, 15: _kept, 16: _resume, 17: _yours, 18: _mean,
    19: _yours, 20: _concluded,
}


def not_done(items: list[Item]) -> list[str]:
    """Lines for notes.md: what is not ticked."""
    return [f"{item.item} {item.title.en}" + (" (failed)" if item.state == "failed" else "") for item in items if item.state != "ticked"]


def tally(items: list[Item]) -> Text:
    count = {state: sum(item.state == state for item in items) for state in ("ticked", "failed", "not-done")}
    return words.TALLY.fill(ticked=count["ticked"], failed=count["failed"], open=count["not-done"])


def titled(item: Item) -> Text:
    return same(f"{item.item} ") + item.title
