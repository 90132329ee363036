"""Where the runs of an unfinished exam are kept, so that --resume can go on. They belong to one state of the code."""
from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from traindx.core.trials import Program

FILES = 2000  # that are looked at
SKIPPED = frozenset((".git", ".venv", "venv", "node_modules", "site-packages", "__pycache__", ".tox"))


def folder_for(program: Program) -> Path | None:
    """A private folder for this program as its code is now. None where none can be made.

    Not in the project: that is mounted below the runs' overlay while they go on.
    """
    base = Path(tempfile.gettempdir()) / f"traindx-exam-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    try:
        base.mkdir(mode=0o700, exist_ok=True)
        if hasattr(os, "getuid") and (base.is_symlink() or base.stat().st_uid != os.getuid()):
            return None  # somebody else's
        folder = base / fingerprint(program)
        folder.mkdir(exist_ok=True)
    except OSError:
        return None
    return folder


def fingerprint(program: Program) -> str:
    """Of the python files beside and below the script (size, time of change), and of the script's content."""
    script = Path(program.cwd, program.script) if program.script else None
    root = (script.parent if script else Path(program.cwd)).resolve()
    digest = hashlib.sha256(str((program, root)).encode())
    if script is not None and script.is_file():
        digest.update(script.read_bytes())
    for path in _python_files(root):
        found = path.stat()
        digest.update(f"{path}{found.st_size}{found.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]


def _python_files(root: Path) -> list[Path]:
    files: list[Path] = []
    for folder, inner, names in os.walk(root):
        inner[:] = sorted(set(inner) - SKIPPED)
        files += [path for name in sorted(names) if name.endswith(".py") and (path := Path(folder, name)).is_file()]
        if len(files) >= FILES:
            break
    return files[:FILES]


def forget(folder: Path | None) -> None:
    """After an exam that came to its end."""
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
