"""What was read of a large file of metrics is kept in the user's cache: it is read once, and a file that grows is read on from there."""
from __future__ import annotations

import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from traindx.core.recording import BROKEN
from traindx.runs.curves import Curves
from traindx.runs.folder import write_text

LARGE = 32 * 2**20  # bytes of a file whose reading is told and kept; a smaller one is read in a few seconds
MOST = 64  # files that are kept, the newest
PIECE = 2**23  # bytes between two reports of progress
OFTEN = 2**28  # bytes between two times that it is kept
SCHEMA = 1
Progress = Callable[[float], None]  # the share that has been read


def opened(folder: Path) -> Curves:
    """The curves of a run as far as they are known from earlier; what is new is still to be read."""
    curves = Curves(folder)
    try:
        if (place := _place(folder)) is not None and (state := json.loads(place.read_bytes()))["schema"] == SCHEMA:
            curves.resume(state)
    except (OSError, *BROKEN):
        return Curves(folder)
    return curves


def keep(curves: Curves) -> None:
    """Writes down how far a large file has been read. A cache that cannot be written is no cache."""
    place = _place(curves.folder)
    if curves.at < LARGE or place is None:
        return
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_text(place, json.dumps({"schema": SCHEMA, **curves.state}, separators=(",", ":")))
        for old in sorted(place.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)[:-MOST]:
            old.unlink()
    except OSError:
        pass


def complete(folder: Path, progress: Progress | None = None) -> Curves:
    """The curves of a run that is over, or as far as it has come."""
    curves = opened(folder)
    kept = curves.at
    while curves.read(PIECE):
        if progress is not None and curves.at > LARGE:
            progress(curves.share)
        if curves.at - kept > OFTEN:  # who breaks off has not read in vain
            kept = curves.at
            keep(curves)
    if curves.at > kept:
        keep(curves)
    return curves


def _place(folder: Path) -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = base if os.path.isabs(base) else os.path.expanduser("~/.cache")
    if not os.path.isabs(root):  # a user without a home
        return None
    name = sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
    return Path(root, "traindx", "curves", f"{name}.json")
