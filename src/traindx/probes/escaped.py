"""Looks at switches that may miss their aim: autocast around the loss alone, spectral norm read before it was updated, a freezing
``train()`` that nobody calls."""
from __future__ import annotations

import sys
import weakref
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp.autocast_mode import autocast

from traindx.core.observed import Site
from traindx.core.observed.escaped import AutocastReach, FreezeUncalled, SpectralCold
from traindx.probes import modules, patching, sites, source
from traindx.probes.session import BackwardRun, ForwardRun, LossRun, Probe, Session
from traindx.probes.tensors import readable, shape_of

MEASURED = 8  # layers
ELEMENTS = 1 << 20
FREEZING = frozenset(("requires_grad", "requires_grad_"))


def install(session: Session) -> None:
    session.add(Autocasts)
    session.add(Spectral)
    session.add(Freezing)


class Autocasts(Probe):
    """Counts forwards and losses by whether autocast was on, once the program enters it at all."""

    areas = ("numeric",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._site: Site | None = None
        self._forward: Site | None = None
        self._loss: Site | None = None
        self._device, self._dtype = "cpu", ""
        self._entered = self._inside = self._outside = self._losses = 0
        self._depth = 0  # of root forwards that run
        patching.replace(session.stack, autocast, "__enter__", self._observed)

    def _observed(self, original: Any) -> Any:
        session = self.session

        def __enter__(region: Any) -> Any:
            if session.watching and region._enabled and not session.coasting:
                session.guard(self, self._enter, region, sites.here(2))
            return original(region)
        return patching.dressed(__enter__, original)

    def _enter(self, region: Any, site: Site | None) -> None:
        self._entered += 1
        self._site = self._site or site
        self._device, self._dtype = str(region.device), str(region.fast_dtype).removeprefix("torch.")
        if self._depth:
            self._inside += 1

    def before_forward(self, run: ForwardRun) -> None:
        self._depth += 1
        if run.grad and self._entered:
            on = torch.is_autocast_enabled(self._device)
            self._inside += on
            self._outside += not on
            self._forward = self._forward or run.site

    def after_forward(self, run: ForwardRun) -> None:
        self._depth = max(0, self._depth - 1)

    def on_loss(self, run: LossRun) -> None:
        if run.grad and self._entered and torch.is_autocast_enabled(self._device):
            self._losses += 1
            self._loss = self._loss or run.site

    def at_end(self) -> None:
        if self._entered:
            self.session.emit(AutocastReach(
                step=self.session.step, key="autocast", site=self._site, device=self._device, dtype=self._dtype, entered=self._entered,
                forwards_inside=self._inside, forwards_outside=self._outside, losses_inside=self._losses, forward_site=self._forward,
                loss_site=self._loss))


class Spectral(Probe):
    """Measures the weight that a spectral norm gives in eval mode where it was never updated, once a layer."""

    areas = ("mode",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._known: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._cold: dict[int, SpectralCold] = {}
        kind = getattr(sys.modules.get("torch.nn.utils.spectral_norm"), "SpectralNorm", None)
        if kind is not None:
            patching.replace(session.stack, kind, "compute_weight", self._observed)

    def _observed(self, original: Any) -> Any:
        session = self.session

        def compute_weight(norm: Any, module: nn.Module, do_power_iteration: bool) -> Any:
            weight = original(norm, module, do_power_iteration)
            if session.watching and (module not in self._known or (do_power_iteration and self._cold)):
                session.guard(self, self._look, norm, module, weight, do_power_iteration, sites.here(2))
            return weight
        return patching.dressed(compute_weight, original)

    def _look(self, norm: Any, module: nn.Module, weight: Tensor, updated: bool, site: Site | None) -> None:
        id = self.session.ids.of(module)
        if module in self._known or updated:
            if module not in self._known:  # warm from the start
                self.session.emit(SpectralCold(step=self.session.step, key=f"spectral-{id}", sigma=None, shape=shape_of(weight), site=site,
                                               made_at=modules.made_at(module)))
            self._known.add(module)
            if (cold := self._cold.pop(id, None)) is not None:
                self.session.emit(replace(cold, updated=True))
            return
        self._known.add(module)
        if readable(weight) and weight.numel() <= ELEMENTS and len(self._known) <= MEASURED:
            sigma = float(torch.linalg.matrix_norm(norm.reshape_weight_to_matrix(weight.detach()).float(), 2))
            self._cold[id] = SpectralCold(step=self.session.step, key=f"spectral-{id}", sigma=sigma, shape=shape_of(weight), site=site,
                                          made_at=modules.made_at(module))
            self.session.emit(self._cold[id])


class Freezing(Probe):
    """Looks, at the end, for roots that trained although a ``train()`` of their class that freezes was never called."""

    areas = ("optim",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._roots: weakref.WeakKeyDictionary[nn.Module, Site | None] = weakref.WeakKeyDictionary()
        self._latest: ForwardRun | None = None

    def before_forward(self, run: ForwardRun) -> None:
        if run.grad and type(run.module).train is not nn.Module.train and run.module not in self._roots:
            self._latest = run

    def after_backward(self, run: BackwardRun) -> None:
        if self._latest is not None:
            self._roots[self._latest.module] = self._latest.site
            self._latest = None

    def on_tick(self, step: int) -> None:
        if step >= 4 and step & (step - 1) == 0:
            self._say()

    def at_end(self) -> None:
        self._say()

    def _say(self) -> None:
        for root, site in list(self._roots.items()):
            code = getattr(type(root).train, "__code__", None)
            if code is not None and FREEZING & set(code.co_names) and sites.is_user(code.co_filename) and modules.switched_at(root) is None:
                parameters = list(root.parameters())
                self.session.emit(FreezeUncalled(
                    step=self.session.step, key=f"freeze-{self.session.ids.of(root)}", class_name=type(root).__name__, forward_site=site,
                    elements=sum(p.numel() for p in parameters if p.requires_grad), total=sum(p.numel() for p in parameters),
                    site=source.line_with(code, "requires_grad")))
