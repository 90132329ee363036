"""Where no kernel holds a re-run: an audit hook of Python refuses writes outside the trial's folder, with a clear message.

It sees what goes through Python's own calls. C libraries and child processes are not held: the report says so.
"""
from __future__ import annotations

import errno
import ipaddress
import os
import sys
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# event: which of its arguments are paths that are changed, and where the folder's descriptor stands
_CHANGED: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "os.remove": ((0,), (1,)), "os.rmdir": ((0,), (1,)), "os.mkdir": ((0,), (2,)), "os.chmod": ((0,), (2,)),
    "os.chown": ((0,), (3,)), "os.truncate": ((0,), ()), "os.utime": ((0,), (3,)), "os.rename": ((0, 1), (2, 3)),
    "os.link": ((1,), (3,)), "os.symlink": ((1,), (2,)), "shutil.rmtree": ((0,), ()), "sqlite3.connect": ((0,), ())}


def install_guard(folder: str, network: bool) -> None:
    """For good, in this process and in those that it forks."""
    allowed = (os.path.realpath(folder) + os.sep, os.sep + "dev" + os.sep)

    def check(path: Any) -> None:
        if isinstance(path, (str, bytes)) and path not in ("", b"", ":memory:"):
            real = os.path.realpath(os.fsdecode(path))
            if not real.startswith(allowed):
                raise PermissionError(errno.EACCES, "a re-run may not write here", real)

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            if isinstance(args[2], int) and args[2] & _WRITES:
                check(args[0])
        elif event in _CHANGED:
            paths, folders = _CHANGED[event]
            if not any(len(args) > at and args[at] not in (-1, None) for at in folders):  # shutil.rmtree was checked itself
                for at in paths:
                    check(args[at])
        elif event == "socket.connect" and not network and not _is_local(args[1]):
            raise OSError(errno.ENETUNREACH, "a re-run has no network")
    sys.addaudithook(hook)


def _is_local(address: Any) -> bool:
    if not isinstance(address, tuple):  # a socket in the file system
        return True
    host = str(address[0]).partition("%")[0]
    try:
        return host in ("", "localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
