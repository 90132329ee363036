"""Tracing and exporting run the user's code to read it, not to train: nobody watches meanwhile.

A trace that is taken twice must see the same Python frames both times, or torch says that the graphs differ.
"""
from __future__ import annotations

from typing import Any

import torch
import torch.fx

from traindx.probes import patching
from traindx.probes.importing import when_imported
from traindx.probes.ops import Traces
from traindx.probes.session import Session


def install(session: Session) -> None:
    def unwatch(owner: Any, *names: str) -> None:
        if session.active:
            for name in names:
                patching.replace(session.stack, owner, name, lambda original: _unwatched(original, session))
    unwatch(torch.jit, "trace", "trace_module")
    unwatch(torch.fx, "symbolic_trace")
    unwatch(torch.export, "export")
    when_imported(session.stack, "torch.onnx", lambda module: unwatch(module, "export"))


def _unwatched(original: Any, session: Session) -> Any:
    def stage(*args: Any, **kwargs: Any) -> Any:
        if not session.watching:
            return original(*args, **kwargs)
        Traces.tracer.disarm()
        with session.quiet():
            return original(*args, **kwargs)
    return patching.dressed(stage, original)
