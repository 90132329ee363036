"""Puts every probe on a torch that has just been imported. Every module here that has an ``install`` is one."""
from __future__ import annotations

import gc
import importlib
import os
import pkgutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from traindx import probes
from traindx.probes.recorder import Recorder
from traindx.probes.session import Session

# the seams, in this order; whatever else has an install() follows by name
SEAMS = ("modules", "losses", "backward", "optimizers", "loaders", "reads", "ops")


def install(recorder: Recorder, max_steps: int | None = None, looks: Mapping[str, Any] | None = None) -> Session:
    """Starts a session. Only one can be on at a time: starting another ends the first."""
    if Session.current is not None:
        Session.current.end("finished")
        Session.current.close()
    with _no_collection():  # of all that torch has just made
        return _install(Session(recorder, max_steps, looks))


def _install(session: Session) -> Session:
    others = sorted(m.name for m in pkgutil.iter_modules(probes.__path__) if m.name not in SEAMS)
    try:
        for name in SEAMS:
            importlib.import_module(f"{probes.__name__}.{name}").install(session)
    except BaseException:
        session.close()  # half a set of seams is none
        raise
    for name in others:
        _add(session, name)
    os.register_at_fork(after_in_child=lambda: _leave(session))
    Session.current = session
    return session


@contextmanager
def _no_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _add(session: Session, name: str) -> None:
    """A view that cannot be put on (another torch version) is left off, and said to be."""
    try:
        module = importlib.import_module(f"{probes.__name__}.{name}")
        if hasattr(module, "install") and name != "install":
            module.install(session)
    except Exception as problem:
        session.failed(name, problem)


def _leave(session: Session) -> None:
    """A forked child (a loader's worker) is not the run: it stays silent."""
    session.active = False
    session.recorder.forget()
    for trace in session.probes:
        tracer = getattr(trace, "tracer", None)
        if tracer is not None:
            tracer.disarm()
