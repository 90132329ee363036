"""The run folder ``runs/<date-time>-<name>/``: recording, what was run, what was said, and room for a conclusion."""
from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from traindx import __version__
from traindx.launch import Outcome
from traindx.messages import NOTES

SCHEMA = 1
_SECRET_WORDS = frozenset(("token", "secret", "password", "passwd", "apikey", "auth", "credential", "credentials"))
_SECRET_VALUE = re.compile(
    r"^(hf_|gh[pousr]_|github_pat_|sk-|xox[abp]-|AKIA|glpat-|wandb_|ya29\.|eyJ)[\w.\-]{8,}$|^[0-9a-f]{40}$|://[^/@\s]+:[^/@\s]+@")
MASK = "***"


@dataclass(frozen=True)
class RunFolder:
    """A folder that this run alone writes to."""

    path: Path
    fields: dict[str, Any]

    def finish(self, outcome: Outcome, report: dict[str, Any]) -> None:
        """The last words: how it ended, and the report."""
        ended = {"status": status_of(outcome), "exit": outcome.status, "seconds": round(outcome.seconds, 3)}
        self._write(self.fields | ended)
        _write_json(self.path / "report.json", report)

    def _write(self, fields: dict[str, Any]) -> None:
        _write_json(self.path / "run.json", fields)


def begin(runs_dir: Path, name: str, script: str, argv: Sequence[str]) -> RunFolder:
    """Makes the folder. Raises OSError where that is not permitted."""
    now = datetime.now().astimezone()
    path = _make_unique(runs_dir, f"{now:%Y-%m-%d-%H%M}-{slug(name)}")
    run = RunFolder(path, {
        "schema": SCHEMA, "traindx": __version__, "script": script, "argv": masked(argv), "cwd": os.getcwd(),
        "python": sys.version.split()[0], "pid": os.getpid(), "started": now.isoformat(timespec="seconds"),
        "status": "running"})
    run._write(run.fields)
    (path / "notes.md").write_text(NOTES, encoding="utf-8")
    return run


def _make_unique(runs_dir: Path, stem: str) -> Path:
    """mkdir decides who gets a name, so that two runs started in the same minute never share one."""
    runs_dir.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = runs_dir / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir()
            return path
        except FileExistsError:
            number += 1


def slug(name: str) -> str:
    """A name fit for a folder."""
    return re.sub(r"[^\w.\-]+", "-", name).strip("-.")[:60] or "run"


def masked(argv: Sequence[str]) -> list[str]:
    """Arguments without what looks like a secret: ``--token X``, ``--api-key=X``, or a value in a token's form."""
    out: list[str] = []
    hide_next = False
    for word in argv:
        option, equals, value = word.partition("=")
        if (hide_next and not word.startswith("-")) or _SECRET_VALUE.search(word):
            out.append(MASK)
        elif equals and (_names_secret(option) or _SECRET_VALUE.search(value)):
            out.append(f"{option}={MASK}")
        else:
            out.append(word)
        hide_next = word.startswith("-") and not equals and _names_secret(word)
    return out


def _names_secret(option: str) -> bool:
    """``--hub-token`` does, ``--tokenizer`` and ``--max-tokens`` do not."""
    words = re.split(r"[-_.]+", option.lower())
    is_key = "key" in words and not {"api", "access", "private"}.isdisjoint(words)
    return is_key or not _SECRET_WORDS.isdisjoint(words)


def status_of(outcome: Outcome) -> str:
    """``finished``, ``failed`` or ``killed at step k``."""
    if outcome.signal:
        return f"killed at step {outcome.recording.steps}"
    return "finished" if outcome.status == 0 else "failed"


def _write_json(path: Path, fields: dict[str, Any]) -> None:
    """Whole or not at all: a reader never meets half a file."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(fields, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, path)
