"""Removing runs: never one that still runs, never anything that is not a run folder, never through a link."""
from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from traindx.errors import UsageError
from traindx.runs import words
from traindx.runs.reading import Run, runs_in
from traindx.runs.status import RUNNING


def size_of(folder: Path) -> int:
    """Bytes of the files in a folder; links are not followed."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file() and not file.is_symlink())


def check(run: Run) -> None:
    """Raises UsageError for a run that must stay."""
    if run.status == RUNNING:
        raise UsageError(words.STILL_RUNS.fill(run=run.name))
    if run.path.is_symlink() or not (run.path / "run.json").is_file():
        raise UsageError(words.NOT_A_RUN.fill(folder=run.path))


def remove(runs: Sequence[Run]) -> None:
    for run in runs:
        check(run)
    for run in runs:
        shutil.rmtree(run.path)


def leftovers(runs_dir: Path, older_than_days: float | None, now: float | None = None) -> list[Run]:
    """Runs that are over and never took a step; with ``older_than_days`` also those of that age without a conclusion."""
    found = []
    for path in runs_in(runs_dir):
        run = Run(path)
        if run.status == RUNNING or path.is_symlink():
            continue
        if run.steps == 0 or (older_than_days is not None and not run.is_concluded and _age(run, now) > older_than_days * 86400):
            found.append(run)
    return found


def _age(run: Run, now: float | None) -> float:
    """Seconds since a run began; 0 where it does not say, or says a time that has not come yet."""
    try:
        began = datetime.fromisoformat(str(run.fields.get("started"))).timestamp()
    except ValueError:
        return 0.0
    return max(0.0, (time.time() if now is None else now) - began)
