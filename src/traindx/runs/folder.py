"""Writing a run folder: made when a run begins, filled in while it runs, closed when it ends. Nothing here stops a training."""
from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx import __version__
from traindx.core.codec import encode
from traindx.core.secrets import masked
from traindx.messages import NOTES
from traindx.runs import code as codes

if TYPE_CHECKING:  # the rest is imported while the script runs, which need not wait for it
    from traindx.core.recording import Recording
    from traindx.launch import Outcome

SCHEMA = 1
HEARTBEAT = "heartbeat"
BEAT_SECONDS = 5.0


@dataclass
class RunFolder:
    """A folder that this run alone writes to."""

    path: Path
    fields: dict[str, Any]
    base: Path
    code: codes.Code = field(default_factory=codes.Code)
    environment: dict[str, Any] = field(default_factory=dict)
    broken: OSError | None = None
    _seen_step: bool = False
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Gathers what takes a moment (code, packages) while the script starts; keeps the heart beating."""
        for work in (self._gather, self._beat):
            thread = threading.Thread(target=self._guarded, args=(work,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def follow(self, recording: Recording) -> None:
        """Called with the growing recording: after the first step, what a killed run would otherwise lack is written down."""
        from traindx.core.observed.record import TorchSeen
        if not self._seen_step and recording.steps >= 1 and recording.last(TorchSeen) is not None:
            self._seen_step = True
            self._guarded(lambda: self._describe(recording))

    def finish(self, outcome: Outcome, report: dict[str, Any]) -> None:
        """The last words: how it ended, and the report. Raises the OSError that stopped the recording, if one did."""
        self._stop.set()
        for thread in self._threads:
            thread.join(codes.SECONDS)
        self._guarded(lambda: self._close(outcome, report))
        if self.broken is not None:
            raise self.broken

    def _close(self, outcome: Outcome, report: dict[str, Any]) -> None:
        from traindx.runs import facts as summaries
        recording = outcome.recording
        self._describe(recording)
        curves = summaries.summary(recording)
        found = [{"rule": finding["rule"], "level": finding["level"]} for finding in report.get("findings", ())
                 if finding["level"] != "note" and not finding.get("explained_by")]
        ended = {"status": status_of(outcome), "exit": outcome.status, "seconds": round(outcome.seconds, 3),
                 "ended": _now().isoformat(timespec="seconds"), "steps": recording.steps, "best": summaries.best(curves),
                 "curves": curves, "findings": found}
        self._write(self.fields | ended)
        write_json(self.path / "report.json", report)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError as problem:  # a full disk, a removed folder
            self.broken = self.broken or problem

    def _gather(self) -> None:
        from traindx.env import gather
        from traindx.env.locks import lock_at
        self.code = codes.snapshot(self.base, self.path)
        write_json(self.path / "record.json", {"schema": SCHEMA, "code": asdict(self.code)})
        self._write(self.fields | _code_fields(self.code))
        machine = gather.machine_facts()
        packages = gather.installed_packages()
        lock = lock_at(Path.cwd(), packages)
        self.environment = encode(machine) | {"packages": packages, "drivers": encode(gather.drivers()), "lock": encode(lock)}
        write_json(self.path / "environment.json", self.environment)

    def _beat(self) -> None:
        beat = self.path / HEARTBEAT
        while True:
            try:
                beat.touch()
            except OSError:
                pass  # whoever writes the record itself will say so
            if self._stop.wait(BEAT_SECONDS):
                return

    def _describe(self, recording: Recording) -> None:
        """``record.json`` and ``config.yaml`` from what was seen so far, and the imported files."""
        from traindx.core.observed.record import FilesImported
        from traindx.runs import facts as summaries
        from traindx.runs import yaml
        if self._threads:  # the code is known before the files that it lacks are looked for
            self._threads[0].join(codes.SECONDS)
        imported = recording.last(FilesImported)
        if imported is not None:
            base = Path(self.code.root) if self.code.root else self.base
            codes.keep_files(self.code, [*imported.files, *([imported.main] if imported.main else [])], base, self.path)
        found = summaries.facts_of(recording)
        write_json(self.path / "record.json", {"schema": SCHEMA, "code": asdict(self.code), **found})
        if found["torch"]:  # the parent does not import torch: the script's own process told
            write_json(self.path / "environment.json", self.environment | {"torch": found["torch"]["facts"]})
        settings = {"script": self.fields["script"], "argv": self.fields["argv"], **found["config"]}
        write_text(self.path / "config.yaml", yaml.dump(settings))
        self._fields_now(_code_fields(self.code))
        _point_at(found["checkpoints"], self.path / "ckpt", Path(self.fields["cwd"]))

    def _fields_now(self, fields: dict[str, Any]) -> None:
        self.fields |= fields
        self._write(self.fields)

    def _write(self, fields: dict[str, Any]) -> None:
        write_json(self.path / "run.json", fields)


def begin(runs_dir: Path, name: str, script: str, argv: Sequence[str], file: str | None = None) -> RunFolder:
    """Makes the folder; ``file`` is the script's, whose repository is recorded. Raises OSError where that is not permitted."""
    from traindx.runs.status import born
    now = _now()
    path = make_unique(runs_dir, f"{now:%Y-%m-%d-%H%M}-{slug(name)}")
    base = Path(file).resolve().parent if file else Path.cwd()
    run = RunFolder(path, {
        "schema": SCHEMA, "traindx": __version__, "name": name, "script": script, "argv": masked(argv), "cwd": os.getcwd(),
        "python": sys.version.split()[0], "pid": os.getpid(), "host": socket.gethostname(), "born": born(os.getpid()),
        "started": now.isoformat(timespec="seconds"), "status": "running"}, base)
    run._write(run.fields)
    write_text(path / "notes.md", NOTES)
    return run


def _now() -> datetime:
    return datetime.now().astimezone()


def make_unique(runs_dir: Path, stem: str) -> Path:
    """mkdir decides who gets a name, so that runs started in the same minute never share one."""
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


def status_of(outcome: Outcome) -> str:
    """``finished``, ``failed`` or ``killed at step k``."""
    if outcome.signal:
        return f"killed at step {outcome.recording.steps}"
    return "finished" if outcome.status == 0 else "failed"


def _code_fields(code: codes.Code) -> dict[str, Any]:
    return {"commit": code.commit, "branch": code.branch, "dirty": code.dirty}


def _point_at(found: dict[str, Any], folder: Path, cwd: Path) -> None:
    """``ckpt/best`` and ``ckpt/last`` lead to what the script itself saved: no second copy of gigabytes."""
    if not found["saved"]:
        return
    folder.mkdir(exist_ok=True)
    rows: dict[str, Any] = {"saved": found["saved"]}
    for which in ("best", "last"):
        path = found[which]
        rows[which] = path
        if path is None:
            continue
        link = folder / f"{which}{Path(path).suffix}"
        try:
            link.unlink(missing_ok=True)
            link.symlink_to(os.path.abspath(cwd / path))
        except OSError:
            pass  # no links on this file system: checkpoints.json says where it lies
    write_json(folder / "checkpoints.json", rows)


def write_json(path: Path, fields: Any) -> None:
    write_text(path, json.dumps(encode(fields), ensure_ascii=False, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Whole or not at all: a reader never meets half a file."""
    partial = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
