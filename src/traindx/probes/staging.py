"""Tracing and exporting run the user's code to read it, not to train: nobody watches meanwhile.

A trace that is taken twice must see the same Python frames both times, or torch says that the graphs differ.
"""
from __future__ import annotations

from typing import Any

import torch
import torch.fx

from traindx.probes import patching
from traindx.probes.ops import Traces
from traindx.probes.session import Session


def install(session: Session) -> None:
    for owner, names in ((torch.jit, ("trace", "trace_module")), (torch.fx, ("symbolic_trace",)),
                         (torch.export, ("export",)), (getattr(torch, "onnx", None), ("export",))):
        for name in names:
            patching.replace(session.stack, owner, name, lambda original: _unwatched(original, session))


def _unwatched(original: Any, session: Session) -> Any:
    def stage(*args: Any, **kwargs: Any) -> Any:
        if not session.watching:
            return original(*args, **kwargs)
        Traces.tracer.disarm()
        with session.quiet():
            return original(*args, **kwargs)
    return patching.dressed(stage, original)
