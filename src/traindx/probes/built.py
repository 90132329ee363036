"""Modules that are constructed while a root's forward runs: new weights each time, which no optimizer knows."""
from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from traindx.core.observed import Site
from traindx.core.observed.mode import ModuleBuilt
from traindx.probes import modules, patching
from traindx.probes.session import ForwardRun, Probe, Session

LIMIT = 64  # modules of one forward


def install(session: Session) -> None:
    session.add(Built)
    probe = next((p for p in session.probes if isinstance(p, Built)), None)
    if probe is not None:
        patching.replace(session.stack, nn.Module, "__init__", lambda original: _observed(original, session, probe))


def _observed(original: Any, session: Session, probe: Built) -> Any:
    thread = session.thread

    def __init__(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if thread.depth and session.active and not session.coasting and not thread.busy and len(probe.made) < LIMIT:
            probe.made.append(self)
    return patching.dressed(__init__, original)


class Built(Probe):
    """Holds what one forward built until it ends, then looks whether it has weights or drops values."""

    areas = ("mode", "optim")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.made: list[nn.Module] = []
        self._forwards: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
        self._since: dict[int, int] = {}
        self._seen: dict[int, ModuleBuilt] = {}
        self._said: dict[int, ModuleBuilt] = {}

    def before_forward(self, run: ForwardRun) -> None:
        self.made.clear()
        self._forwards[run.module] = self._forwards.get(run.module, 0) + 1

    def after_forward(self, run: ForwardRun) -> None:
        if not self.made:
            return
        made, self.made = self.made, []
        inner = {id(child) for module in made for child in module.modules() if child is not module}
        kept = {id(module) for module in run.module.modules()}
        new = {id(module) for module in made}
        places: set[int] = set()
        for module in made:
            if id(module) not in inner and id(module) not in kept:
                self._note(module, [m for m in module.modules() if id(m) in new], run, places)

    def _note(self, module: nn.Module, new: list[nn.Module], run: ForwardRun, places: set[int]) -> None:
        """``new``: what was built with it; a slice of a ModuleList is a new list of layers that were there before."""
        weights = sum(p.numel() for m in new for p in m.parameters(recurse=False) if p.requires_grad)
        drops = any(modules.drops(m) for m in new)
        tracks = any(isinstance(m, _BatchNorm) for m in new)
        site = modules.made_at(module)
        if not (weights or drops or tracks) or site is None or id(site) in places:
            return
        places.add(id(site))
        self._count(module, site, run, weights, drops)

    def _count(self, module: nn.Module, site: Site, run: ForwardRun, weights: int, drops: bool) -> None:
        key, forwards = id(site), self._forwards[run.module]
        first = self._since.setdefault(key, forwards)
        seen = self._seen.get(key) or ModuleBuilt(
            step=self.session.step, key=f"built-{len(self._seen)}", model=run.model, class_name=type(module).__name__,
            site=site, forwards=0, of_forwards=0, weights=weights, dropout=drops, in_eval=0, forward_site=run.site)
        self._seen[key] = replace(seen, forwards=seen.forwards + 1, of_forwards=forwards - first + 1,
                                  in_eval=seen.in_eval + (drops and not run.training))

    def on_tick(self, step: int) -> None:
        if self.session.detailed:
            self.at_end()

    def at_end(self) -> None:
        for key, seen in self._seen.items():
            if self._said.get(key) != seen:
                self._said[key] = seen
                self.session.emit(seen)
