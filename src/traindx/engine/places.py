"""Which folders are the program's own: there it may write in a re-run, into a layer or a copy that is thrown away."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from traindx.core.trials import Program

TEMPORARY = ("/tmp", "/var/tmp")
# never a project, and never to be covered whole
_SYSTEM = frozenset(("/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/mnt", "/opt", "/proc", "/root", "/run", "/sbin",
                     "/srv", "/sys", "/usr", "/usr/local", "/var", "/Users", "/System", "/Library", "/Applications", "/Volumes", "/private"))


@dataclass(frozen=True)
class Places:
    """Real paths. ``projects``: of the script and of the working directory (often one); ``others``: HOME, the
    temporary folders and those that the arguments name."""

    cwd: str
    projects: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def outermost(self) -> tuple[str, ...]:
        """All of them without those that lie in another one, parents first."""
        found: list[str] = []
        for folder in sorted({*self.projects, *self.others}):
            if not any(beneath(folder, other) for other in found):
                found.append(folder)
        return tuple(found)

    def shown(self, path: str) -> str:
        """A path as the user would write it: from the working directory, else from HOME, else whole."""
        if beneath(path, self.cwd):
            return os.path.relpath(path, self.cwd)
        home = home_folder()
        return os.path.join("~", os.path.relpath(path, home)) if home and beneath(path, home) else path


def places_of(program: Program) -> Places:
    cwd = os.path.realpath(program.cwd)
    projects = dict.fromkeys(map(project_of, (_code_folder(program, cwd), cwd)))
    others = [*filter(None, [home_folder()]), *_temporary(), *_named(program.args, cwd)]
    allowed = [folder for folder in others if folder not in _SYSTEM or folder == home_folder()]
    return Places(cwd, tuple(folder for folder in projects if folder not in _SYSTEM or folder == home_folder()), tuple(dict.fromkeys(allowed)))


def _code_folder(program: Program, cwd: str) -> str:
    if program.script is not None:
        path = os.path.realpath(os.path.join(cwd, program.script))
        return path if os.path.isdir(path) else os.path.dirname(path)
    top = str(program.module).split(".")[0]
    spec = PathFinder.find_spec(top, [cwd])  # a module that is installed is no project
    return os.path.dirname(os.path.realpath(spec.origin)) if spec and spec.origin else cwd


def project_of(folder: str) -> str:
    """The root of the git repository around ``folder``, or the folder itself. HOME with its dot-files under git, or
    what lies above it, is no project."""
    home = home_folder()
    for path in (folder, *map(str, Path(folder).parents)):
        if path in _SYSTEM or path in TEMPORARY or (home and beneath(home, path)):
            break
        if os.path.exists(os.path.join(path, ".git")):
            return path
    return folder


def home_folder() -> str | None:
    home = os.path.realpath(os.path.expanduser("~"))
    return home if os.path.isdir(home) and home != "/" else None


def _temporary() -> list[str]:
    return [os.path.realpath(folder) for folder in (*TEMPORARY, tempfile.gettempdir()) if os.path.isdir(folder)]


def _named(args: Iterable[str], cwd: str) -> Iterator[str]:
    """Folders that the arguments name (``--out=/data/run1``: the part of it that exists) and that we may write to."""
    for word in args:
        value = word.partition("=")[2] if word.startswith("-") else word
        if os.sep not in value or "://" in value:
            continue
        path = os.path.realpath(os.path.join(cwd, os.path.expanduser(value)))
        while not os.path.isdir(path):
            path = os.path.dirname(path)
        if os.access(path, os.W_OK):
            yield path


def beneath(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies in it; both real paths."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
