"""Labs, the tree, rules and figures as JSON for the page. A text is ``{"$": [English, Chinese]}``, so the page switches at once."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from traindx.core.rules import Rule, all_rules
from traindx.core.text import Text
from traindx.figures import Chart, Figure, Grid, plotly
from traindx.labs import Choice, Knob, Lab, Outcome, Slider, Table, all_labs
from traindx.messages import LEVEL
from traindx.tree import SYMPTOMS, questions_of

if TYPE_CHECKING:
    from traindx.toys import Toys

JSON = Any


def pair(text: Text) -> JSON:
    return text.en if text.en == text.zh else {"$": [text.en, text.zh]}


def merged(english: JSON, chinese: JSON) -> JSON:
    """Two documents of the same shape as one: what differs becomes a pair."""
    if english == chinese:
        return english
    if isinstance(english, dict) and isinstance(chinese, dict) and english.keys() == chinese.keys():
        return {name: merged(english[name], chinese[name]) for name in english}
    if isinstance(english, list) and isinstance(chinese, list) and len(english) == len(chinese):
        return [merged(*both) for both in zip(english, chinese)]
    return {"$": [english, chinese]}


def plain(value: JSON) -> JSON:
    """Texts as pairs, tuples as lists, and no number that JSON does not have."""
    if isinstance(value, Text):
        return pair(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


# -- figures --------------------------------------------------------------------------------------------------------------

def figure(made: Figure) -> JSON:
    return _grid(made) if isinstance(made, Grid) else _chart(made)


def _chart(chart: Chart) -> JSON:
    drawn = merged(plotly(chart, "en"), plotly(chart, "zh"))
    marks = [{"knob": mark.knob, "at": mark.at, "label": pair(mark.label)} for mark in chart.marks if mark.knob]
    return {"kind": "chart", **drawn, "marks": marks}


def _grid(made: Grid) -> JSON:
    return plain({"kind": "grid", "title": made.title, "cells": made.cells, "rows": made.rows, "columns": made.columns,
                  "shades": made.shades, "caption": made.caption})


def table(made: Table) -> JSON:
    return plain({"caption": made.caption, "columns": made.columns, "rows": made.rows})


# -- labs -----------------------------------------------------------------------------------------------------------------

def lab(made: Lab) -> JSON:
    return plain({"number": made.number, "name": made.name, "title": made.title, "about": made.about, "see": made.see,
                  "break": made.break_it, "then": made.then, "rules": made.rules, "light": made.light, "sources": made.sources,
                  "knobs": [knob(one) for one in made.knobs]})


def knob(made: Knob) -> JSON:
    kind = {Slider: "slider", Choice: "choice"}.get(type(made), "switch")
    return {"name": made.name, "kind": kind, "label": made.label, "values": made.values, "default": made.default,
            "says": [made.say(value) for value in made.values]}


def outcome(made: Outcome) -> JSON:
    return {"verdict": pair(made.verdict), "level": made.level, "figures": [figure(one) for one in made.figures],
            "tables": [table(one) for one in made.tables]}


# -- leaves ---------------------------------------------------------------------------------------------------------------

def leaf(toys: Toys, rule: str, seed: int, dropped: Callable[[], bool]) -> JSON:
    """A rule's two programs, trained now or kept from before, as a chart and its words."""
    from traindx.toys import draw
    drawing = draw(toys.toy(rule, seed, dropped))
    return plain({"seed": drawing.seed, "chart": figure(drawing.chart) if drawing.chart else None, "said": drawing.said, "cause": drawing.cause,
                  "place": drawing.place, "evidence": table(drawing.evidence) if drawing.evidence else None})


# -- the tree and the rules -----------------------------------------------------------------------------------------------

def tree() -> JSON:
    return plain([{"name": symptom.name, "text": symptom.text, "questions": [
        {"family": question.family, "step": question.step, "text": question.text,
         "leaves": [leaf.rule for leaf in question.leaves]} for question in questions_of(symptom)]} for symptom in SYMPTOMS])


def rules() -> JSON:
    """What is said of a rule wherever its name stands."""
    from traindx.tree import leaf_of
    from_labs: dict[str, list[str]] = {}
    for one in all_labs().values():
        for name in one.rules:
            from_labs.setdefault(name, []).append(one.name)
    found = {}
    for name, rule in all_rules().items():
        leaf = leaf_of(rule)
        found[name] = plain({"title": rule.title, "level": rule.level, "step": rule.step, "labs": from_labs.get(name, []),
                             "see": leaf.see, "experiment": leaf.experiment})
    return found


def rule_page(rule: Rule) -> JSON:
    """The page's sections in both languages, which need not be the same ones, and the two small programs."""
    pages = [list(rule.page(language).sections.items()) for language in ("en", "zh")]
    return {"name": rule.name, "title": pair(rule.title), "level": pair(LEVEL[rule.level]), "explains": list(rule.explains),
            "sections": {"$": [[list(row) for row in page] for page in pages]},
            "bad": rule.source_of("bad"), "good": rule.source_of("good")}


def catalogue() -> JSON:
    """Everything that the page shows before anything is computed."""
    from traindx.studio.words import PAGE
    return {"words": {name: pair(text) for name, text in PAGE.items()}, "tree": tree(), "rules": rules(),
            "labs": [lab(one) for one in all_labs().values()]}
