"""The list of runs from an index, which is only a memory of what the folders say: rebuilt wherever they have changed."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from traindx.runs.folder import write_text
from traindx.runs.kept import Progress
from traindx.runs.reading import Run
from traindx.runs.status import RUNNING

INDEX = ".index.json"
VERSION = 2


def rows(runs_dir: Path, progress: Progress | None = None) -> list[dict[str, Any]]:
    """One row a run, as CONTRACTS says, ordered by name. Only runs whose files changed since last time are opened."""
    known = _read(runs_dir / INDEX)
    found: dict[str, list[Any]] = {}
    changed = False
    for name, stamp in _stamps(runs_dir):
        entry = known.get(name)
        if entry is None or entry[0] != stamp or entry[1].get("status") == RUNNING:
            entry = [stamp, row_of(Run(runs_dir / name, progress))]
            changed = True
        found[name] = entry
    if changed or len(found) != len(known):
        _write(runs_dir / INDEX, found)
    return [found[name][1] for name in sorted(found)]


def row_of(run: Run) -> dict[str, Any]:
    fields = run.fields
    findings = fields.get("findings")
    return {"run": run.name, "name": str(fields.get("name", run.name)), "status": run.status, "started": str(fields.get("started", "")),
            "script": str(fields.get("script", "")), "commit": fields.get("commit"), "dirty": bool(fields.get("dirty")), "steps": run.steps,
            "best": run.best, "findings": len(findings) if isinstance(findings, list) else None, "concluded": run.is_concluded}


def _stamps(runs_dir: Path) -> list[tuple[str, list[int]]]:
    """When each run's own file and its notes were last written."""
    found = []
    try:
        with os.scandir(runs_dir) as entries:
            names = [entry.name for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return []
    for name in names:
        try:
            stamp = [os.stat(f"{runs_dir}/{name}/run.json").st_mtime_ns]
        except OSError:
            continue
        try:
            stamp.append(os.stat(f"{runs_dir}/{name}/notes.md").st_mtime_ns)
        except OSError:
            pass
        found.append((name, stamp))
    return found


def _read(file: Path) -> dict[str, list[Any]]:
    """{} for an index that is none, or of another version."""
    try:
        kept = json.loads(file.read_bytes())
        if kept["version"] != VERSION:
            return {}
        return {name: entry for name, entry in kept["runs"].items()
                if isinstance(entry, list) and len(entry) == 2 and isinstance(entry[1], dict)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _write(file: Path, found: dict[str, list[Any]]) -> None:
    try:
        write_text(file, json.dumps({"version": VERSION, "runs": found}, ensure_ascii=False, separators=(",", ":")))
    except OSError:
        pass  # a folder that may only be read: the list is made anew each time
