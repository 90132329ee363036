"""What runs below us, what it uses, what this machine has left. Linux reads /proc; elsewhere less is known."""
from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def threads() -> int | None:
    """Threads of this process; None where that cannot be known."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return None


def below(process: int) -> list[int]:
    """All descendants, nearest first."""
    found: list[int] = []
    open_ones = [process]
    parents = {} if _CHILDREN else _children_by_parent()
    while open_ones:
        here = open_ones.pop(0)
        children = _children(here) if _CHILDREN else parents.get(here, [])
        found += children
        open_ones += children
    return found


def children(process: int) -> list[int]:
    return _children(process) if _CHILDREN else _children_by_parent().get(process, [])


def _children(process: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            with suppress(OSError):
                found += map(int, Path(f"/proc/{process}/task/{thread}/children").read_text().split())
    return found


def _children_by_parent() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError, IndexError, ValueError):
                parent = int(Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[1])
                found.setdefault(parent, []).append(int(name))
    return found


def end_all_below(process: int, group: int | None = None, seconds: float = 5.0) -> None:
    """Kills every descendant of ``process`` (ourselves), also those that started a session of their own, and waits."""
    if group is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for one in below(process):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def resident(processes: Iterable[int]) -> int:
    """Bytes; pages that several share are counted for each: never less than what is used."""
    total = 0
    for one in processes:
        with suppress(OSError, IndexError, ValueError):
            total += int(Path(f"/proc/{one}/statm").read_text().split()[1]) * _PAGE
    return total


def resident_shared_once(processes: Iterable[int]) -> int:
    """Bytes; a page that n processes share counts 1/n for each. Slower than :func:`resident`."""
    total = 0
    for one in processes:
        with suppress(OSError, StopIteration, ValueError, IndexError):
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
            total += int(next(line for line in lines if line.startswith("Pss:")).split()[1]) * 1024
    return total


def cpu_seconds(processes: Iterable[int]) -> float:
    """Of running processes and of their children that have ended."""
    total = 0
    for one in processes:
        with suppress(OSError, IndexError, ValueError):
            total += sum(map(int, Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return total / _TICK


# -- the machine ------------------------------------------------------------------------------------------------------

def cores() -> int:
    """Cores that we may use: affinity, and the quota of a container."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            count = min(count, max(1, int(quota) // int(period)))
    return max(1, count)


def free_memory() -> int | None:
    """Bytes that a new process could use without swapping; None where that is not known."""
    found: list[int] = []
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        found.append(int(next(line for line in lines if line.startswith("MemAvailable")).split()[1]) * 1024)
    with suppress(OSError, ValueError):
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        if limit != "max":
            found.append(int(limit) - int(Path("/sys/fs/cgroup/memory.current").read_text()))
    return min(found) if found else None
