"""The report as JSON: the contract of CONTRACTS "run", held by run.schema.json."""
from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

from traindx import __version__
from traindx.core.findings import Evidence, Judged, Proof, RankEnd, Report
from traindx.core.observed import Site
from traindx.core.text import LANGUAGES, Language, Text
from traindx.signals.monitors import SIX

SCHEMA = 1
_NAMES = {quantity.series: quantity.name for quantity in SIX}


def render(report: Report, language: Language, indent: int | None = 1) -> str:
    return json.dumps(document(report, language), ensure_ascii=False, indent=indent, allow_nan=False) + "\n"


def document(report: Report, language: Language) -> dict[str, Any]:
    """The report as JSON values, texts in one language. NaN and Inf are null, named in a sibling ``nonfinite``."""
    told = {
        "schema": SCHEMA, "traindx": __version__, "script": report.script, "language": language,
        "exit": {"status": report.status, "steps": report.steps, "seconds": round(report.seconds, 3),
                 "stopped": report.stopped},
        "findings": [_proved(judged, report, language) for judged in report.findings],
        "refuted": [_proved(judged, report, language) for judged in report.refuted],
        "verdicts": [{"rule": verdict.rule, "verdict": verdict.verdict, "why": verdict.why.say(language)}
                     for verdict in report.verdicts],
        "suppressed": [finding_as_json(judged, language) for judged in report.suppressed],
        "signals": {_NAMES.get(name, name): [[step, _finite(value)] for step, value in points]
                    for name, points in report.signals.items()},
        "nonfinite": _nonfinite(report),
        "remarks": [remark.say(language) for remark in report.remarks],
        "lost_lines": report.lost_lines, "run": report.run,
    }
    return told | {"ranks": [rank_as_json(rank) for rank in report.ranks]} if report.ranks else told


def rank_as_json(rank: RankEnd) -> dict[str, Any]:
    return {"rank": rank.rank, "status": rank.status, "steps": rank.steps, "seconds": rank.seconds, "stopped": rank.stopped,
            "where": _place(rank.where), "seen": rank.seen}


def _proved(judged: Judged, report: Report, language: Language) -> dict[str, Any]:
    return finding_as_json(judged, language, report.proofs.get(judged.rule))


def finding_as_json(judged: Judged, language: Language, proof: Proof | None = None) -> dict[str, Any]:
    finding = judged.finding
    told = {
        "rule": judged.rule, "level": judged.level, "title": judged.title.say(language),
        "cause": finding.cause.say(language), "fix": finding.fix.say(language),
        "where": _place(finding.where), "also": [_place(site) for site in finding.also],
        "evidence": [evidence_as_json(evidence, language) for evidence in finding.evidence],
        "first_step": finding.first_step, "confidence": finding.confidence, "because": finding.because.say(language),
        "explains": list(judged.explains), "explained_by": judged.explained_by, "experiment": judged.experiment,
        "proof": proof_as_json(proof, language) if proof else None,
    }
    return told | {"ranks": list(judged.ranks)} if judged.ranks else told


def proof_as_json(proof: Proof, language: Language) -> dict[str, Any]:
    return {"outcome": proof.outcome, "experiment": proof.experiment, "effect": proof.effect, "spread": proof.spread,
            "why": proof.why.say(language), "why_in": in_both(proof.why), **curves_as_json(proof.curves)}


def in_both(text: Text) -> dict[str, str]:
    """A sentence that pages of both languages show later."""
    return {language: text.say(language) for language in LANGUAGES}


def curves_as_json(curves: dict[str, list[tuple[float, float]]]) -> dict[str, Any]:
    """``curves`` with null where a value is not finite, and ``nonfinite`` that names those."""
    lost = {name: [[x, str(y)] for x, y in points if not math.isfinite(y)] for name, points in curves.items()}
    return {"curves": {name: [[x, _finite(y)] for x, y in points] for name, points in curves.items()},
            "nonfinite": {name: rows for name, rows in lost.items() if rows}}


def _place(site: Site | None) -> dict[str, Any] | None:
    return dataclasses.asdict(site) if site else None


def evidence_as_json(evidence: Evidence, language: Language) -> dict[str, Any]:
    row = {"what": evidence.what.say(language), "value": _value(evidence.value, language),
           "expected": _value(evidence.expected, language), "origin": evidence.origin, "unit": evidence.unit,
           "step": evidence.step}
    if isinstance(evidence.value, float) and not math.isfinite(evidence.value):
        row["nonfinite"] = str(evidence.value)
    return row


def _value(value: Any, language: Language) -> Any:
    """Numbers stay numbers; whatever JSON does not know becomes text."""
    if isinstance(value, Text):
        return value.say(language)
    if isinstance(value, float):
        return _finite(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [_value(item, language) for item in value]
    return str(value)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _nonfinite(report: Report) -> dict[str, list[list[Any]]]:
    """``{signal: [[step, "nan" | "inf" | "-inf"], ...]}`` for the nulls in ``signals``."""
    found = {_NAMES.get(name, name): [[step, str(value)] for step, value in points if not math.isfinite(value)]
             for name, points in report.signals.items()}
    return {name: rows for name, rows in found.items() if rows}
