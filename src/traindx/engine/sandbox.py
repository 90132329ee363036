"""Keeps a re-run from changing anything: the project's files, other files, accounts on the network.

Three ways, the first that works is taken (``way_for`` tries them in a forked probe):

- *overlay* (Linux): a layer over the project, HOME and the temporary folders takes all writes; everything else is
  read-only; the network is a loopback.
- *copy* (Linux with Landlock, where user namespaces are forbidden): the program runs in a copy of its project;
  the kernel refuses writes elsewhere.
- *guard* (other systems): the program runs in a copy, and Python refuses writes elsewhere. C libraries and child
  processes are not held by that.

It is a fence against accidents, not against programs that mean harm.
"""
from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from traindx.core.trials import Program
from traindx.engine import linux
from traindx.engine.copying import Copier
from traindx.engine.guard import install_guard
from traindx.engine.places import TEMPORARY, Places, beneath, home_folder, places_of

Mode = Literal["overlay", "copy", "guard"]
MODES: tuple[Mode, ...] = ("overlay", "copy", "guard")
MOST_SHOWN = 200  # files in the list of what would have been written
_SHM = "/dev/shm"
_PSEUDO = frozenset(("proc", "sysfs", "devtmpfs", "devpts", "cgroup", "cgroup2", "mqueue", "securityfs", "debugfs", "tracefs", "autofs"))
OWN, TEMP, OUTPUT = "own", "tmp", "output.txt"

Layer = tuple[str, int]  # a covered folder, and the descriptor of the folder that took the writes


@dataclass(frozen=True)
class Way:
    """How a re-run is kept apart. ``user``: the overlay needs a user namespace, for we are not root."""

    mode: Mode
    user: bool = False


@dataclass
class Sandbox:
    """One re-run's. Made and later emptied by its warden; ``enter`` is called in the child.

    ``folder`` is the trial's own: ``own`` (kept), ``tmp``, ``output.txt``, and the layers or copies.
    """

    way: Way
    places: Places
    folder: str
    network: bool = False
    layers: list[Layer] = field(default_factory=list)
    copies: list[tuple[str, str, Copier]] = field(default_factory=list)  # original, copy

    def prepare(self) -> None:
        """Raises copying.TooLarge."""
        for name in (OWN, TEMP):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        if self.way.mode != "overlay":
            self._copy()

    def enter(self) -> list[Layer]:
        """For good. Raises OSError where it cannot be done; then nothing may be run."""
        for name in ("TMPDIR", "TEMP", "TMP"):
            os.environ[name] = os.path.join(self.folder, TEMP)
        tempfile.tempdir = None  # it was worked out before; multiprocessing would use a place where it may not write
        if self.way.mode == "overlay":
            layers = enter_overlay(self.way.user, self.places, self.folder, self.network)
        else:
            layers = []
            self._enter_copy()
        os.chdir(self.inside(self.places.cwd))
        return layers

    # -- paths --------------------------------------------------------------------------------------------------------

    def inside(self, path: str) -> str:
        """Where the program finds what lies at ``path``."""
        for original, copy, _ in self.copies:
            if beneath(path, original):
                return copy + path[len(original):]
        return path

    def outside(self, words: str) -> str:
        """Text in which paths of copies are turned back into those that the user knows."""
        for original, copy, _ in self.copies:
            words = words.replace(copy, original)
        return words

    def program(self, program: Program) -> Program:
        """The program with paths of the copies for its own."""
        if not self.copies:
            return replace(program, cwd=self.places.cwd)
        script = program.script and self.inside(os.path.realpath(os.path.join(self.places.cwd, program.script)))
        return replace(program, script=script, cwd=self.inside(self.places.cwd), args=tuple(map(self._argument, program.args)))

    def _argument(self, word: str) -> str:
        """``--out=/project/x`` and ``/project/x`` point into the copy; relative paths do so anyway."""
        name, equals, value = word.rpartition("=")
        return name + equals + (self.inside(os.path.realpath(value)) if os.path.isabs(value) else value)

    # -- copy and guard -----------------------------------------------------------------------------------------------

    def _copy(self) -> None:
        """Projects whole; of HOME and the temporary folders only the top, with links to what is there."""
        linked = self.way.mode == "copy"
        broad = [folder for folder in (home_folder(), *map(os.path.realpath, TEMPORARY)) if folder]
        wanted = [(folder, folder not in broad) for folder in self.places.projects]
        wanted += [(folder, False) for folder in broad[:1] if folder not in self.places.projects]
        for number, (folder, deep) in enumerate(sorted(wanted, key=lambda pair: -len(pair[0]))):
            copier, copy = Copier(linked, deep), os.path.join(self.folder, f"copy{number}")
            copier.copy(folder, copy)
            self.copies.append((folder, copy, copier))

    def _enter_copy(self) -> None:
        home = home_folder()
        if home:
            os.environ["HOME"] = self.inside(home)
        sys.path[:] = [self.inside(path) for path in sys.path]
        if os.environ.get("PYTHONPATH"):
            parts = os.environ["PYTHONPATH"].split(os.pathsep)
            os.environ["PYTHONPATH"] = os.pathsep.join(map(self.inside, parts))
        if self.way.mode == "copy":
            linux.landlock([self.folder, _SHM], connect=self.network)
        else:
            install_guard(self.folder, self.network)

    # -- afterwards ---------------------------------------------------------------------------------------------------

    def written(self) -> list[str]:
        """Files that the program would have written, made or removed, as the user would name them."""
        paths = [os.path.join(place, path) for place, path in self._writes()]
        found = {self.places.shown(path) for path in paths if _counts(path) and not beneath(path, os.path.dirname(self.folder))}
        return sorted(found)[:MOST_SHOWN]

    def _writes(self) -> Iterator[tuple[str, str]]:
        for place, layer in self.layers:
            for path in writes_in(layer):
                yield place, path
        for original, copy, copier in self.copies:
            for path in copier.changed(copy):
                yield original, path

    def clean(self) -> None:
        """Leaves what is to be kept: the folder ``own``, where there is something in it."""
        for original, copy, _ in self.copies:
            _rename_in_records(os.path.join(self.folder, OWN), copy, original)
        for _, layer in self.layers:
            os.close(layer)
        self.layers.clear()
        for name in os.listdir(self.folder):
            if name != OWN:
                remove_tree(os.path.join(self.folder, name))
        with suppress(OSError):
            os.rmdir(os.path.join(self.folder, OWN))
            os.rmdir(self.folder)


def _counts(path: str) -> bool:
    """Compiled Python is written by any run, and says nothing."""
    return "__pycache__" not in path.split(os.sep) and not path.endswith(".pyc")


def _rename_in_records(folder: str, copy: str, original: str) -> None:
    for here, _, names in os.walk(folder):
        for name in names:
            if name.endswith((".jsonl", ".json")):
                path = os.path.join(here, name)
                with open(path, encoding="utf-8", errors="surrogateescape") as file:
                    words = file.read()
                if copy in words:
                    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                        file.write(words.replace(copy, original))


def remove_tree(path: str) -> None:
    """Also what has no permission, as an overlay leaves a folder; touches nothing outside of ``path``."""
    if os.path.isdir(path) and not os.path.islink(path):
        _open_up(path)
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            os.remove(path)


def _open_up(folder: str) -> None:
    with suppress(OSError):
        if os.lstat(folder).st_mode & 0o700 != 0o700:
            os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    _open_up(entry.path)


# -- overlay ----------------------------------------------------------------------------------------------------------

def enter_overlay(user: bool, places: Places, folder: str, network: bool) -> list[Layer]:
    """In this order: later steps forbid earlier ones, and a mount hides what lies under it."""
    linux.leave_namespaces(user, not network)
    opened = _opened(_mounts_over((*places.outermost, *places.projects)))
    own = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    mounted = {path for path, _ in linux.mount_points()}
    layers: list[Layer] = []
    for number, (path, lower) in enumerate(opened):
        if path not in mounted and any(beneath(path, covered) for covered, _ in layers):
            continue
        if upper := _cover(path, lower, folder, number):
            layers.append((path, upper))
        elif path in places.projects:
            raise OSError(f"no overlay over {path}")
        elif any(beneath(path, covered) for covered, _ in layers):
            linux.bind(lower, path)  # it is hidden by the overlay above it; so it can be read
    linux.bind(own, folder)
    writable = [*(path for path, _ in layers), folder]
    if os.path.isdir(_SHM):
        linux.mount("tmpfs", _SHM, "tmpfs")  # shared memory that a killed program leaves is gone with it
        writable.append(_SHM)
    _forbid_the_rest(writable)
    if user and os.getuid() != 0:
        linux.drop_capabilities()
    for descriptor in (own, *(lower for _, lower in opened)):
        os.close(descriptor)
    return layers


def _mounts_over(folders: Sequence[str]) -> list[str]:
    """The folders, and what is mounted beneath them, parents first."""
    mounted = [path for path, kind in linux.mount_points()
               if kind not in _PSEUDO and any(beneath(path, folder) for folder in folders)]
    return sorted({*folders, *(path for path in mounted if os.path.isdir(path))})


def _opened(paths: Sequence[str]) -> list[Layer]:
    found = []
    for path in paths:
        with suppress(OSError):
            found.append((path, os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)))
    return found


def _cover(path: str, lower: int, folder: str, number: int) -> int | None:
    """An overlay at ``path``, its writes on disk in the trial's folder, else (the disk is an overlay itself, or
    beneath ``path``) in memory. The descriptor of the folder that takes them."""
    with suppress(OSError):
        return _overlay(path, lower, os.path.join(folder, f"layer{number}"))
    memory = os.path.join(folder, "memory")
    with suppress(OSError):
        if not os.path.isdir(memory):
            os.mkdir(memory)
            linux.mount("tmpfs", memory, "tmpfs")
        return _overlay(path, lower, os.path.join(memory, f"layer{number}"))
    return None


def _overlay(path: str, lower: int, layer: str) -> int:
    upper, work = (os.path.join(layer, name) for name in ("upper", "work"))
    for name in (layer, upper, work):
        os.mkdir(name)
    looks = os.stat(f"/proc/self/fd/{lower}")
    upper_fd = os.open(upper, os.O_RDONLY | os.O_CLOEXEC)
    work_fd = os.open(work, os.O_PATH | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            os.chown(upper, looks.st_uid, looks.st_gid)
        os.chmod(upper, stat.S_IMODE(looks.st_mode))
        os.utime(upper, ns=(looks.st_atime_ns, looks.st_mtime_ns))
        linux.overlay(lower, upper_fd, work_fd, path)
    except OSError:
        os.close(upper_fd)
        raise
    finally:
        os.close(work_fd)
    return upper_fd


def _forbid_the_rest(writable: Sequence[str]) -> None:
    """Read-only mounts (Linux 5.12) also hold modes and times; Landlock also holds the mounts themselves. One of
    them is a must."""
    held = False
    try:
        linux.read_only_but(writable)
        held = True
    except OSError:
        if not linux.landlock_version():
            raise
    version = linux.landlock_version()
    if version >= 3 or (version and not held):
        linux.landlock(writable)


def writes_in(layer: int) -> Iterator[str]:
    """Paths in the upper folder of an overlay; a removed file is a device 0:0 there."""
    for here, folders, names, descriptor in os.fwalk(".", dir_fd=layer):
        at = os.path.normpath(here)
        if not folders and not names and at != ".":
            yield at + os.sep
        for name in names:
            with suppress(OSError):
                found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
                gone = stat.S_ISCHR(found.st_mode) and found.st_rdev == 0
                yield os.path.normpath(os.path.join(at, name)) + (" (removed)" if gone else "")


# -- which way works --------------------------------------------------------------------------------------------------

def ways(only: Mode | None = None) -> list[Way]:
    """In the order of preference. Root tries without a user namespace first: in one, files of other owners would be
    nobody's."""
    overlays = [Way("overlay", user) for user in ((False, True) if os.getuid() == 0 else (True,))]
    found = [*(overlays if linux.on_linux() else ()), *([Way("copy")] if linux.landlock_version() else ()), Way("guard")]
    return [way for way in found if only in (None, way.mode)]


def way_for(program: Program, folder: str, only: Mode | None = None) -> Way | None:
    """The first way that really holds, tried in forked children with scratch files in ``folder``. None: ``only`` was
    asked for and does not work here. The calling process must have one thread."""
    for way in ways(only):
        if way.mode == "guard" or _holds(way, program, folder):
            return way
    return None


def _holds(way: Way, program: Program, folder: str) -> bool:
    """A child enters and writes into the project and beside its own folder; then nothing of that may be there."""
    scratch = tempfile.mkdtemp(prefix="probe-", dir=folder)
    try:
        places = places_of(program)
        if way.mode == "copy":  # the copy itself is made, and may be refused, by each trial
            places = replace(places, projects=())
        marks = [os.path.join(place, f".traindx-probe-{os.getpid()}") for place in (*places.projects, scratch)]
        sandbox = Sandbox(way, places, os.path.join(scratch, "trial"))
        sandbox.prepare()
        child = os.fork()
        if child == 0:
            os._exit(_try(sandbox, marks))
        return _status_within(child, 10.0) == 0 and not any(map(os.path.exists, marks))
    except OSError:
        return False
    finally:
        remove_tree(scratch)


def _try(sandbox: Sandbox, marks: Sequence[str]) -> int:
    try:
        sandbox.enter()
        for mark in marks:
            with suppress(OSError):
                open(mark, "w", encoding="utf-8").close()
        open(os.path.join(sandbox.folder, TEMP, "inside"), "w", encoding="utf-8").close()
    except BaseException:
        return 1
    return 0


def _status_within(child: int, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.002)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return None
