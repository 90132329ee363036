"""What a worker process computes for the page: each job is a function from JSON values to JSON values."""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from traindx.core.text import Text
from traindx.errors import UsageError
from traindx.studio import describing

NO_LAB = Text("There is no lab named {name!r}. Known: {known}", "没有名为 {name!r} 的动手实验。可用的有：{known}")
NO_RULE = Text("There is no rule named {name!r}.", "没有名为 {name!r} 的规则。")


def catalogue() -> Any:
    return describing.catalogue()


def lab(name: str, wanted: Mapping[str, Any]) -> Any:
    """``state`` is what was really computed: each wanted value at its nearest position."""
    from traindx.labs import all_labs
    found = all_labs().get(name)
    if found is None:
        raise UsageError(NO_LAB.fill(name=name, known=", ".join(all_labs())))
    state = found.state_of(wanted)
    return {"state": state, **describing.outcome(found.compute(state))}


def rule(name: str) -> Any:
    from traindx.core.rules import all_rules
    found = all_rules().get(name)
    if found is None:
        raise UsageError(NO_RULE.fill(name=name))
    return describing.rule_page(found)


def of_records(name: str) -> Callable[..., Any]:
    """A job of records.py; ``runs_dir`` comes as text."""
    def job(runs_dir: str, *arguments: Any) -> Any:
        from traindx.studio import records
        return getattr(records, name)(Path(runs_dir), *arguments)
    return job


JOBS: dict[str, Callable[..., Any]] = {
    "catalogue": catalogue, "lab": lab, "rule": rule, "runs": of_records("listing"), "run": of_records("page"),
    "checklist": of_records("checklist"), "compare": of_records("comparison"), "note": of_records("note")}


def answer(name: str, arguments: tuple[Any, ...]) -> bytes:
    """The job's answer as JSON: ``{"answer": ...}`` or ``{"error": text}``."""
    try:
        found = {"answer": JOBS[name](*arguments)}
    except UsageError as problem:
        found = {"error": describing.pair(problem.text)}
    except Exception as problem:
        found = {"error": f"{type(problem).__name__}: {problem}"}
    return encoded(found)


def encoded(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
