"""What exams and ``--prove`` found out about a run, read back from its files: verdicts, and the curves before and after a change."""
from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traindx import messages
from traindx.core.exams import Points
from traindx.core.findings import Proof
from traindx.core.text import EMPTY, Text, same
from traindx.experiments.plans import PLANS
from traindx.figures import Axis, Chart
from traindx.figures.run import STEP
from traindx.figures.thinning import thinned
from traindx.reporters.exam_words import STEP_NAMES, VERDICTS
from traindx.reporters.overlay import chart_of
from traindx.runs import beside
from traindx.runs.comparing import mapping, rows_of
from traindx.runs.reading import Run, is_number

MOST_CURVES, BUCKETS = 20, 150
LOSS = Text("loss", "损失")
# the steps that do not draw the loss over time
DRAWN = {"lr": (Text("loss at the end", "最后的损失"), Axis(Text("learning rate", "学习率"), log=True)),
         "init": (Text("activation std", "激活标准差"), Axis(Text("layer", "层")))}


@dataclass(frozen=True)
class Tried:
    """One experiment on one finding. ``title`` is the experiment's."""

    rule: str
    title: Text
    proof: Proof

    @property
    def chart(self) -> Chart | None:
        return chart_of(self.proof.curves, title=self.title)


@dataclass(frozen=True)
class Step:
    """One step of an exam that was checked."""

    title: Text
    verdict: str
    why: Text
    chart: Chart | None
    tried: tuple[Tried, ...] = ()


@dataclass(frozen=True)
class Exam:
    """``steps``: those that were checked; ``refuted``: what an experiment has withdrawn."""

    date: str
    steps: tuple[Step, ...]
    refuted: tuple[Tried, ...]


def tried_in(rows: Any) -> tuple[Tried, ...]:
    """The experiments of a list of findings as ``report.json`` and ``exam.json`` hold it."""
    found = []
    for row in rows_of(rows):
        told = mapping(row.get("proof"))
        if told.get("outcome") in messages.OUTCOME:
            plan = PLANS.get(str(told.get("experiment")))
            title = plan.title if plan else same(str(told.get("experiment")))
            found.append(Tried(str(row.get("rule")), title, proof_from(told)))
    return tuple(found)


def proof_from(told: Mapping[str, Any]) -> Proof:
    """The reverse of ``proof_as_json``."""
    effect, spread = (_value(told[name]) if is_number(told.get(name)) else None for name in ("effect", "spread"))
    return Proof(told["outcome"], str(told.get("experiment")), effect, spread, why_from(told), curves_from(told))


def why_from(told: Mapping[str, Any]) -> Text:
    """In both languages; in the one in which it was written where the record is older than that."""
    both = mapping(told.get("why_in"))
    written = str(told.get("why") or "")
    return Text(str(both.get("en", written)), str(both.get("zh", written)))


def curves_from(told: Mapping[str, Any]) -> dict[str, Points]:
    """The reverse of ``curves_as_json``, in few points; whatever is no curve is left out."""
    lost = mapping(told.get("nonfinite"))
    found = {}
    for name, rows in list(mapping(told.get("curves")).items())[:MOST_CURVES]:
        named = {row[0]: row[1] for row in _pairs(lost.get(name))}
        points = [(_value(x), _value(y, named.get(x))) for x, y in _pairs(rows)]
        if points:
            found[str(name)] = list(thinned(points, BUCKETS))
    return found


def _pairs(rows: Any) -> list[list[Any]]:
    given = rows if isinstance(rows, list) else []
    return [row for row in given if isinstance(row, list) and len(row) == 2 and is_number(row[0])]


def _value(value: Any, said: Any = None) -> float:
    if is_number(value):
        return float(value)
    return float(said) if said in ("inf", "-inf") else math.nan


def exam_of(run: Run, runs_dir: Path) -> Exam | None:
    """The exam of the run's code: its own, or a newer one of the same files; None where there is none."""
    told = beside.found(run, runs_dir, "exam")
    steps = tuple(step for row in rows_of(told.get("steps")) if (step := _step(row)) is not None)
    refuted = tried_in(told.get("refuted"))
    return Exam(str(told.get("date", "")), steps, refuted) if steps or refuted else None


def _step(row: Mapping[str, Any]) -> Step | None:
    verdict, name = str(row.get("verdict")), str(row.get("name"))
    titles = {known: same(f"{at} ") + text for at, (known, text) in enumerate(STEP_NAMES)}
    if verdict not in VERDICTS or verdict == "not-checked" or name not in titles:
        return None
    title, axis = DRAWN.get(name, (LOSS, Axis(STEP)))
    picture = chart_of(curves_from(row), axis, title)
    return Step(titles[name], verdict, why_from(row), picture, tried_in(row.get("findings")))


def withdrawn(report: Mapping[str, Any], exam: Exam | None) -> tuple[Tried, ...]:
    """What experiments have refuted, the run's own first; each rule once."""
    every = (*tried_in(report.get("refuted")), *(exam.refuted if exam else ()))
    return tuple({tried.rule: tried for tried in reversed(every)}.values())[::-1]


def proved(report: Mapping[str, Any], exam: Exam | None) -> dict[str, Tried]:
    """By rule: the experiments on findings that stand, the run's own before those of an exam."""
    of_exam = [tried for step in (exam.steps if exam else ()) for tried in step.tried]
    return {tried.rule: tried for tried in (*of_exam, *tried_in(report.get("findings")))}


def said_of(tried: Tried) -> Text:
    """Experiment, outcome and reason in one line."""
    outcome = messages.OUTCOME[tried.proof.outcome]
    why = messages.COLON + tried.proof.why if tried.proof.why.en else EMPTY
    return outcome + messages.IN_BRACKETS.fill(inner=tried.title) + why
