"""Watching from within a program that already runs: what was made and imported before is taken in too."""
from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch.optim import Optimizer

from traindx.probes import sites
from traindx.probes.install import install as install_probes
from traindx.probes.optimizers import announce
from traindx.probes.recorder import Recorder
from traindx.probes.session import Session

_PATCHED = (torch, torch.nn.functional, torch.nn.utils)  # whose functions people import by name


def attach(optimizers: Any) -> Session:
    """A session that records into memory, until it is closed. ``optimizers`` (one or several) are known from the start."""
    session = install_probes(Recorder(None))
    _replace_imported_names(session)
    for optimizer in _several(optimizers):
        announce(optimizer, session, None)
    # a loop that already has an optimizer must not take each backward for a step
    session.optimizers += sum(1 for _ in _optimizers_alive())
    return session


def _several(optimizers: Any) -> Iterable[Optimizer]:
    if optimizers is None:
        return ()
    return (optimizers,) if isinstance(optimizers, Optimizer) else optimizers


def _optimizers_alive() -> Iterator[Optimizer]:
    for thing in gc.get_objects():
        if issubclass(type(thing), Optimizer):  # its type alone: asking the object could run the user's code
            yield thing


def _replace_imported_names(session: Session) -> None:
    """``from torch.nn.functional import cross_entropy`` earlier kept the original: it is swapped meanwhile."""
    functions = [function for owner in _PATCHED for function in vars(owner).values() if _is_ours(function)]
    ours = {id(function.__wrapped__): function for function in functions}
    for module in list(sys.modules.values()):
        if not _is_users(module):
            continue
        for name, value in list(vars(module).items()):
            replacement = ours.get(id(value))
            if replacement is not None:
                setattr(module, name, replacement)
                session.stack.callback(setattr, module, name, value)


def _is_ours(function: Any) -> bool:
    return (isinstance(function, FunctionType) and hasattr(function, "__wrapped__")
            and function.__code__.co_filename.startswith(str(Path(sites.__file__).parent)))


def _is_users(module: ModuleType) -> bool:
    if getattr(module, "__name__", "") == "__main__":
        return True
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and sites.is_user(file)
