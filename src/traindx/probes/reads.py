"""The seam of values that are read out of tensors: ``item()`` and ``float()``, on the steps where somebody asks for them."""
from __future__ import annotations

import time
from typing import Any

from torch import Tensor

from traindx.probes import patching, sites
from traindx.probes.session import ReadRun, Session


def install(session: Session) -> None:
    for name in ("item", "__float__"):
        patching.replace(session.stack, Tensor, name, lambda original: _observed(original, session))


def _observed(original: Any, session: Session) -> Any:
    thread, clock = session.thread, time.perf_counter

    def read(self: Any) -> Any:
        if not (session.detailed or session.scoring) or thread.busy or not session.active:
            return original(self)
        began = clock()
        value = original(self)
        session.call("on_read", ReadRun(self, value, sites.here(2), clock() - began))
        return value
    return patching.dressed(read, original)
