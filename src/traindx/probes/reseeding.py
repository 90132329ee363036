"""Lines that seed a random generator: those that do so in every step with the same seed are kept."""

from __future__ import annotations

import importlib
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from traindx.core.observed import Site
from traindx.core.observed.fed import Reseeded
from traindx.probes import patching, sites
from traindx.probes.session import Probe, Session

LINES = 64


def install(session: Session) -> None:
    session.add(Reseeding)


def _observed(original: Any, session: Session, name: str, probe: Reseeding) -> Any:
    def seeded(*args: Any, **kwargs: Any) -> Any:
        if session.watching:
            session.guard(
                probe, probe.seeded, sites.here(2), name, args[0] if args else next(iter(kwargs.values()), None)
            )
        return original(*args, **kwargs)

    return patching.dressed(seeded, original)


@dataclass
class _Line:
    site: Site | None
    function: str
    seed: str
    calls: int = 0
    steps: int = 0
    first: int = 0
    last: int = 0
    said: int = 0


class Reseeding(Probe):
    """Counts seedings by line and seed."""

    areas = ("data", "repro")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._lines: dict[tuple[int, str], _Line] = {}
        for owner, name in (
            (np.random, "default_rng"),
            (np.random, "seed"),
            (random, "seed"),
            (torch, "manual_seed"),
            (importlib.import_module("torch.random"), "manual_seed"),
        ):
            self._patch(owner, name)

    def _patch(self, owner: Any, name: str) -> None:
        label = f"{owner.__name__}.{name}"
        stack, session = self.session.stack, self.session
        patching.replace(stack, owner, name, lambda original: _observed(original, session, label, self))

    def seeded(self, site: Site | None, function: str, seed: Any) -> None:
        if site is None or not isinstance(seed, (int, np.integer)):
            return
        key = (id(site), str(seed))
        line = self._lines.get(key)
        if line is None:
            if len(self._lines) >= LINES:
                return
            line = self._lines[key] = _Line(site, function, str(seed), first=self.session.step)
        line.calls += 1
        line.steps += line.last != self.session.step
        line.last = self.session.step

    def at_end(self) -> None:
        self._say()

    def on_tick(self, step: int) -> None:
        if step >= 16 and step & (step - 1) == 0:
            self._say()

    def _say(self) -> None:
        for number, line in enumerate(self._lines.values()):
            if line.steps >= 8 and line.said != line.calls:
                line.said = line.calls
                self.session.emit(
                    Reseeded(
                        step=line.first,
                        key=f"reseeded-{number}",
                        site=line.site,
                        function=line.function,
                        seed=line.seed,
                        calls=line.calls,
                        steps=line.steps,
                        first_step=line.first,
                        last_step=line.last,
                    )
                )
