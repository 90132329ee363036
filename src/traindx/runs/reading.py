"""Reading run folders, whoever wrote them: nothing in them is executed, nothing is trusted to have the right type."""
from __future__ import annotations

import difflib
import json
import os
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

from traindx.core.observed import Ended
from traindx.core.observed.record import Began
from traindx.core.recording import EVENTS, METRICS, Recording
from traindx.core.text import EMPTY, Text
from traindx.errors import UsageError
from traindx.messages import HINT_NEAR
from traindx.runs import facts, notes, words
from traindx.runs.curves import Curves
from traindx.runs.folder import SCHEMA
from traindx.runs.kept import Progress, complete
from traindx.runs.metrics import last_step
from traindx.runs.status import RUNNING, is_running

JSON_BYTES = 64 * 2**20  # of one file; a record's own are far smaller
SIBLINGS = 200  # other runs that are looked at, the newest
LARGEST = 2**1023  # of a whole number that is also a float
MOST_POINTWISE = 64 * 2**20  # bytes of a recording, which take ten times as much memory
HEAD_BYTES = 2**16  # of the events, where the process names itself


@dataclass(frozen=True)
class Run:
    """One run folder. ``progress`` is told how far a large file of metrics has been read."""

    path: Path
    progress: Progress | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def fields(self) -> dict[str, Any]:
        """``run.json``; {} where it cannot be read."""
        return read_json(self.path / "run.json")

    @cached_property
    def recording(self) -> Recording:
        """Everything, every point of every curve: a run of millions of steps takes gigabytes."""
        return Recording.read(self.path)

    @cached_property
    def events(self) -> Recording:
        """The recording without its curves."""
        return Recording.read(self.path, (EVENTS,))

    @cached_property
    def measured(self) -> Curves:
        """The curves in few points and few numbers."""
        return complete(self.path, self.progress)

    @property
    def size(self) -> int:
        """Bytes of the recording."""
        return sum(bytes_of(self.path / file) for file in (EVENTS, METRICS))

    @property
    def is_large(self) -> bool:
        """Whether it is too large to be gone through point by point: judged anew, compared step by step."""
        return self.size > MOST_POINTWISE

    @cached_property
    def status(self) -> str:
        """``running``, ``finished``, ``failed``, ``killed at step k``, or ``unknown``."""
        said = self.fields.get("status")
        if not isinstance(said, str):
            return "unknown"
        if said != RUNNING or is_running(self.path, self.fields, began_in(self.path)):
            return said
        return f"killed at step {self.steps}"

    @property
    def is_closed(self) -> bool:
        """Whether its last words were written: numbers need not be worked out again."""
        return isinstance(self.fields.get("curves"), dict)

    @cached_property
    def curves(self) -> dict[str, dict[str, Any]]:
        """``{series: {last, min, at_min, max, points}}``."""
        kept = self.fields.get("curves")
        if not isinstance(kept, dict):
            return self.measured.summary
        return {name: curve for name, curve in kept.items() if isinstance(curve, dict) and all(is_number(curve.get(k)) for k in ("last", "min"))}

    @property
    def steps(self) -> int:
        if self.is_closed:
            return as_count(self.fields.get("steps"))
        ended = self.events.last(Ended)
        return ended.steps if ended else last_step(self.path)

    @property
    def best(self) -> dict[str, Any]:
        kept = self.fields.get("best")
        return kept if isinstance(kept, dict) else facts.best(self.curves)

    @cached_property
    def record(self) -> dict[str, Any]:
        """``record.json``, completed from the recording where the run did not live to write it."""
        kept = read_json(self.path / "record.json")
        return kept if "seeds" in kept else facts.facts_of(self.recording) | kept

    @cached_property
    def environment(self) -> dict[str, Any]:
        return read_json(self.path / "environment.json")

    @cached_property
    def notes(self) -> dict[str, str]:
        return notes.read(self.path)

    @property
    def is_concluded(self) -> bool:
        return notes.is_concluded(self.notes)

    def remarks(self) -> list[Text]:
        """What a reader must know before trusting the rest."""
        said = []
        schema = self.fields.get("schema")
        if isinstance(schema, int) and schema > SCHEMA:
            said.append(words.NEWER.fill(schema=schema))
        if not self.fields:
            said.append(words.UNREADABLE.fill(file="run.json"))
        return said


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object; {} for whatever is none: missing, no file, cut off, too big, nested too deep."""
    try:
        if not path.is_file() or path.stat().st_size > JSON_BYTES:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def began_in(path: Path) -> list[dict[str, Any]]:
    """The watched process itself, as it wrote into its events."""
    if not (path / EVENTS).is_file():
        return []
    try:
        with open(path / EVENTS, "rb") as file:
            lines = file.read(HEAD_BYTES).split(b"\n")
    except OSError:
        return []
    found = []
    for line in lines:
        if f'"{Began.__name__}"'.encode() in line:
            try:
                found.append(json.loads(line))
            except (ValueError, RecursionError):
                continue
    return [row for row in found if isinstance(row, dict)]


def is_number(value: Any) -> TypeGuard[float]:
    """Whether it is one that a float can hold, NaN and infinity included."""
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST)


def bytes_of(file: Path) -> int:
    """Bytes; 0 for what is no file."""
    try:
        return file.stat().st_size if file.is_file() else 0
    except OSError:
        return 0


def as_count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def runs_in(runs_dir: Path) -> list[Path]:
    """The run folders, oldest name first; one that may not be entered is passed over."""
    try:
        return sorted(path for path in runs_dir.iterdir() if os.path.isfile(path / "run.json"))
    except OSError:
        return []


def siblings(run: Run, runs_dir: Path) -> list[Run]:
    """The newest other runs of the same script."""
    found = [Run(path) for path in runs_in(runs_dir)[-SIBLINGS:]]
    return [other for other in found if other.fields.get("script") == run.fields.get("script") and other.path.resolve() != run.path.resolve()]


def find(runs_dir: Path, name: str, progress: Progress | None = None) -> Run:
    """A run by name, by the beginning of its name, by its folder, or ``last``. Raises UsageError where it is not one."""
    return Run(_folder_of(runs_dir, name, progress), progress)


def _folder_of(runs_dir: Path, name: str, progress: Progress | None) -> Path:
    direct = Path(name)
    if (direct / "run.json").is_file():
        return direct
    if "/" in name and direct.is_dir():
        raise UsageError(words.NOT_A_RUN.fill(folder=name))
    paths = runs_in(runs_dir)
    if name == "last" and paths:
        from traindx.runs.index import rows  # thousands of runs need not be opened to know the last
        last: str = max(rows(runs_dir, progress), key=lambda row: (row["started"], row["run"]))["run"]
        return runs_dir / last
    exact = [path for path in paths if path.name == name]
    fitting = exact or [path for path in paths if path.name.startswith(name)] or [path for path in paths if name in path.name]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(words.SEVERAL.fill(name=name, names=", ".join(path.name for path in fitting[:6])))
    near = difflib.get_close_matches(name, [path.name for path in paths], n=2, cutoff=0.5)
    hint = HINT_NEAR.fill(near=", ".join(near)) if near else EMPTY
    raise UsageError(words.NO_SUCH_RUN.fill(name=name, folder=runs_dir, near=hint))
