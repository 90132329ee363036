"""The system calls of Linux that a re-run rests on and that Python does not offer; by ctypes, with errors as OSError."""
from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

NEW_NAMESPACE_MOUNT, NEW_NAMESPACE_USER, NEW_NAMESPACE_NET = 0x20000, 0x10000000, 0x40000000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
_READ_ONLY, _AT_RECURSIVE = 1, 0x8000
_MOUNT_SETATTR, _RULESET, _ADD_RULE, _RESTRICT, _CAPSET = 442, 444, 445, 446, {"x86_64": 126, "aarch64": 91}
_PARENT_DEATH_SIGNAL, _SUBREAPER, _NO_NEW_PRIVILEGES = 1, 36, 38
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1
# rights of Landlock: everything that writes; reading, listing and executing stay free
_WRITE_FILE, _TRUNCATE, _REFER = 1 << 1, 1 << 14, 1 << 13
_WRITES = _WRITE_FILE | _TRUNCATE | _REFER | sum(1 << bit for bit in range(4, 13))
_CONNECT = 2


def on_linux() -> bool:
    return sys.platform == "linux"


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


# -- processes --------------------------------------------------------------------------------------------------------

def die_with_parent(number: signal.Signals, parent: int) -> None:
    """We get a signal when ``parent`` is gone, also where it is gone already. No effect elsewhere than on Linux."""
    if not on_linux():
        return
    _checked(_libc().prctl(_PARENT_DEATH_SIGNAL, number, 0, 0, 0), "prctl")
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def adopt_orphans() -> None:
    """Descendants whose parent ends become our children, so that we can end them."""
    if on_linux():
        _checked(_libc().prctl(_SUBREAPER, 1, 0, 0, 0), "prctl")


def drop_capabilities() -> None:
    """What a process holds in its own user namespace would let it pass over file modes."""
    number = _CAPSET.get(os.uname().machine)
    if number is not None:
        header = struct.pack("Ii", 0x20080522, 0)
        _checked(_libc().syscall(number, header, struct.pack("6I", *[0] * 6)), "capset")


# -- namespaces and mounts --------------------------------------------------------------------------------------------

def leave_namespaces(user: bool, net: bool) -> None:
    """A mount namespace of our own; ``user``: by a user namespace (no privilege needed, one thread only), in which
    we keep our uid; ``net``: and a network that has nothing but its own loopback."""
    uid, gid = os.getuid(), os.getgid()
    flags = NEW_NAMESPACE_MOUNT | (NEW_NAMESPACE_USER if user else 0) | (NEW_NAMESPACE_NET if net else 0)
    _checked(_libc().unshare(flags), "unshare")
    if user:
        for name, words in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(words)
    mount(None, "/", None, _RECURSIVE | _PRIVATE)
    if net:
        _loopback_up()


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(control, _GET_FLAGS, request))[1]
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sH14x", b"lo", flags | _UP))


def mount(source: str | None, target: str, kind: str | None, flags: int = 0, options: str | None = None) -> None:
    def raw(words: str | None) -> bytes | None:
        return None if words is None else os.fsencode(words)
    result = _libc().mount(raw(source), raw(target), raw(kind), ctypes.c_ulong(flags), raw(options))
    _checked(result, f"mount {target}")


def overlay(lower: int, upper: int, work: int, target: str) -> None:
    """Folders by descriptor: no character of a path can be taken for a separator, and what has been mounted over
    a path meanwhile does not matter."""
    folders = f"lowerdir=/proc/self/fd/{lower},upperdir=/proc/self/fd/{upper},workdir=/proc/self/fd/{work}"
    mount("overlay", target, "overlay", 0, folders + ",userxattr")


def bind(source: int, target: str) -> None:
    mount(f"/proc/self/fd/{source}", target, None, _BIND | _RECURSIVE)


def read_only_but(writable: Iterable[str]) -> None:
    """Everything that is mounted becomes read-only in this namespace, except these mount points."""
    _mount_setattr("/", _AT_RECURSIVE, _READ_ONLY, 0)
    for path in writable:
        _mount_setattr(path, 0, 0, _READ_ONLY)


def _mount_setattr(path: str, flags: int, to_set: int, to_clear: int) -> None:
    attributes = struct.pack("QQQQ", to_set, to_clear, 0, 0)
    result = _libc().syscall(_MOUNT_SETATTR, -100, os.fsencode(path), flags, attributes, len(attributes))
    _checked(result, f"mount_setattr {path}")


def mount_points() -> list[tuple[str, str]]:
    """(path, kind of file system), in the order of mounting."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            path = left.split()[4].encode("utf-8", "surrogateescape").decode("unicode_escape").encode("latin-1")
            found.append((os.fsdecode(path), right.split()[0]))
    return found


# -- Landlock ---------------------------------------------------------------------------------------------------------

def landlock_version() -> int:
    """0 where there is none. 2: renaming across folders, 3: truncation, 4: TCP."""
    if not on_linux():
        return 0
    return max(0, int(_libc().syscall(_RULESET, None, 0, 1)))


def landlock(folders: Iterable[str], devices: str | None = "/dev", connect: bool = True) -> None:
    """From now on, for us and all that we start: writing only beneath ``folders``, and into files that exist beneath
    ``devices``; without ``connect``, no TCP connection. Modes and times of files are not covered by Landlock."""
    version = _checked(landlock_version() or -1, "landlock")
    writes = _WRITES & ~(0 if version >= 2 else _REFER) & ~(0 if version >= 3 else _TRUNCATE)
    handled = struct.pack("QQ", writes, 0 if connect or version < 4 else _CONNECT)
    rules = _checked(_libc().syscall(_RULESET, handled, 16 if version >= 4 else 8, 0), "landlock")
    try:
        for folder in folders:
            _allow(rules, folder, writes)
        if devices is not None:
            _allow(rules, devices, writes & (_WRITE_FILE | _TRUNCATE))
        _checked(_libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")
        _checked(_libc().syscall(_RESTRICT, rules, 0), "landlock")
    finally:
        os.close(rules)


def _allow(rules: int, folder: str, rights: int) -> None:
    try:
        opened = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        _checked(_libc().syscall(_ADD_RULE, rules, 1, struct.pack("=Qi", rights, opened), 0), f"landlock {folder}")
    finally:
        os.close(opened)
