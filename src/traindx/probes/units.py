"""Units at work: ReLUs that are never above zero, and sigmoids and tanhs that are pinned at the ends of their range."""
from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from traindx.core.observed import Site
from traindx.core.observed.start import PinnedUnits, UnitsSeen
from traindx.probes import modules, patching, sites
from traindx.probes.session import Budget, ForwardRun, Probe, Session
from traindx.probes.starts import Equals, Fillings
from traindx.probes.tensors import plain, readable, sample, tensors_in

RECTIFIERS, SQUASHERS = ("relu", "relu_", "clamp", "clamp_", "clamp_min"), ("sigmoid", "tanh")
EVERY = 4  # steps between looks at ReLUs
LIMIT = 1 << 17  # elements of an output that are looked at
LAYERS = 128
SHORTEST = 16  # steps of a stretch
PASSED = ("View", "UnsafeView", "Reshape", "NativeBatchNorm", "NativeLayerNorm", "Add", "Transpose")
END = 0.01  # of the range counts as its end


def install(session: Session) -> None:
    session.add(Units)
    probe = next((p for p in session.probes if isinstance(p, Units)), None)
    if probe is None:
        return
    for owner in (torch, Tensor):
        for name in RECTIFIERS + SQUASHERS:
            patching.replace(session.stack, owner, name, _maker(name, session, probe))


def _maker(name: str, session: Session, probe: Units) -> Callable[[Any], Any]:
    guard, is_compiling, enabled = session.guard, torch.compiler.is_compiling, torch.is_grad_enabled
    look = probe.rectified if name in RECTIFIERS else probe.squashed
    thread, clamps = session.thread, name.startswith("clamp")
    is_plain, cuts = plain, _cuts_at_zero  # the wrapper sees its closure only

    def make(original: Any) -> Any:
        def activation(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or not probe.on or session.coasting or thread.busy or not enabled() or not session.active:
                return original(*args, **kwargs)
            before = args[0].grad_fn if args and is_plain(args[0]) else None
            output = original(*args, **kwargs)
            if before is not None and not (clamps and not cuts(args, kwargs)):
                guard(probe, look, name, args[0], before, output)
            return output
        return patching.shadow(activation, original)  # type: ignore[arg-type]
    return make


def _cuts_at_zero(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """``clamp(x, 0)`` and ``clamp(x, min=0)`` without an upper limit are ReLUs."""
    low = args[1] if len(args) > 1 else kwargs.get("min")
    high = args[2] if len(args) > 2 else kwargs.get("max")
    return isinstance(low, (int, float)) and low == 0 and high is None


@dataclass(eq=False)
class _Layer:
    number: int
    site: Site | None
    units: int
    alive: Tensor
    facts: dict[str, Any]
    bias: weakref.ref[Tensor] | None
    before: Tensor | None = None
    begun: int = 1
    last: int = 1
    samples: int = 0
    looks: int = 0
    dead_at_start: int = 0
    stretch: int = 0

    def mean_bias(self) -> float | None:
        bias = self.bias() if self.bias is not None else None
        return float(bias.detach().float().mean()) if bias is not None and readable(bias) else None


class Units(Probe):
    """Looks at every fourth step, and at all of the first ones, while it is cheap."""

    areas = ("init",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.on = True
        self._layers: dict[tuple[Any, ...], _Layer] = {}
        self._places: dict[tuple[int, int], int] = {}
        self._met: dict[int, int] = {}
        self._pinned: dict[tuple[int, int], PinnedUnits] = {}
        self._results: dict[tuple[int, int], int] = {}
        self._optimizer_at: Site | None = None
        self._budget = Budget(session)

    def on_optimizer(self, optimizer: torch.optim.Optimizer, id: int, site: Site | None) -> None:
        self._optimizer_at = self._optimizer_at or site

    def before_forward(self, run: ForwardRun) -> None:
        self._met.clear()

    # -- ReLU -------------------------------------------------------------------------------------------------------

    def rectified(self, name: str, input: Tensor, before: Any, output: Any) -> None:
        if not readable(output) or output.dim() < 2 or output.numel() == 0:
            return
        with self._budget.paying():
            axis = unit_axis(before, output.dim())
            layer = self._layer(before, output, axis)
            if layer is None:
                return
            values = thinned(output.detach(), axis)
            others = [d for d in range(values.dim()) if d != axis]
            layer.alive |= values.amax(others) > 0
            layer.samples += values.numel() // layer.units
            layer.looks += 1
            layer.last = self.session.step
            if self.session.step == 1:
                layer.dead_at_start = int((~layer.alive).sum())

    def _order(self, site: Site | None) -> int:
        order = self._met[id(site)] = self._met.get(id(site), -1) + 1
        return order

    def _layer(self, before: Any, output: Tensor, axis: int) -> _Layer | None:
        site = sites.here(5)
        units = int(output.shape[axis])
        key = (id(site), self._order(site), units)
        layer = self._layers.get(key)
        if layer is None and units >= 4 and len(self._layers) < LAYERS:
            weight, bias = producer(before)
            layer = self._layers[key] = _Layer(
                len(self._layers), site, units, torch.zeros(units, dtype=torch.bool), filled(weight, bias),
                weakref.ref(bias) if bias is not None else None, begun=self.session.step)
        return layer

    # -- sigmoid and tanh -------------------------------------------------------------------------------------------

    def squashed(self, name: str, input: Tensor, before: Any, output: Any) -> None:
        if not self.session.detailed or not self.session.thread.depth or not readable(output):
            return
        if output.numel() < 16 or output.dim() < 2:
            return
        site = sites.here(4)
        weight, bias = producer(before)
        if weight is None:
            return  # gates and scores that are computed from sums of layers
        values = sample(output).float()
        ends = (values > 1 - END) | (values < END) if name == "sigmoid" else values.abs() > 1 - END
        slope = 4 * values * (1 - values) if name == "sigmoid" else 1 - values * values
        facts = filled(weight, bias)
        key = (id(site), self._order(site))
        self._results[key] = output.untyped_storage().data_ptr()
        self._pinned[key] = PinnedUnits(
            step=self.session.step, layer=self._place(key), function=name, site=site, slope=float(slope.mean()),
            pinned=float(ends.float().mean()), made_at=facts["made_at"], weight_set_at=facts["weight_set_at"],
            spread=float(sample(input).float().std(unbiased=False)) if input is not output else 0.0)

    def _place(self, key: tuple[int, int]) -> int:
        return self._places.setdefault(key, len(self._places))

    def after_forward(self, run: ForwardRun) -> None:
        """What leaves the root is a head; what stays inside feeds something."""
        pinned, self._pinned, results, self._results = self._pinned, {}, self._results, {}
        if not pinned:
            return
        heads = {t.untyped_storage().data_ptr() for t in tensors_in(run.output) if readable(t)}
        for key, seen in pinned.items():
            self.session.emit(replace(seen, feeds=results[key] not in heads))

    # -- stretches --------------------------------------------------------------------------------------------------

    def on_tick(self, step: int) -> None:
        self._met.clear()
        self.on = (self.session.detailed or self.session.step % EVERY == 0) and self._budget.allows()
        if self.session.detailed and self._layers:
            self._say()
            if step >= SHORTEST and step & (step - 1) == 0:
                self._next_stretch()

    def at_end(self) -> None:
        self._say()

    def _say(self) -> None:
        for layer in self._layers.values():
            if not layer.looks:
                continue
            dead = ~layer.alive
            self.session.emit(UnitsSeen(
                step=layer.begun, key=f"units-{layer.number}-{layer.stretch}", layer=layer.number, site=layer.site,
                units=layer.units, dead=int(dead.sum()), samples=layer.samples, looks=layer.looks,
                first_step=layer.begun, stayed=int((dead & layer.before).sum()) if layer.before is not None else 0,
                last_step=layer.last, dead_at_start=layer.dead_at_start, bias=layer.mean_bias(),
                optimizer_at=self._optimizer_at, **layer.facts))

    def _next_stretch(self) -> None:
        for layer in self._layers.values():
            if layer.looks:
                layer.before, layer.alive = ~layer.alive, torch.zeros_like(layer.alive)
                layer.begun, layer.samples, layer.looks = self.session.step, 0, 0
                layer.stretch += 1


def unit_axis(before: Any, dims: int) -> int:
    """Where the units lie in an output [batch, ..]: dim 1 after a convolution or BatchNorm, else the last."""
    name = type(before).__name__
    if dims == 2:
        return 1
    channels_first = "Conv" in name or "BatchNorm" in name
    flat = name.startswith(("View", "UnsafeView", "Addmm"))
    return 1 if channels_first or (dims >= 4 and not flat) else dims - 1


def thinned(values: Tensor, axis: int) -> Tensor:
    """At most about LIMIT elements, whole rows of the units kept: fewer samples first, then fewer positions."""
    for dim in range(values.dim()):
        if dim != axis and values.numel() > LIMIT:
            stride = min(values.shape[dim], -(-values.numel() // LIMIT))
            values = values[(slice(None),) * dim + (slice(None, None, stride),)]
    return values


def producer(node: Any) -> tuple[Tensor | None, Tensor | None]:
    """Weight and bias of the layer whose output this autograd node made, through reshapes and a norm."""
    for _ in range(4):
        if node is None:
            return None, None
        leaves = [leaf for following, _ in node.next_functions if (leaf := _leaf(following)) is not None]
        weight = next((leaf for leaf in leaves if leaf.dim() >= 2), None)
        if weight is not None:
            return weight, next((leaf for leaf in leaves if leaf.dim() == 1), None)
        if not type(node).__name__.startswith(PASSED):
            return None, None
        node = node.next_functions[0][0] if node.next_functions else None
    return None, None


def _leaf(node: Any) -> Tensor | None:
    """The parameter behind a node, also through the transpose that a linear layer makes."""
    if node is not None and type(node).__name__ in ("TBackward0", "TransposeBackward0", "PermuteBackward0"):
        node = node.next_functions[0][0]
    variable = getattr(node, "variable", None)
    return variable if isinstance(variable, Tensor) else None


def filled(weight: Tensor | None, bias: Tensor | None) -> dict[str, Any]:
    """Where a layer was made and who filled its weight and bias, where that was the program itself."""
    owner: nn.Module | None = None
    if weight is not None and Equals.instance is not None:
        owner, _ = Equals.instance.owner(weight)

    def site(tensor: Tensor | None) -> Site | None:
        filling = Fillings.instance.of(tensor) if Fillings.instance is not None and tensor is not None else None
        return filling.site if filling is not None and not filling.by_library else None
    return {"layer_class": type(owner).__name__ if owner is not None else "",
            "made_at": modules.made_at(owner) if owner is not None else None,
            "bias_set_at": site(bias), "weight_set_at": site(weight)}
