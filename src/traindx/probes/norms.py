"""BatchNorm in training: how many values it normalises by, whether its running statistics fit, and frozen ones."""
from __future__ import annotations

import inspect
import sys
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from traindx.core.observed.mode import BatchNormSeen, FrozenNorms, NormGap
from traindx.probes import modules, patching, sites
from traindx.probes.session import ForwardRun, Probe, Session
from traindx.probes.tensors import readable, shape_of

FEW = 64  # values per channel that are counted one by one
NORMS = 256
SHARE_FROZEN = 8  # values of each weight that are compared
LARGEST = 1 << 22  # elements of an input whose statistics are taken
EPS = 1e-12
_NORM_FILE = inspect.getsourcefile(nn.modules.batchnorm)


def install(session: Session) -> None:
    session.add(Norms)
    probe = next((p for p in session.probes if isinstance(p, Norms)), None)
    if probe is not None:
        patching.replace(session.stack, F, "batch_norm", _maker(session, probe))


def _maker(session: Session, probe: Norms) -> Callable[[Any], Any]:
    guard, is_compiling, saw, thread = session.guard, torch.compiler.is_compiling, probe.saw, session.thread

    def make(original: Any) -> Any:
        def batch_norm(*args: Any, **kwargs: Any) -> Any:
            training = args[5] if len(args) > 5 else kwargs.get("training", False)
            if is_compiling() or not training or session.coasting or not session.active or thread.busy or probe.inside:
                return original(*args, **kwargs)
            guard(probe, saw, args, kwargs)
            probe.inside = True  # under a function mode the call comes back through this very name
            try:
                return original(*args, **kwargs)
            finally:
                probe.inside = False
        return patching.shadow(batch_norm, original)  # type: ignore[arg-type]
    return make


@dataclass(eq=False)
class _Norm:
    seen: BatchNormSeen
    calls: int = 0
    values: dict[int, int] = field(default_factory=dict)


@dataclass(eq=False)
class _Frozen:
    """The first look at a frozen part: samples of its weights, and its BatchNorms' running means and deviations."""

    weights: list[tuple[weakref.ref[Tensor], list[float]]]
    means: list[tuple[weakref.ref[nn.Module], Tensor, Tensor]]
    looks: int = 0
    said: FrozenNorms | None = None


class Norms(Probe):
    """Counts values per channel of every training call; measures statistics on detailed steps."""

    areas = ("mode",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.inside = False
        self._norms: dict[int, _Norm] = {}
        self._frozen: dict[int, _Frozen] = {}

    def saw(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)`` with training on."""
        if not torch.is_grad_enabled():
            return  # the program evaluates: eval-missing speaks of that
        input, mean = args[0], args[1] if len(args) > 1 else kwargs.get("running_mean")
        caller = sys._getframe(3)
        module = caller.f_locals.get("self") if caller.f_code.co_filename == _NORM_FILE else None
        norm = self._norm(module, mean)
        if norm is None:
            return
        count = input.numel() // max(int(input.shape[1]), 1) if input.dim() > 1 else 0
        norm.calls += 1
        norm.values[count if count < FEW else 0] = norm.values.get(count if count < FEW else 0, 0) + 1
        if norm.calls == 1 or self.session.detailed:
            norm.seen = replace(norm.seen, shape=shape_of(input), site=norm.seen.site or sites.here(4))
            if module is not None and readable(mean):
                self._measure(norm, module, input)

    def _norm(self, module: Any, mean: Any) -> _Norm | None:
        key = module if module is not None else mean
        if key is None:
            return None
        number = self.session.ids.of(key)
        norm = self._norms.get(number)
        if norm is None and len(self._norms) < NORMS:
            made = modules.made_at(module) if module is not None else None
            norm = self._norms[number] = _Norm(BatchNormSeen(
                step=self.session.step, key=f"batchnorm-{number}", id=number, made_at=made, site=None, calls=0,
                values={}, shape=(), tracks=mean is not None, momentum=getattr(module, "momentum", None)))
        return norm

    def _measure(self, norm: _Norm, module: nn.Module, input: Tensor) -> None:
        """Before this call updates them: do the running statistics describe the batch?"""
        mean, variance = module.running_mean, module.running_var
        if not isinstance(mean, Tensor) or not isinstance(variance, Tensor):
            return
        if not readable(input) or input.numel() > LARGEST:
            return
        values = input.detach().float().transpose(0, 1).flatten(1)
        if values.shape[1] < 8:
            return
        batch_mean, batch_variance = values.mean(1), values.var(1)
        gap = ((batch_mean - mean).abs() / (batch_variance + EPS).sqrt()).median()
        spread = (batch_variance / (variance + EPS)).median()
        updates = getattr(module, "num_batches_tracked", None)
        self.session.emit(NormGap(
            step=self.session.step, id=norm.seen.id, made_at=norm.seen.made_at, values=int(values.shape[1]),
            mean_gap=float(gap), spread=float(spread), momentum=norm.seen.momentum, shape=shape_of(input),
            updates=int(updates) if isinstance(updates, Tensor) and readable(updates) else 0))

    # -- frozen parts -----------------------------------------------------------------------------------------------

    def after_forward(self, run: ForwardRun) -> None:
        if not (self.session.detailed and run.training) or run.failed:
            return
        frozen = self._frozen.get(run.model)
        if frozen is None or not frozen.means:
            self._frozen[run.model] = frozen_part(run.module)
        else:
            self._compare(frozen, run)

    def _compare(self, frozen: _Frozen, run: ForwardRun) -> None:
        if not all(_unchanged(ref(), values) for ref, values in frozen.weights):
            frozen.means.clear()  # it learns, or follows another net: its statistics may move
            return
        moved: list[float] = []
        for ref, mean, deviation in frozen.means:
            module = ref()
            if module is not None and isinstance(module.running_mean, Tensor) and module.training:
                moved.append(float(((module.running_mean - mean).abs() / deviation).median()))
        if not moved:
            return
        frozen.looks += 1
        names = [name for name, m in run.module.named_modules() if any(ref() is m for ref, _, _ in frozen.means)]
        first = frozen.means[0][0]()
        frozen.said = FrozenNorms(
            step=self.session.step, key=f"frozen-norms-{run.model}", model=run.model,
            class_name=type(run.module).__name__, count=len(moved), names=tuple(names[:5]),
            moved=sorted(moved)[len(moved) // 2], looks=frozen.looks, frozen_weights=len(frozen.weights), site=run.site,
            switched_at=modules.switched_at(first) if first is not None else None,
            made_at=modules.made_at(first) if first is not None else None)
        self.session.emit(frozen.said)

    def on_tick(self, step: int) -> None:
        if self.session.detailed:
            self.at_end()

    def at_end(self) -> None:
        for norm in self._norms.values():
            if norm.seen.calls != norm.calls:
                norm.seen = replace(norm.seen, calls=norm.calls, values=dict(norm.values))
                self.session.emit(norm.seen)


def frozen_part(root: nn.Module) -> _Frozen:
    """BatchNorms in train mode whose surroundings hold weights, all of them frozen."""
    parameters = list(root.parameters())
    if all(p.requires_grad for p in parameters):
        return _Frozen([], [])
    parents = {id(child): parent for parent in root.modules() for child in parent.children()}
    norms = [m for m in root.modules() if isinstance(m, _BatchNorm) and m.training and readable(m.running_mean)]
    frozen = [m for m in norms if _surroundings_frozen(m, parents)]
    weights = [p for p in parameters if not p.requires_grad and readable(p) and p.numel()] if frozen else []
    return _Frozen([(weakref.ref(p), _few(p)) for p in weights], [_statistics(m) for m in frozen])


def _statistics(norm: _BatchNorm) -> tuple[weakref.ref[nn.Module], Tensor, Tensor]:
    mean, variance = norm.running_mean, norm.running_var
    assert mean is not None and variance is not None
    return weakref.ref(norm), mean.clone(), (variance + 1e-5).sqrt()


def _surroundings_frozen(norm: nn.Module, parents: dict[int, nn.Module]) -> bool:
    """The nearest module around it that holds matrices holds only frozen parameters, the norm's own among them."""
    at: nn.Module | None = norm
    while at is not None and not any(p.dim() > 1 for p in at.parameters()):
        at = parents.get(id(at))
    return at is not None and not any(p.requires_grad for p in at.parameters())


def _unchanged(parameter: Tensor | None, values: list[float]) -> bool:
    return parameter is not None and not parameter.requires_grad and values == _few(parameter)


def _few(parameter: Tensor) -> list[float]:
    flat = parameter.detach().reshape(-1)
    values: list[float] = flat[:: max(1, flat.numel() // SHARE_FROZEN)][:SHARE_FROZEN].tolist()
    return values
