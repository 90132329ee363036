"""Signals through depth: on detailed steps, how far each layer's output varies and how large its gradient is."""
from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from traindx.core.observed import Site
from traindx.core.observed.start import DepthProfile, LayerFacts
from traindx.probes import modules
from traindx.probes.session import ForwardRun, Probe, Session, StepRun
from traindx.probes.starts import Fillings
from traindx.probes.tensors import readable, sample, tensors_in

ROWS = 64  # samples, and values of each, whose spread is taken
LAYERS = 200
NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
NOT_LAYERS = (nn.Embedding, nn.EmbeddingBag, *NORMS)


def install(session: Session) -> None:
    session.add(Depth)


@dataclass(eq=False)
class _Ran:
    module: weakref.ref[nn.Module]
    path: str
    spread: float | None


@dataclass(eq=False)
class _Pass:
    """The layers of a root's last training forward, in order."""

    model: int
    class_name: str
    site: Site | None
    layers: list[_Ran]
    activations: list[str]
    normalised: bool = False


class Depth(Probe):
    """Follows the layers of torch that hold a matrix; embeddings and norms are none."""

    areas = ("init",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._now: _Pass | None = None
        self._done: dict[int, _Pass] = {}

    def before_forward(self, run: ForwardRun) -> None:
        self._now = None
        if self.session.detailed and run.grad:
            self._now = _Pass(run.model or self.session.ids.of(run.module), type(run.module).__name__, run.site, [], [])

    def after_module(self, module: nn.Module, path: str, args: tuple[Any, ...], output: Any) -> None:
        now = self._now
        if now is None or next(module.children(), None) is not None:
            return
        if isinstance(module, NORMS):
            now.normalised = True
        elif type(module).__module__ == "torch.nn.modules.activation":
            now.activations.append(type(module).__name__)
        elif len(now.layers) < LAYERS and not isinstance(module, NOT_LAYERS) and _matrix(module) is not None:
            first = next(tensors_in(output, 1), None)
            now.layers.append(_Ran(weakref.ref(module), path, spread_of(first)))

    def after_forward(self, run: ForwardRun) -> None:
        now, self._now = self._now, None
        if now is not None and len(now.layers) >= 3:
            self._done[now.model] = now

    def before_step(self, run: StepRun) -> None:
        """Gradients are whole now; they belong to the roots that ran since the last step."""
        done, self._done = self._done, {}
        held = {id(p) for group in run.optimizer.param_groups for p in group["params"]} if done else set()
        for each in done.values():
            layers = [self._facts(ran, module, held) for ran in each.layers if (module := ran.module()) is not None]
            if any(layer.gradient is not None for layer in layers):
                self.session.emit(DepthProfile(
                    step=self.session.step, model=each.model, class_name=each.class_name, layers=tuple(layers),
                    site=each.site, activations=tuple(sorted(set(each.activations))), normalised=each.normalised))

    @staticmethod
    def _facts(ran: _Ran, module: nn.Module, held: set[int]) -> LayerFacts:
        weight = _matrix(module)
        filling = Fillings.instance.of(weight) if Fillings.instance is not None and weight is not None else None
        return LayerFacts(
            name=ran.path, module_class=type(module).__name__, output=ran.spread,
            gradient=rms(weight.grad) if weight is not None and id(weight) in held else None,
            elements=weight.numel() if weight is not None else 0, made_at=modules.made_at(module),
            set_by=filling.name if filling else "", set_at=filling.site if filling and not filling.by_library else None)


def _matrix(module: nn.Module) -> Tensor | None:
    """The weight of two or more dimensions that a module holds itself."""
    return next((p for p in module._parameters.values() if p is not None and readable(p) and p.dim() > 1), None)


def rms(tensor: Tensor | None) -> float | None:
    """Root mean square over a sample; None where it cannot be read."""
    if tensor is None or not readable(tensor) or tensor.numel() == 0:
        return None
    return float(sample(tensor).float().square().mean().sqrt())


def spread_of(output: Tensor | None) -> float | None:
    """How far an output [batch, ...] varies between samples: the standard deviation over dim 0, averaged."""
    if output is None or not readable(output) or not output.is_floating_point():
        return None
    if output.dim() < 2 or output.shape[0] < 4:
        return None
    rows = output.detach()[:ROWS].flatten(1)
    columns = rows[:, :: max(1, rows.shape[1] // ROWS)].float()
    return float(torch.std(columns, 0).mean())
