"""Ranks that the program starts itself (a launcher's subprocesses, spawned processes) are watched as it is, each in a folder of its own.

What our own start put into the environment, they are given too; everything else that the program starts is left alone.
"""
from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from multiprocessing import get_start_method
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from traindx.probes import patching, sites
from traindx.probes.session import Session

RANKS = "ranks"
NAMES = ("RANK", "LOCAL_RANK")
SPAWN = "torch.multiprocessing.spawn"


def pass_on(session: Session, settings: Mapping[str, Any], boot: str) -> None:
    """From now on, until the session closes. ``boot`` is the folder that python is to import first."""
    watched = Watched(settings, boot)
    patching.replace(session.stack, subprocess.Popen, "__init__", lambda original: _observed_popen(original, watched))
    patching.replace(session.stack, BaseProcess, "start", lambda original: _observed_start(original, watched))


class Watched:
    """The environment of a process that is to be watched."""

    def __init__(self, settings: Mapping[str, Any], boot: str) -> None:
        self._settings = settings
        self._boot = boot
        self._numbers = count(1)
        self._pid = os.getpid()

    def environment(self, before: Mapping[str, str], rank: str | None) -> dict[str, str]:
        """What to add to ``before``; {} where there is no folder to record into, or in a process that was forked meanwhile."""
        if os.getpid() != self._pid:
            return {}
        home = Path(self._settings["folder"]) / RANKS / (rank or f"spawned-{next(self._numbers)}")
        with suppress(OSError):
            home.mkdir(parents=True, exist_ok=True)
            path = os.pathsep.join(filter(None, [self._boot, before.get("PYTHONPATH")]))
            return {"TRAINDX_BOOT": json.dumps({**self._settings, "folder": str(home)}), "PYTHONPATH": path}
        return {}


def rank_in(environment: Mapping[str, str]) -> str | None:
    """The rank that a process is started as; None where it is none, or has only inherited ours."""
    for name in NAMES:
        if (rank := environment.get(name)) is not None:
            return rank if rank.isdigit() and rank != os.environ.get(name) else None
    return None


def _observed_popen(original: Any, watched: Watched) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        with suppress(Exception):
            given = kwargs.get("env")
            if isinstance(given, Mapping) and (rank := rank_in(given)) is not None:
                kwargs = {**kwargs, "env": {**given, **watched.environment(given, rank)}}
        original(self, *args, **kwargs)
    return patching.dressed(__init__, original)


def _observed_start(original: Any, watched: Watched) -> Any:
    def start(process: Any, *args: Any, **kwargs: Any) -> Any:
        if not _may_be_a_rank(process):
            return original(process, *args, **kwargs)
        with _for_a_moment(watched.environment(os.environ, None)):
            return original(process, *args, **kwargs)
    return patching.dressed(start, original)


def _may_be_a_rank(process: Any) -> bool:
    """A new interpreter that is to run the user's function; whether it is a rank it says itself."""
    try:
        method = getattr(process, "_start_method", None) or get_start_method()
        target = process._target
        code = getattr(target, "__code__", None)
        return method == "spawn" and (getattr(target, "__module__", "") == SPAWN or (code is not None and sites.is_user(code.co_filename)))
    except Exception:
        return False


@contextmanager
def _for_a_moment(added: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in added}
    os.environ.update(added)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
