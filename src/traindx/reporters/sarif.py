"""The report as SARIF 2.1.0 (OASIS): what code hosts show beside the lines of a change."""
from __future__ import annotations

import json
import re
from typing import Any

from traindx import __version__
from traindx.core.findings import Judged, Report
from traindx.core.observed import Site
from traindx.core.rules import all_rules
from traindx.core.text import Language
from traindx.reporters import words

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
HOME = "https://github.com/traindx/traindx"
_UNSAFE = re.compile(r"[^A-Za-z0-9\-._~/]")


def render(report: Report, language: Language) -> str:
    return json.dumps(document(report, language), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def document(report: Report, language: Language) -> dict[str, Any]:
    """One run; suppressed findings are in it, marked as suppressed in the source."""
    judged = [*report.findings, *report.suppressed]
    rules = sorted({one.rule for one in judged})
    results = [_result(one, rules.index(one.rule), language) for one in judged]
    for result in results[len(report.findings):]:
        result["suppressions"] = [{"kind": "inSource"}]
    return {
        "$schema": SCHEMA, "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {"name": "traindx", "version": __version__, "informationUri": HOME,
                                "rules": [_rule(name, language) for name in rules]}},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": report.status in (0, None), "exitCode": report.status or 0}],
            "results": results,
        }],
    }


def _rule(name: str, language: Language) -> dict[str, Any]:
    rule = all_rules().get(name)
    if rule is None:
        return {"id": name}
    page = rule.page(language)
    what, *_, = page.sections.values()
    return {"id": name, "shortDescription": {"text": page.title}, "fullDescription": {"text": what},
            "defaultConfiguration": {"level": rule.level}, "properties": {"tags": [rule.family]}}


def _result(judged: Judged, index: int, language: Language) -> dict[str, Any]:
    finding = judged.finding
    text = "\n".join([f"{judged.title.say(language)}. {finding.cause.say(language)}", finding.fix.say(language)])
    result: dict[str, Any] = {
        "ruleId": judged.rule, "ruleIndex": index, "level": judged.level, "message": {"text": text},
        "locations": [_location(finding.where)] if finding.where else [],
        "properties": {"confidence": finding.confidence, "explainedBy": judged.explained_by,
                       "evidence": [words.evidence_of(evidence).say(language) for evidence in finding.evidence]},
    }
    if judged.ranks:
        result["properties"]["ranks"] = list(judged.ranks)
    if finding.also:
        result["relatedLocations"] = [_location(site) | {"id": number} for number, site in enumerate(finding.also, 1)]
    return result


def _location(site: Site) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": max(1, site.line)}
    if site.code:
        region["snippet"] = {"text": site.code}
    return {"physicalLocation": {"artifactLocation": {"uri": _uri(site.file)}, "region": region}}


def _uri(file: str) -> str:
    """A relative reference, or a file URI for an absolute path."""
    quoted = _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), file)
    return f"file://{quoted}" if file.startswith("/") else quoted
