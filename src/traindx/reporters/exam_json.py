"""The exam as JSON: the contract of CONTRACTS "exam"."""
from __future__ import annotations

import dataclasses
import json
from typing import Any

from traindx import __version__
from traindx.core.exams import ExamReport, StepResult
from traindx.core.text import Language, number
from traindx.reporters.exam_words import NOISE, STEP_NAMES
from traindx.reporters.json import SCHEMA, curves_as_json, evidence_as_json, finding_as_json, in_both


def render(report: ExamReport, language: Language, indent: int | None = 1) -> str:
    return json.dumps(document(report, language), ensure_ascii=False, indent=indent, allow_nan=False) + "\n"


def document(report: ExamReport, language: Language) -> dict[str, Any]:
    """The report as JSON values, texts in one language."""
    return {
        "schema": SCHEMA, "traindx": __version__, "script": report.script, "language": language,
        "repeatable": report.repeatable, "pinned_by": report.pinned_by, "sandbox": report.sandbox or None,
        "steps": [_step(step, language) for step in report.steps],
        "lr": _rate(report, language), "seeds": _seeds(report, language),
        "sharpness": dataclasses.asdict(report.sharpness) | {"origin": "measured"} if report.sharpness else None,
        "refuted": [finding_as_json(proved.judged, language, proved.proof) for proved in report.refuted],
        "remarks": [remark.say(language) for remark in report.remarks],
        "trials": report.trials, "seconds": round(report.seconds, 3), "interrupted": report.interrupted,
    }


def _step(step: StepResult, language: Language) -> dict[str, Any]:
    return {
        "step": step.step, "name": STEP_NAMES[step.step][0], "verdict": step.verdict, "why": step.why.say(language),
        "why_in": in_both(step.why), "shape": step.shape, "next": step.next.say(language),
        "findings": [finding_as_json(proved.judged, language, proved.proof) for proved in step.findings],
        "evidence": [evidence_as_json(evidence, language) for evidence in step.evidence],
        **({"not_restored": list(step.not_restored)} if STEP_NAMES[step.step][0] == "resume" else {}),
        **curves_as_json(step.curves),
    }


def _rate(report: ExamReport, language: Language) -> dict[str, Any] | None:
    rate = report.rate
    if rate is None:
        return None
    return {"interval": list(rate.interval) if rate.interval else None,
            "refused": rate.refused.say(language) if rate.refused else None, "infeasible_fraction": round(rate.infeasible, 4),
            "diverges_at": rate.diverges_at, "best": rate.best, "steepest": rate.steepest, "used": rate.used}


def _seeds(report: ExamReport, language: Language) -> dict[str, Any] | None:
    seeds = report.seeds
    if seeds is None:
        return None
    return {"n": len(seeds.final), "final": seeds.final, "spread": seeds.spread,
            "noise": NOISE.fill(noise=number(seeds.noise)).say(language)}

