"""A copy of a project for one re-run: small files copied, large ones and foreign trees linked where links are safe."""
from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from traindx.engine.places import beneath

LINK_FROM = 32 << 20  # bytes: a larger file is linked
MOST_FILES, MOST_BYTES = 20_000, 1 << 30
_FOREIGN = (".git", ".hg", "node_modules", "__pycache__")

State = tuple[int, int, int]


class TooLarge(Exception):
    """The project is not to be copied for each re-run."""

    def __init__(self, folder: str, count: int, size: int) -> None:
        super().__init__(
            f"{folder} is too large to be copied for each re-run (more than {count} files or {size >> 20} MiB; the limits are "
            f"{MOST_FILES} files and {MOST_BYTES >> 20} MiB, of our choosing). Move data out of the project, start the program "
            f"in a smaller folder, or use a Linux system that permits user namespaces, where nothing is copied.")


@dataclass
class Copier:
    """``links``: whether a link to the original is safe, because writing through it is refused by the kernel."""

    links: bool
    deep: bool = True  # else only the top is copied and its folders are linked
    files: int = 0
    size: int = 0
    states: dict[str, State] = field(default_factory=dict)

    def copy(self, source: str, target: str) -> None:
        """Raises TooLarge."""
        os.makedirs(target, exist_ok=True)
        self._folder(source, target, source)
        self.states = dict(states_in(target))

    def _folder(self, source: str, target: str, top: str) -> None:
        try:
            entries = list(os.scandir(source))
        except OSError:  # what the program may not read either
            return
        for entry in entries:
            try:
                self._entry(entry, os.path.join(target, entry.name), top)
            except (OSError, shutil.Error):
                continue
        shutil.copystat(source, target)

    def _entry(self, entry: os.DirEntry[str], target: str, top: str) -> None:
        if entry.is_symlink():
            link = os.readlink(entry.path)
            inside = not os.path.isabs(link) and beneath(os.path.realpath(entry.path), top)
            os.symlink(link if inside else os.path.realpath(entry.path), target)
        elif entry.is_dir():
            if self.deep and not _is_foreign(entry):
                os.mkdir(target)
                self._folder(entry.path, target, top)
            elif self.links or not self.deep or os.path.isfile(os.path.join(entry.path, "pyvenv.cfg")):
                os.symlink(entry.path, target)
        elif entry.is_file():
            self._file(entry, target, top)

    def _file(self, entry: os.DirEntry[str], target: str, top: str) -> None:
        size = entry.stat().st_size
        self.files += 1
        if self.links and size > LINK_FROM:
            os.symlink(entry.path, target)
            return
        self.size += size
        if self.files > MOST_FILES or self.size > MOST_BYTES:
            raise TooLarge(top, self.files - 1, min(self.size, MOST_BYTES))
        shutil.copy2(entry.path, target)

    def changed(self, target: str) -> Iterator[str]:
        """Paths from ``target`` that were written, made or removed since the copy was made."""
        now = dict(states_in(target))
        for path in sorted({*now, *self.states}):
            if path not in now:
                yield f"{path} (removed)"
            elif now[path] != self.states.get(path):
                yield path


def _is_foreign(entry: os.DirEntry[str]) -> bool:
    """Not the user's own: history, environments, and other file systems."""
    return entry.name in _FOREIGN or os.path.isfile(os.path.join(entry.path, "pyvenv.cfg")) or os.path.ismount(entry.path)


def states_in(folder: str) -> Iterator[tuple[str, State]]:
    """(path from ``folder``, (size, time of change in ns, mode)) of all that is no folder."""
    for here, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(here, name)
            try:
                found = os.lstat(path)
            except OSError:
                continue
            if not stat.S_ISDIR(found.st_mode):
                yield os.path.relpath(path, folder), (found.st_size, found.st_mtime_ns, found.st_mode)
