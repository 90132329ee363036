"""What a checklist is judged from: a run's record, its report, an exam, the other runs of the script, the program's own files."""
from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from traindx.core.observed.record import FilesImported
from traindx.runs import beside
from traindx.runs.comparing import mapping, rows_of
from traindx.runs.reading import Run, read_json, siblings

SOURCE_BYTES = 2**20
ANSWERS = "checklist.json"
JAXTYPING = ("Float", "Int", "Bool", "Num", "Shaped", "Inexact", "Real", "UInt", "Integer", "Complex",
             "Float16", "Float32", "Float64", "BFloat16", "Int32", "Int64")
INIT = ("kaiming_", "xavier_", "trunc_normal_", "orthogonal_",
        "normal_", "uniform_", "zeros_", "ones_", "constant_", "sparse_", "dirac_", "eye_")


@dataclass(frozen=True)
class Place:
    """A line in the program's own files."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Facts:
    """Everything known about one run. ``answers`` maps an item to ``{state, text, date}``."""

    run: Run
    siblings: tuple[Run, ...] = ()
    exam: Mapping[str, Any] = field(default_factory=dict)
    answers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)  # what `traindx data` kept
    shapes: Mapping[str, Any] = field(default_factory=dict)  # what `traindx shapes --assert` kept

    @cached_property
    def verdicts(self) -> dict[str, tuple[str, str]]:
        """``{rule: (verdict, why)}`` of the report."""
        report = read_json(self.run.path / "report.json")
        return {str(row.get("rule")): (str(row.get("verdict")), str(row.get("why", ""))) for row in rows_of(report.get("verdicts"))}

    @cached_property
    def files(self) -> list[tuple[str, ast.Module]]:
        """The program's own files, parsed; those that are gone or cannot be parsed are left out."""
        seen = self.run.events.last(FilesImported)
        names = [*(seen.files if seen else ()), *([seen.main] if seen and seen.main else [])]
        return [(name, tree) for name in dict.fromkeys(names) if (tree := _parsed(Path(name))) is not None]

    @cached_property
    def shape_assertions(self) -> list[Place]:
        return [Place(Path(name).name, getattr(node, "lineno", 0)) for name, tree in self.files for node in ast.walk(tree)
                if (isinstance(node, ast.Assert) and _speaks_of_shape(node.test)) or _is_jaxtyping(node)]

    @cached_property
    def marks(self) -> dict[str, str]:
        """``{sample: mark}`` that a person made on the page of samples: saved by its server, or by hand beside it."""
        page = self.data.get("page")
        places = [Path(page).with_suffix(".marks.json"), Path(page).with_name("marks.json")] if isinstance(page, str) else []
        for place in places:
            kept = read_json(place)
            if kept.get("script") in ("", None, self.run.fields.get("script")) and mapping(kept.get("marks")):
                return {str(sample): str(mark) for sample, mark in mapping(kept.get("marks")).items()}
        return {}

    @cached_property
    def initialisations(self) -> list[Place]:
        return [Place(Path(name).name, node.lineno) for name, tree in self.files for node in ast.walk(tree)
                if isinstance(node, ast.Call) and _is_init(node.func)]


def gather(run: Run, runs_dir: Path, exam: Mapping[str, Any] | None = None) -> Facts:
    answers = mapping(read_json(run.path / ANSWERS).get("answers"))
    return Facts(run, tuple(siblings(run, runs_dir)), beside.found(run, runs_dir, "exam") if exam is None else exam,
                 {item: answer for item, answer in answers.items() if isinstance(answer, dict)},
                 beside.found(run, runs_dir, "data"), beside.found(run, runs_dir, "shapes"))


def keep_answers(run: Run, answers: Mapping[int, str], date: str) -> None:
    """Adds answers to those that are kept. ``no: why`` fails an item. Raises OSError."""
    from traindx.runs.folder import write_text
    kept = mapping(read_json(run.path / ANSWERS).get("answers"))
    for item, text in answers.items():
        is_no = text.lower() == "no" or text.lower().startswith(("no:", "no：", "no,"))
        kept[str(item)] = {"state": "failed" if is_no else "ticked", "text": " ".join(text.split()), "date": date}
    write_text(run.path / ANSWERS, json.dumps({"schema": 1, "answers": kept}, ensure_ascii=False, indent=1) + "\n")


def keep_exam(run: Run, exam: Mapping[str, Any]) -> None:
    """In the record, where the next checklist finds it. Raises OSError."""
    from traindx.runs.folder import write_json
    write_json(run.path / "exam.json", exam)


def settings_of(run: Run) -> tuple[set[float], set[int]]:
    """Learning rates of the optimizers and batch sizes of the shuffled loaders of a run."""
    config = mapping(run.record.get("config"))
    rates = {float(group["lr"]) for part in rows_of(config.get("optimizers")) for group in rows_of(part.get("groups"))
             if isinstance(group.get("lr"), (int, float))}
    batches = {part["batch_size"] for part in rows_of(config.get("loaders")) if isinstance(part.get("batch_size"), int) and part.get("shuffle")}
    return rates, batches


def _parsed(file: Path) -> ast.Module | None:
    try:
        if file.stat().st_size > SOURCE_BYTES:
            return None
        return ast.parse(file.read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


def _speaks_of_shape(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr in ("shape", "size", "ndim", "dim") for part in ast.walk(node))


def _is_jaxtyping(node: ast.AST) -> bool:
    """``Float[Tensor, "batch 3"]``."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple) or len(node.slice.elts) != 2:
        return False
    kind, shape = next(_dotted(node.value), ""), node.slice.elts[1]
    return kind in JAXTYPING and isinstance(shape, ast.Constant) and isinstance(shape.value, str)


def _is_init(function: ast.AST) -> bool:
    names = list(_dotted(function))
    return len(names) > 1 and "init" in names[1:] and names[0].startswith(INIT)


def _dotted(node: ast.AST) -> Iterator[str]:
    """``nn.init.zeros_`` as zeros_, init, nn."""
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
