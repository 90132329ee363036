"""Whether a run still runs: by its process where that can be asked, by its heartbeat where it runs on another machine."""
from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

STALE_SECONDS = 60.0  # without a heartbeat: twelve were missed
RUNNING = "running"


def is_running(folder: Path, fields: Mapping[str, Any], processes: Iterable[Mapping[str, Any]] = (), now: float | None = None) -> bool:
    """``fields`` are those of run.json, ``processes`` others of the same run (the script's own), as ``{pid, host, born}``.

    A clock that was set back makes a heartbeat look as if it came from the future: that is not stale.
    """
    here = socket.gethostname()
    for process in (fields, *processes):
        if process.get("host") == here and isinstance(process.get("pid"), int) and _lives(process["pid"], process.get("born") or ""):
            return True
    if fields.get("host") in (None, here):
        return False
    try:
        beat = (folder / "heartbeat").stat().st_mtime
    except OSError:
        return False
    return (time.time() if now is None else now) - beat < STALE_SECONDS


def _lives(pid: int, since: str) -> bool:
    """Whether the process ``pid`` exists and is the one that was started then."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # somebody else's: it lives
    except OSError:
        return False
    return not since or born(pid) == since


def born(pid: int) -> str:
    """When the system started a process, as it counts itself; "" where it does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    fields = stat.rpartition(b")")[2].split()
    return "" if fields[0] == b"Z" else fields[19].decode()  # a zombie is dead
