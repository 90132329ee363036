"""What other commands found out about a script (exam, data, shapes), kept beside the runs of the same code.

It goes into the newest run of the same script in the same folder, if none of the files which that run imported was changed since
it began; else into a folder of its own, ``<date>-<time>-<name>-exam``, which is no run. A later run finds it there, as long as
its files have not changed since either.
"""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from traindx.core.observed.record import FilesImported
from traindx.core.secrets import masked
from traindx.runs.comparing import rows_of
from traindx.runs.folder import make_unique, slug, write_json
from traindx.runs.reading import Run, as_count, read_json, runs_in

SCHEMA = 1
LOOKED_AT = 200  # runs, the newest
GRAIN = 1.0  # seconds: when a run began is written in whole ones
Document = dict[str, Any]


def keep(runs_dir: Path, kind: str, script: str, name: str, argv: Sequence[str], document: Mapping[str, Any], since: datetime) -> Path:
    """Writes ``<kind>.json`` and returns where. ``since``: when the command began; it speaks of the code as it was then.
    Raises OSError."""
    run = newest(runs_dir, script, since)
    folder = run.path if run is not None else make_unique(runs_dir, f"{since:%Y-%m-%d-%H%M}-{slug(name)}-{kind}")
    about = {"script": script, "argv": masked(argv), "cwd": os.getcwd(), "date": since.isoformat(timespec="seconds")}
    told = {"schema": SCHEMA, **document, **about}
    before = read_json(folder / f"{kind}.json")
    write_json(folder / f"{kind}.json", merged(before, told) if before.get("script") == script else told)
    return folder / f"{kind}.json"


def newest(runs_dir: Path, script: str, at: datetime) -> Run | None:
    """The newest run of ``script`` from this folder whose code is still as it was when it ran."""
    fitting = [run for path in runs_in(runs_dir)[-LOOKED_AT:]
               if (run := Run(path)).fields.get("script") == script and run.fields.get("cwd") == os.getcwd()]
    fitting.sort(key=lambda run: (str(run.fields.get("started")), run.name))
    return fitting[-1] if fitting and unchanged(fitting[-1], at) else None


def unchanged(run: Run, at: datetime) -> bool:
    """Whether all files that the run imported are older than its beginning and than ``at``."""
    began, seen = moment(run.fields.get("started")), run.events.last(FilesImported)
    if began is None or seen is None:
        return False
    limit = min(began.timestamp(), at.timestamp()) + GRAIN
    try:
        return all(os.stat(file).st_mtime < limit for file in {*seen.files, *filter(None, [seen.main])})
    except OSError:
        return False


def found(run: Run, runs_dir: Path, kind: str) -> Document:
    """What is known of the run's code: in its own folder, else the newest of the same script elsewhere that still holds; {}."""
    own = read_json(run.path / f"{kind}.json")
    if own:
        return own
    known = [document for document in _elsewhere(runs_dir, kind) if document.get("script") == run.fields.get("script")
             and document.get("cwd") == run.fields.get("cwd")]
    for document in sorted(known, key=lambda document: str(document.get("date")), reverse=True):
        at = moment(document.get("date"))
        if at is not None and unchanged(run, at):
            return document
    return {}


def _elsewhere(runs_dir: Path, kind: str) -> Iterator[Document]:
    try:
        folders = sorted(path for path in runs_dir.iterdir() if (path / f"{kind}.json").is_file())
    except OSError:
        return
    for folder in folders[-LOOKED_AT:]:
        yield read_json(folder / f"{kind}.json")


def moment(said: Any) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(said))
    except ValueError:
        return None
    return found if found.tzinfo else found.astimezone()


def merged(before: Mapping[str, Any], after: Mapping[str, Any]) -> Document:
    """An exam of other steps adds to the first: newer results take the place of older ones of the same step."""
    if "steps" not in after:
        return {**before, **{name: value for name, value in after.items() if value is not None}}
    steps = {str(row.get("name")): row for document in (before, after) for row in rows_of(document.get("steps"))
             if (document is before or row.get("verdict") != "not-checked")}
    for row in rows_of(after.get("steps")):
        steps.setdefault(str(row.get("name")), row)
    kept = {name: before[name] for name in ("lr", "seeds", "sharpness") if before.get(name) is not None and after.get(name) is None}
    return {**after, **kept, "steps": sorted(steps.values(), key=lambda row: as_count(row.get("step")))}
