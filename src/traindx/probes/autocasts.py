"""Work under a float16 autocast."""
from __future__ import annotations

from typing import Any

import torch

from traindx.core.observed import Site, changed
from traindx.core.observed.gradients import HalfPrecision
from traindx.probes import sites
from traindx.probes.gradient_clips import larger
from traindx.probes.roots import batch_mean_weight
from traindx.probes.session import BackwardRun, ForwardRun, LossRun, Probe, Session


def install(session: Session) -> None:
    session.add(Autocasts)


class Autocasts(Probe):
    """Work under a float16 autocast, and the backwards that follow it."""

    areas = ("numeric",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._seen: HalfPrecision | None = None
        self._since = False  # the last backward

    def before_forward(self, run: ForwardRun) -> None:
        if run.grad:
            self._look(run.site)

    def on_loss(self, run: LossRun) -> None:
        if run.grad:
            self._look(run.site)

    def after_module(self, module: Any, path: str, args: tuple[Any, ...], output: Any) -> None:
        if not self._since and torch.is_grad_enabled():
            self._look(sites.here(3))

    def _look(self, site: Site | None) -> None:
        device = next((kind for kind in ("cuda", "cpu") if torch.is_autocast_enabled(kind)), None)
        if device is None or torch.get_autocast_dtype(device) is not torch.float16:
            return
        self._since = True
        if self._seen is None:
            self._seen = HalfPrecision(step=self.session.step, key="float16", device=device, site=site)

    def before_backward(self, run: BackwardRun) -> None:
        if not run.accumulate or not self._since or self._seen is None:
            return
        self._since = False
        weight = batch_mean_weight(run.roots[0]) if run.roots else None
        seen = self._seen
        self._seen = changed(seen, backwards=seen.backwards + 1, backward_site=seen.backward_site or run.site,
                             weight=larger(seen.weight, weight))
        if self._seen.backwards <= 3:
            self.session.emit(self._seen)

    def at_end(self) -> None:
        if self._seen is not None:
            self.session.emit(self._seen)
