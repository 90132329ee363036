"""Which files the program was made of: the user's own modules that were imported, the process, torch's switches."""
from __future__ import annotations

import os
import socket
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from traindx.core.observed.record import Began, FilesImported, TorchSeen
from traindx.probes import machine, sites
from traindx.probes.session import Probe, Session

FILES = 2000
_LIBRARY = tuple({os.path.realpath(path) + os.sep for key in ("stdlib", "platstdlib") if (path := sysconfig.get_path(key))})


def install(session: Session) -> None:
    session.add(Imports)


class Imports(Probe):
    """After the first step, and again at the end if something was imported since."""

    areas = ("record",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._files: tuple[str, ...] | None = None
        self._torch: TorchSeen | None = None
        self.session.emit(Began(key="began", pid=os.getpid(), host=socket.gethostname(), born=born(os.getpid())))

    def on_tick(self, step: int) -> None:
        if self._files is None:
            self.look()

    def at_end(self) -> None:
        self.look()

    def look(self) -> None:
        files = tuple(sorted(set(user_files())))[:FILES]
        if files != self._files:
            self._files = files
            main = getattr(sys.modules.get("__main__"), "__file__", None)
            self.session.emit(FilesImported(step=self.session.step, key="imports", files=files, main=main and os.path.realpath(main)))
        seen = TorchSeen(key="torch", facts=machine.torch_facts(), settings=machine.settings(), devices=devices())
        if seen != self._torch:
            self._torch = seen
            self.session.emit(seen)


def user_files() -> Iterator[str]:
    for module in list(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if not isinstance(file, str) or not file.endswith(".py") or "site-packages" in file or file.startswith(_LIBRARY):
            continue
        if sites.is_user(file):
            yield os.path.realpath(file)


def devices() -> tuple[str, ...]:
    """Names of the devices that torch has already started; starts none."""
    if not torch.cuda.is_initialized():
        return ()
    return tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))


def born(pid: int) -> str:
    """When the system started a process, as it counts itself; "" where it does not tell."""
    try:
        stat: Any = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return ""
    return stat.rpartition(b")")[2].split()[19].decode()
