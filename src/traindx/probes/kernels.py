"""Looks at how kernels are chosen, and at who empties the cache of GPU memory."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from traindx.core.observed import Site
from traindx.core.observed.kernels import CacheEmptied, KernelSettings
from traindx.probes import patching, sites, source
from traindx.probes.session import Probe, Session

LINES = 16


def install(session: Session) -> None:
    session.add(Kernels)
    probe = next((each for each in session.probes if isinstance(each, Kernels)), None)
    if probe is None:
        return
    for owner, name in ((torch.cuda, "empty_cache"), (torch.cuda.memory, "empty_cache")):
        patching.replace(session.stack, owner, name, lambda original: _observed(original, session, probe, probe.emptied))
    for owner in (torch, torch.random):
        patching.replace(session.stack, owner, "manual_seed", lambda original: _observed(original, session, probe, probe.seeded))


def _observed(original: Any, session: Session, probe: Probe, note: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if session.watching:
            session.guard(probe, note, sites.here(2))
        return original(*args, **kwargs)
    return patching.dressed(call, original)


class Kernels(Probe):
    """Counts by line, and reads the settings once, at the end."""

    areas = ("repro", "speed")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._seeded_at: Site | None = None
        self._lines: dict[int, CacheEmptied] = {}
        self._last: dict[int, int] = {}

    def seeded(self, site: Site | None) -> None:
        self._seeded_at = self._seeded_at or site

    def emptied(self, site: Site | None) -> None:
        key, step = id(site), self.session.step
        seen = self._lines.get(key)
        if seen is None:
            if len(self._lines) >= LINES:
                return
            seen = CacheEmptied(step=step, key=f"cache-{len(self._lines)}", site=site, calls=0, steps=0, first_step=step)
        self._lines[key] = replace(seen, calls=seen.calls + 1, steps=seen.steps + (self._last.get(key) != step))
        self._last[key] = step

    def on_tick(self, step: int) -> None:
        if step >= 16 and step & (step - 1) == 0:
            self._say()

    def at_end(self) -> None:
        self._say()
        cudnn = torch.backends.cudnn
        self.session.emit(KernelSettings(
            step=self.session.step, key="kernels", benchmark=bool(cudnn.benchmark), deterministic=bool(cudnn.deterministic),
            forced=torch.are_deterministic_algorithms_enabled(), cuda=torch.cuda.is_initialized(), seeded_at=self._seeded_at,
            set_at=source.first_line(r"cudnn\.benchmark\s*=\s*True|benchmark\s*=\s*True") if cudnn.benchmark else None))

    def _say(self) -> None:
        for seen in self._lines.values():
            self.session.emit(seen)
