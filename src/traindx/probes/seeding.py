"""Every line that seeds a random generator, with the seed: what a record must know to be repeated."""
from __future__ import annotations

import random
import sys
from dataclasses import replace
from typing import Any

import torch
import torch.utils.data

from traindx.core.observed.record import SeedCall
from traindx.probes import patching, sites
from traindx.probes.session import Probe, Session

LINES = 64


def install(session: Session) -> None:
    session.add(Seeding)
    probe = next((probe for probe in session.probes if isinstance(probe, Seeding)), None)
    if probe is None:
        return
    targets = [(random, "seed", "random.seed"), (torch, "manual_seed", "torch.manual_seed"), (torch.random, "manual_seed", "torch.manual_seed"),
               (torch, "seed", "torch.seed"), (torch.cuda, "manual_seed", "torch.cuda.manual_seed"),
               (torch.cuda, "manual_seed_all", "torch.cuda.manual_seed_all")]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        targets += [(numpy.random, "seed", "numpy.random.seed"), (numpy.random, "default_rng", "numpy.random.default_rng")]
    for owner, name, shown in targets:
        patching.replace(session.stack, owner, name, lambda original, shown=shown: _observed(original, probe, shown))  # type: ignore[misc]
    for owner in (torch.utils.data, torch.utils.data.dataset):
        patching.replace(session.stack, owner, "random_split", lambda original: _observed_split(original, probe))


def _observed(original: Any, probe: Seeding, name: str) -> Any:
    def seeded(*args: Any, **kwargs: Any) -> Any:
        if not probe.session.watching or probe.inside:
            return original(*args, **kwargs)
        probe.session.guard(probe, probe.called, name, args[0] if args else next(iter(kwargs.values()), None), sites.here(2))
        probe.inside = True  # manual_seed seeds every device by functions of its own
        try:
            return original(*args, **kwargs)
        finally:
            probe.inside = False
    return patching.dressed(seeded, original)


def _observed_split(original: Any, probe: Seeding) -> Any:
    def random_split(*args: Any, **kwargs: Any) -> Any:
        if probe.session.watching:
            generator = args[2] if len(args) > 2 else kwargs.get("generator")
            probe.session.guard(probe, probe.split, generator, sites.here(2))
        return original(*args, **kwargs)
    return patching.dressed(random_split, original)


class Seeding(Probe):
    """One observation a line and seed, said at once: a run that is killed has it too."""

    areas = ("repro",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.inside = False
        self._calls: dict[tuple[str, str | None, int], SeedCall] = {}

    def split(self, generator: Any, site: Any) -> None:
        """Where no generator is given, torch's global one draws the split."""
        given = isinstance(generator, torch.Generator) and generator is not torch.default_generator
        self.called("random_split", generator.initial_seed() if given else torch.initial_seed(), site)

    def called(self, function: str, value: Any, site: Any) -> None:
        if site is None:
            return  # a library's own affair
        key = function, None if value is None else str(value)[:60], id(site)
        known = self._calls.get(key)
        if known is not None:
            self._calls[key] = replace(known, calls=known.calls + 1)
        elif len(self._calls) < LINES:
            call = SeedCall(step=self.session.step, key=f"seed-{len(self._calls)}", function=function, value=key[1], site=site)
            self._calls[key] = call
            self.session.emit(call)

    def at_end(self) -> None:
        for call in self._calls.values():
            if call.calls > 1:
                self.session.emit(call)
