"""Everything that is said of the collected samples, and its JSON."""
from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from traindx import __version__
from traindx.core.findings import Report
from traindx.core.observed import Site
from traindx.core.observed.fed import ScalerFitted, ScalingLines
from traindx.core.recording import Recording
from traindx.core.text import Language
from traindx.diagnosis import diagnose
from traindx.samples import words
from traindx.samples.compare import Copies, Group, Pair, conflicts, exact, groups, near
from traindx.samples.labels import Suspects, counts_of, suspects_of, tail_of
from traindx.samples.load import Split, splits_of
from traindx.samples.shift import Shift, shifts


@dataclass(frozen=True)
class DataReport:
    """What is known of a script's data. ``fitted`` are scalers seen being fitted, ``lines`` places that compute statistics over rows."""

    script: str
    splits: list[Split]
    exact: list[Copies]
    near: list[Copies]
    conflicts: list[tuple[Pair, float, float]]
    suspects: Suspects | None
    shifts: list[Shift]
    groups: list[Group]
    fitted: list[ScalerFitted]
    lines: list[Site]
    rules: Report


def report_of(recording: Recording, folder: Path, script: str) -> DataReport:
    splits = splits_of(recording, folder)
    train = splits[0] if splits and splits[0].is_train else None
    lines = [site for seen in recording.of(ScalingLines) for site in seen.sites]
    return DataReport(
        script, splits, list(exact(splits)), list(near(splits)), conflicts(splits), suspects_of(train) if train else None,
        shifts(splits), list(groups(splits)), recording.of(ScalerFitted), lines, diagnose(recording, _data_rules()))


def _data_rules() -> list[str]:
    from traindx.core.rules import all_rules
    return [name for name in all_rules() if name.startswith("data/")]


# -- JSON --


def document(report: DataReport, page: str | None, language: Language) -> dict[str, Any]:
    from traindx.reporters import json as run_json
    return {
        "schema": 1, "traindx": __version__, "script": report.script,
        "splits": [_split(split) for split in report.splits],
        "findings": run_json.document(report.rules, language)["findings"],
        "duplicates": [_copies(copies, report.splits, True, language) for copies in report.exact]
        + [_copies(copies, report.splits, False, language) for copies in report.near],
        "conflicts": [{"samples": _names(pair, report.splits), "labels": [a, b]} for pair, a, b in report.conflicts],
        "suspects": _suspects(report, language),
        "shifts": [dataclasses.asdict(shift) | {"split": report.splits[shift.split].name} for shift in report.shifts],
        "groups": [{"splits": [report.splits[g.first].name, report.splits[g.second].name], "share": g.share, "examples": g.examples}
                   for g in report.groups],
        "statistics": {"fitted": [{"kind": f.class_name, "rows": f.rows, "where": _place(f.site)} for f in report.fitted],
                       "lines": [_place(site) for site in report.lines]},
        "page": page,
    }


def dumps(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _place(site: Site | None) -> dict[str, Any] | None:
    return dataclasses.asdict(site) if site else None


def _split(split: Split) -> dict[str, Any]:
    seen = split.seen
    counts = counts_of(split)
    return {
        "name": split.name, "samples": seen.samples, "batches": seen.batches, "whole_pass": seen.whole_pass, "where": _place(seen.site),
        "loader": _place(seen.loader_site), "dataset": seen.dataset, "shape": list(seen.row_shape), "dtype": seen.dtype, "kind": seen.feature,
        "labels": seen.label_kind, "classes": {str(int(label)): count for label, count in sorted(counts.items())},
        "names": list(seen.names), "tail": [int(label) for label in tail_of(counts)],
        "location": _numbers(split, "location"), "scale": _numbers(split, "scale"), "notes": list(seen.notes),
    }


def _numbers(split: Split, name: str) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in split.arrays.get(name, ())]


def _copies(copies: Copies, splits: list[Split], equal: bool, language: Language) -> dict[str, Any]:
    first, second = copies.where
    return {"splits": [splits[first].name, splits[second].name], "equal": equal, "count": None if copies.why else copies.count,
            "why": words.why(copies.why).say(language) if copies.why else "",
            "pairs": [{"samples": _names(pair, splits), "likeness": round(pair.likeness, 5)} for pair in copies.pairs]}


def _names(pair: Pair, splits: list[Split]) -> list[str]:
    return [splits[split].row(place) for split, place in (pair.first, pair.second)]


def _suspects(report: DataReport, language: Language) -> dict[str, Any] | None:
    suspects = report.suspects
    if suspects is None:
        return None
    return {"way": suspects.way, "why": words.why(suspects.why).say(language) if suspects.why else "", "looked_at": suspects.looked_at,
            "accuracy": suspects.accuracy,
            "found": [{"sample": report.splits[0].row(s.place), "label": s.label, "said": s.said, "share": s.share} for s in suspects.found]}
