"""Seeds: set before the weights were made, or not; and whether evaluation takes numbers that training would have got."""
from __future__ import annotations

import random
import sys
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler

from traindx.core.observed import Site
from traindx.core.observed.seeds import EvaluationDraws, SeedsAtStart
from traindx.probes import patching, sites
from traindx.probes.session import ForwardRun, Probe, Session

WATCHED_FORWARDS = 16


def install(session: Session) -> None:
    session.add(Seeds)
    probe = next((p for p in session.probes if isinstance(p, Seeds)), None)
    if probe is None:
        return
    patching.replace(session.stack, nn.Module, "register_parameter", lambda original: _observed_parameter(original, probe))
    patching.replace(session.stack, random, "seed", lambda original: _observed_seed(original, probe, "random"))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        patching.replace(session.stack, numpy.random, "seed", lambda original: _observed_seed(original, probe, "numpy"))
    for owner in (torch, torch.random):
        patching.replace(session.stack, owner, "manual_seed", lambda original: _observed_seed(original, probe, "torch"))
    session.add(Draws)


def _observed_parameter(original: Any, probe: Seeds) -> Any:
    """Modules without parameters (losses, activations, those that libraries build at import) draw nothing, so they need no seed."""
    def register_parameter(self: nn.Module, name: str, param: Any) -> None:
        if param is not None and not probe.begun and probe.session.watching:
            probe.session.guard(probe, probe.begin)
        original(self, name, param)
    return patching.dressed(register_parameter, original)


def _observed_seed(original: Any, probe: Seeds, name: str) -> Any:
    def seed(*args: Any, **kwargs: Any) -> Any:
        if probe.session.watching:
            probe.session.guard(probe, probe.seeded, name, sites.here(2))
        return original(*args, **kwargs)
    return patching.dressed(seed, original)


class Seeds(Probe):
    """Looks once, when the first module with parameters is built; weights drawn before any seed cannot be drawn again."""

    areas = ("repro",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.begun = False
        self._first = torch.initial_seed()  # drawn from the system at start: another one means that somebody set it
        self._seeded: set[str] = set()
        self._start: SeedsAtStart | None = None
        self._numpy, self._random = _numpy_state(), random.getstate()

    def begin(self) -> None:
        self.begun = True
        self._start = SeedsAtStart(step=self.session.step, key="seeds", torch="torch" in self._seeded or torch.initial_seed() != self._first,
                                   numpy="numpy" in self._seeded, random="random" in self._seeded, made_at=sites.here(3))

    def seeded(self, name: str, site: Site | None) -> None:
        self._seeded.add(name)
        if self._start is not None and not getattr(self._start, name) and name not in self._start.late:
            self._start = replace(self._start, late=(*self._start.late, name), late_site=self._start.late_site or site)

    def at_end(self) -> None:
        if self._start is not None:
            self.session.emit(replace(self._start, numpy_used=_numpy_state() != self._numpy, random_used=random.getstate() != self._random))


def _numpy_state() -> Any:
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    name, keys, *rest = numpy.random.get_state()
    return name, keys.tobytes(), rest


class Draws(Probe):
    """Compares the state of torch's generator before and after evaluation forwards, a few of the first passes."""

    areas = ("repro",)
    always = ("on_batch",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._before: Tensor | None = None
        self._left = WATCHED_FORWARDS
        self._shuffles = False

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        if not self._shuffles and isinstance(loader, DataLoader):
            sampler = loader.sampler
            self._shuffles = isinstance(sampler, RandomSampler) and sampler.generator is None and loader.generator is None

    def before_forward(self, run: ForwardRun) -> None:
        if self._left and not run.grad and self.session.step > 1:
            self._before = torch.get_rng_state()

    def after_forward(self, run: ForwardRun) -> None:
        before, self._before = self._before, None
        if before is not None:
            self._left -= 1
            self.session.emit(EvaluationDraws(step=self.session.step, key=f"draws-{run.site and run.site.short}", site=run.site,
                                              moved=not torch.equal(before, torch.get_rng_state()), shuffles=self._shuffles))
