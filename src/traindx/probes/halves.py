"""What half precision loses: gradients rounded to 0 in fp16, updates below half a unit in a weight's last place."""
from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from traindx.core.observed import Site
from traindx.core.observed.finite import HalfGradients, StuckWeights
from traindx.probes.session import BackwardRun, Budget, ForwardRun, LossRun, Probe, Session, StepRun
from traindx.probes.tensors import number, readable, sample

TENSORS = 48  # parameter tensors looked at
ELEMENTS = 256  # of each
REPORTS = 32  # of each kind
WINDOW = 4  # steps between two looks at the same weights: stochastic rounding moves most in that time
SMALLEST_NORMAL = 2.0 ** -14  # of fp16
SPACING = 2.0 ** -24  # of fp16 below it
HALVES = (torch.float16, torch.bfloat16)


def install(session: Session) -> None:
    session.add(Halves)


@dataclass
class Look:
    """Bits of sampled weights at a step, and which of them had a gradient other than 0."""

    step: int
    bits: Tensor
    moved: Tensor


class Halves(Probe):
    """Gradients under fp16, half-precision weights in optimizers; on detailed steps."""

    areas = ("numeric",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.budget = Budget(session)
        self._optimizers: list[weakref.ref[Any]] = []
        self._autocast = False
        self._loss_site: Site | None = None
        self._looks: dict[int, Look] = {}
        self._said = 0
        self._stuck = 0

    def on_optimizer(self, optimizer: torch.optim.Optimizer, id: int, site: Site | None) -> None:
        self._optimizers.append(weakref.ref(optimizer))

    def before_forward(self, run: ForwardRun) -> None:
        if not self._autocast and self.session.detailed:
            self._autocast = _fp16_autocast()

    def on_loss(self, run: LossRun) -> None:
        self._loss_site = run.site
        if not self._autocast and self.session.detailed:
            self._autocast = _fp16_autocast()

    def after_backward(self, run: BackwardRun) -> None:
        if not self.session.detailed or not run.accumulate or self._said >= REPORTS or not self.budget.allows():
            return
        with self.budget.paying():
            parameters = [p for p in self._parameters() if p.grad is not None and readable(p.grad)]
            if not self._autocast and all(p.dtype is not torch.float16 for p in parameters):
                return
            shares = [_shares(p.grad) for p in parameters[:TENSORS] if p.grad is not None]
        if shares:
            self._said += 1
            self.session.emit(HalfGradients(
                step=self.session.step, names=tuple(str(tuple(p.shape)) for p in parameters[:TENSORS]),
                zero=tuple(zero for zero, _ in shares), tiny=tuple(tiny for _, tiny in shares), autocast=self._autocast,
                loss_site=self._loss_site, backward_site=run.site))

    def _parameters(self) -> list[Tensor]:
        return [p for ref in self._optimizers if (optimizer := ref()) is not None
                for group in optimizer.param_groups for p in group["params"]]

    def before_step(self, run: StepRun) -> None:
        if not self.session.detailed or self._stuck >= REPORTS or not self.budget.allows():
            return
        last = self._looks.get(run.id)
        if last is not None and self.session.step - last.step < WINDOW:
            return
        with self.budget.paying():
            look = self._look(run.optimizer)
            if look is None:
                return
            self._looks[run.id] = look
            if last is not None and last.bits.shape == look.bits.shape:
                self._compare(run, last, look)

    def _look(self, optimizer: torch.optim.Optimizer) -> Look | None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]
                      if p.dtype in HALVES and readable(p) and p.grad is not None and readable(p.grad)][:TENSORS]
        if not parameters:
            return None
        bits = torch.cat([sample(p, ELEMENTS).contiguous().view(torch.int16) for p in parameters])
        moved = torch.cat([(sample(p.grad, ELEMENTS) != 0) & torch.isfinite(sample(p, ELEMENTS))
                           for p in parameters if p.grad is not None])
        return Look(self.session.step, bits, moved)

    def _compare(self, run: StepRun, last: Look, look: Look) -> None:
        both = last.moved & look.moved
        count = int(both.sum())
        if count < 16:
            return
        rates = [group.get("lr") for group in run.optimizer.param_groups]
        numbers = [number(rate) if isinstance(rate, Tensor) else rate for rate in rates]
        kind = next(p.dtype for group in run.optimizer.param_groups for p in group["params"] if p.dtype in HALVES)
        self._stuck += 1
        self.session.emit(StuckWeights(
            step=self.session.step, optimizer=run.id, dtype=str(kind).removeprefix("torch."), elements=count,
            stuck=float((last.bits == look.bits)[both].float().mean()), steps=look.step - last.step,
            lr=max((float(rate) for rate in numbers if rate is not None), default=None), site=run.site))


def _fp16_autocast() -> bool:
    return torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is torch.float16


def _shares(gradient: Tensor) -> tuple[float, float]:
    """Share of exact zeros; of the others, share that are below fp16's normal numbers and lie on its grid there."""
    values = sample(gradient, ELEMENTS).float()
    others = values[values != 0]
    if others.numel() == 0:
        return 1.0, 0.0
    steps = others / SPACING
    tiny = (others.abs() < SMALLEST_NORMAL) & (steps == steps.round())
    return 1 - others.numel() / values.numel(), float(tiny.float().mean())
