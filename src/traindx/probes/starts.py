"""Who filled a weight, and weights whose units began alike and stay so."""
from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from traindx.core.observed import Site
from traindx.core.observed.start import EqualUnits
from traindx.probes import modules, patching, sites, source
from traindx.probes.learning import leaves_of
from traindx.probes.session import BackwardRun, ForwardRun, Probe, Session, StepRun
from traindx.probes.tensors import number, plain, readable, shape_of

FILLERS = ("constant_", "zeros_", "ones_", "uniform_", "normal_", "trunc_normal_", "eye_", "dirac_", "sparse_",
           "orthogonal_", "xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_")
FILLING_METHODS = ("fill_", "zero_", "uniform_", "normal_")
SAMPLE = 64  # units, and values of each
CANDIDATES = 64


def install(session: Session) -> None:
    fillings = Fillings(session)
    for name in FILLERS:
        patching.replace(session.stack, nn.init, name, fillings.function(name))
    for name in FILLING_METHODS:
        patching.replace(session.stack, Tensor, name, fillings.method(name))
    Fillings.instance = fillings
    session.add(Equals)


@dataclass(frozen=True)
class Filling:
    """The last filling of a tensor. ``by_library``: the default of a layer's own constructor."""

    name: str
    site: Site | None
    by_library: bool


class Fillings:
    """The last filling of each memory, by its storage, weakly: ``weight.data.fill_`` counts for ``weight``."""

    instance: Fillings | None = None

    def __init__(self, session: Session) -> None:
        self.session = session
        self._known: dict[int, tuple[weakref.ref[Any], Filling]] = {}

    def of(self, tensor: Tensor) -> Filling | None:
        entry = self._known.get(id(tensor.untyped_storage())) if plain(tensor) else None
        return entry[1] if entry is not None and entry[0]() is tensor.untyped_storage() else None

    def function(self, name: str) -> Any:
        def make(original: Any) -> Any:
            session, note = self.session, self._note

            def fill(*args: Any, **kwargs: Any) -> Any:
                result = original(*args, **kwargs)
                if session.watching:
                    note(args[0] if args else kwargs.get("tensor"), name)
                return result
            return patching.dressed(fill, original)
        return make

    def method(self, name: str) -> Any:
        def make(original: Any) -> Any:
            session, note = self.session, self._note

            def fill(self: Tensor, *args: Any, **kwargs: Any) -> Any:
                result = original(self, *args, **kwargs)
                if session.step == 1 and session.watching and not session.in_backward:  # later ones reset gradients
                    note(self, name)
                return result
            return patching.shadow(fill, original)  # type: ignore[arg-type]
        return make

    def _note(self, tensor: Any, name: str) -> None:
        try:
            if not plain(tensor) or tensor.numel() < 2:
                return
            caller = sys._getframe(2).f_code.co_filename
            if caller == nn.init.__file__:
                return  # the outer function is noted
            storage, key = tensor.untyped_storage(), id(tensor.untyped_storage())
            filling = Filling(name, sites.here(3), not sites.is_user(caller))
            self._known[key] = (weakref.ref(storage, lambda _: self._known.pop(key, None)), filling)
        except Exception:
            pass  # only the place is lost


@dataclass(eq=False)
class _Candidate:
    ref: weakref.ref[Tensor]
    start: Tensor
    axis: int
    seen: EqualUnits


class Equals(Probe):
    """Weights whose units were equal before the first update, looked at again on later detailed steps."""

    areas = ("init",)
    instance: Equals | None = None

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.owners: dict[int, tuple[weakref.ref[nn.Module], str]] = {}
        self._roots: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._candidates: dict[int, _Candidate] = {}
        self._met: set[int] = set()
        Equals.instance = self

    def owner(self, parameter: Tensor) -> tuple[nn.Module | None, str]:
        """The module that holds a parameter, as far as root modules have run, and its name there."""
        entry = self.owners.get(self.session.ids.of(parameter))
        return (entry[0](), entry[1]) if entry else (None, "")

    def before_forward(self, run: ForwardRun) -> None:
        if run.module in self._roots:
            return
        self._roots.add(run.module)
        self._learn_owners(run.module)

    def _learn_owners(self, *roots: nn.Module) -> None:
        for module in (module for root in roots or list(self._roots) for module in root.modules()):
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    self.owners.setdefault(self.session.ids.of(parameter), (weakref.ref(module), name))

    def before_step(self, run: StepRun) -> None:
        if self.session.detailed:
            rate = run.optimizer.param_groups[0].get("lr")
            self._look([p for group in run.optimizer.param_groups for p in group["params"]],
                       float(rate) if isinstance(rate, (int, float)) else number(rate))

    def after_backward(self, run: BackwardRun) -> None:
        if self.session.detailed and self.session.optimizers == 0 and run.accumulate and self.session.step <= 2:
            self._look(leaves_of(run.roots), None)
        elif self.session.detailed and self.session.optimizers == 0:
            self._look([t for c in self._candidates.values() if (t := c.ref()) is not None], None)

    def _look(self, parameters: list[Any], rate: float | None) -> None:
        for parameter in parameters:
            if not readable(parameter) or parameter.dim() < 2 or parameter.grad is None:
                continue
            key = self.session.ids.of(parameter)
            candidate = self._candidates.get(key)
            if candidate is not None:
                self._compare(candidate, parameter, rate)
            elif key not in self._met:
                self._met.add(key)
                self._meet(key, parameter)

    def _meet(self, key: int, parameter: Tensor) -> None:
        """Equal units are looked for once, when a parameter first holds a gradient and has not yet been moved by it."""
        if len(self._candidates) >= CANDIDATES or not parameter.is_floating_point():
            return
        if key not in self.owners:
            self._learn_owners()  # a layer may have been exchanged in a model that has run before
        owner, name = self.owner(parameter)
        if isinstance(owner, (nn.Embedding, nn.EmbeddingBag)):
            return
        axis = next((axis for axis in self._axes(owner, parameter) if equal_along(parameter.detach(), axis)), None)
        if axis is None:
            return
        filling = Fillings.instance.of(parameter) if Fillings.instance else None
        seen = EqualUnits(
            step=self.session.step, key=f"equal-units-{key}", id=key, name=name, shape=shape_of(parameter),
            module_class=type(owner).__name__ if owner else "", units=int(parameter.shape[axis]), looks=0,
            last_step=self.session.step, moved=0.0, apart=0.0, graded=False,
            value=float(parameter.detach().reshape(-1)[0]),
            made_at=modules.made_at(owner) if owner is not None else None, set_by=filling.name if filling else "",
            set_at=filling.site if filling and not filling.by_library else _written_at(owner, name))
        start = units_of(parameter.detach(), axis).clone()
        self._candidates[key] = _Candidate(weakref.ref(parameter), start, axis, seen)

    @staticmethod
    def _axes(owner: nn.Module | None, parameter: Tensor) -> Iterator[int]:
        """Where a weight's units lie: dim 0 in layers, 1 in transposed convolutions; either in a bare matrix."""
        transposed = isinstance(owner, nn.modules.conv._ConvTransposeNd)
        bare = owner is None or not type(owner).__module__.startswith("torch.nn")
        axes = (1,) if transposed else (1, 0) if bare and parameter.dim() == 2 else (0,)
        yield from (axis for axis in axes if parameter.shape[axis] >= 2)

    def _compare(self, candidate: _Candidate, parameter: Tensor, rate: float | None) -> None:
        now = units_of(parameter.detach(), candidate.axis)
        if now.shape != candidate.start.shape:
            return
        gradient = parameter.grad
        seen = candidate.seen
        blocks = 4 if seen.module_class in ("LSTM", "LSTMCell") else 3 if seen.module_class in ("GRU", "GRUCell") else 1
        graded = gradient is not None and readable(gradient) and bool(torch.count_nonzero(gradient))
        candidate.seen = replace(
            seen, looks=seen.looks + 1, last_step=self.session.step, rate=rate, apart=apart(now, blocks),
            moved=float((now - candidate.start).abs().max()), graded=seen.graded or graded)
        self.session.emit(candidate.seen)


def _written_at(owner: nn.Module | None, name: str) -> Site | None:
    """The line of a user's module that makes a bare parameter."""
    if owner is None or type(owner).__module__.startswith("torch."):
        return None
    return source.assigned_at(type(owner), name)


def units_of(weight: Tensor, axis: int) -> Tensor:
    """A sample of a weight, one row a unit: [units up to 64, values up to 64], evenly strided."""
    rows = weight.movedim(axis, 0).flatten(1)
    return rows[:: max(1, -(-rows.shape[0] // SAMPLE)), :: max(1, -(-rows.shape[1] // SAMPLE))]


def equal_along(weight: Tensor, axis: int) -> bool:
    """Whether all units are exactly equal: a sample first, the whole only where that one is."""
    sample = units_of(weight, axis)
    return bool((sample == sample[:1]).all()) and bool((weight == weight.narrow(axis, 0, 1)).all())


def apart(rows: Tensor, blocks: int) -> float:
    """The largest difference between units; gates of recurrent layers are compared each with its own kind."""
    size = rows.shape[0] // blocks if rows.shape[0] % blocks == 0 else rows.shape[0]
    return max(float((block - block[:1]).abs().max()) for block in rows.split(max(size, 1)))
