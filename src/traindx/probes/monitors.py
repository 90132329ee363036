"""Four of the six monitors: gradient norm, update ratio and weight norm of each step, and the layers' activation std.

Norms are L2 over all tensors in one fused call; updates are seen on at most 256 elements of each tensor, so that their
price does not grow with the model (an infinity norm, or a copy of the parameters, costs ten times as much). Numbers on
a GPU are copied without waiting and read some steps later, when they have arrived.
"""
from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from traindx.probes.modules import Forwards
from traindx.probes.session import BackwardRun, Budget, Probe, Session, StepRun
from traindx.probes.tensors import plain, sample, tensors_in

SAMPLED = 256  # elements of a parameter whose change is measured
ACTIVATION_SAMPLE = 1024
FREE_STEPS = 16  # measured whatever it costs
SHARE = 0.02  # of the run's time, afterwards
READ_LATER = ("cuda",)


def install(session: Session) -> None:
    session.add(Monitors)


@dataclass
class Before:
    """Measured before an optimizer step: sampled elements, and the gradient norm where the step would spoil it."""

    optimizer: int
    elements: Tensor
    norm: Tensor | None


class Monitors(Probe):
    """``grad_norm`` is that of the gradients as the step used them: after clipping, without a GradScaler's factor.
    ``update_ratio`` is |new - old| / |old| over all parameters, ``weight_norm`` |new|."""

    areas = ("optim", "curve", "init")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._budget = Budget(session, SHARE, FREE_STEPS)
        self._before: Before | None = None
        self._weights: dict[int, tuple[tuple[int, ...], Tensor]] = {}
        self._activations: list[Tensor] = []
        self._later = Later(session)

    # -- optimizer steps --------------------------------------------------------------------------------------------

    def before_step(self, run: StepRun) -> None:
        self._before = None
        if not self._budget.allows():
            return
        with self._budget.paying(), torch.no_grad():
            parameters = trainable(run.optimizer)
            if parameters:
                scale = getattr(run.optimizer, "grad_scale", None)  # a fused optimizer divides by it itself, in place
                norm = norm_of(gradients(parameters)) if isinstance(scale, Tensor) else None
                self._before = Before(run.id, elements_of(parameters), None if norm is None else norm / scale)

    def after_step(self, run: StepRun) -> None:
        before, self._before = self._before, None
        if before is None or before.optimizer != run.id:
            return
        with self._budget.paying(), torch.no_grad():
            parameters = trainable(run.optimizer)
            # a step that was given a closure has computed its gradients only now
            norm = norm_of(gradients(parameters)) if before.norm is None else before.norm
            values = {"weight_norm": norm_of(parameters)} | ({} if norm is None else {"grad_norm": norm})
            after = elements_of(parameters)
            if after.shape == before.elements.shape:
                values["update_ratio"] = update_ratio(before.elements, after, self._weights_for(run.id, parameters))
            self._record(values)

    def _weights_for(self, optimizer: int, parameters: list[Tensor]) -> Tensor:
        """How many elements each sampled one stands for; made on the device, once, for a copy to it would wait."""
        sizes = tuple(p.numel() for p in parameters)
        known = self._weights.get(optimizer)
        if known is None or known[0] != sizes:
            device = parameters[0].device
            parts = [torch.full((sampled(size),), size / sampled(size), device=device) for size in sizes]
            known = self._weights[optimizer] = (sizes, torch.cat(parts))
        return known[1]

    def after_backward(self, run: BackwardRun) -> None:
        """Updates by hand: there is no step to measure around, but the gradients are there."""
        if self.session.optimizers or not run.accumulate or Forwards.instance is None or not self._budget.allows():
            return
        with self._budget.paying(), torch.no_grad():
            parameters = readable_parts([p for root in Forwards.instance.roots() for p in root.parameters()])
            norm = norm_of(gradients(parameters))
            if norm is not None:
                self._record({"grad_norm": norm, "weight_norm": norm_of(parameters)})

    # -- activations ------------------------------------------------------------------------------------------------

    def after_module(self, module: nn.Module, path: str, args: tuple[Any, ...], output: Any) -> None:
        if not torch.is_grad_enabled() or not module._parameters or module._modules or not self._budget.allows():
            return
        value = next(tensors_in(output, 1), None)
        if value is None or not plain(value) or not value.is_floating_point() or value.numel() < 2:
            return
        with self._budget.paying(), torch.no_grad():
            self._activations.append(sample(value, ACTIVATION_SAMPLE).float().std(unbiased=False))

    def on_tick(self, step: int) -> None:
        taken, self._activations = on_one_device(self._activations), []
        if taken:
            with torch.no_grad():
                self._record({f"std {number}": value for number, value in enumerate(taken)})
        self._later.collect()

    def at_end(self) -> None:
        self._later.collect(wait=True)

    def _record(self, values: dict[str, Tensor | None]) -> None:
        named = {name: value for name, value in values.items() if value is not None}
        if not named:
            return
        stacked = torch.stack([value.float() for value in named.values()])
        if stacked.device.type == "cpu":
            for name, number in summary(named, stacked.tolist()).items():
                self.session.metric(name, number)
        elif stacked.device.type in READ_LATER:
            self._later.put(tuple(named), stacked)


class Later:
    """Numbers on their way from a GPU: the step they belong to, an event that says when they have arrived."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._pending: deque[tuple[int, tuple[str, ...], Tensor, Any]] = deque(maxlen=64)

    def put(self, names: tuple[str, ...], values: Tensor) -> None:
        host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
        host.copy_(values, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record(torch.cuda.current_stream(values.device))
        self._pending.append((self.session.step, names, host, arrived))

    def collect(self, wait: bool = False) -> None:
        """Writes what has arrived, under its own step. Waits only at the end of the program."""
        while self._pending and (wait or self._pending[0][3].query()):
            step, names, host, arrived = self._pending.popleft()
            if wait:
                arrived.synchronize()
            self.session.recorder.metrics(step, summary(names, host.tolist()))


def summary(names: Sequence[str] | dict[str, Any], numbers: list[float]) -> dict[str, float]:
    """Metrics by name. Activation stds become one middle value and the extremes over layers; NaN anywhere makes NaN."""
    metrics = {name: number for name, number in zip(names, numbers) if not name.startswith("std ")}
    if math.isinf(metrics.get("update_ratio", 0.0)) and math.isfinite(metrics.get("weight_norm", math.inf)):
        del metrics["update_ratio"]  # all parameters were zero: there was nothing to compare with
    stds = [number for name, number in zip(names, numbers) if name.startswith("std ")]
    if stds:
        broken = any(math.isnan(std) for std in stds)
        middle = math.nan if broken else statistics.median(stds)
        metrics |= {"activation_std": middle, "activation_std_min": min(stds), "activation_std_max": max(stds)}
    return metrics


def trainable(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """The optimizer's parameters that may be looked at."""
    return readable_parts([p for group in optimizer.param_groups for p in group["params"]])


def readable_parts(parameters: list[Any]) -> list[Tensor]:
    return on_one_device([p for p in parameters if plain(p) and p.is_floating_point() and p.numel()])


def on_one_device(values: list[Tensor]) -> list[Tensor]:
    """Those that lie where the first does: a model spread over devices is judged by its first part."""
    return [value for value in values if value.device == values[0].device]


def gradients(parameters: list[Tensor]) -> list[Tensor]:
    return [p.grad for p in parameters if p.grad is not None and plain(p.grad)]


def norm_of(values: list[Tensor]) -> Tensor | None:
    """The L2 norm over all elements of all tensors, in float32 at least: a half would overflow at 65504."""
    if not values:
        return None
    dtype = torch.float64 if values[0].dtype == torch.float64 else torch.float32
    return torch.linalg.vector_norm(torch.stack(list(torch._foreach_norm(values, 2, dtype=dtype))))


def elements_of(parameters: list[Tensor]) -> Tensor:
    """At most 256 elements of each parameter, always the same ones, in one copy."""
    return torch.cat([_strided(p.detach()) for p in parameters]).float()


def _strided(value: Tensor) -> Tensor:
    stride = _stride(value.numel())
    if not value.is_contiguous():
        return value.reshape(-1)[::stride]
    return value.as_strided((sampled(value.numel()),), (stride,))


def _stride(count: int) -> int:
    return -(-count // SAMPLED) | 1 if count > SAMPLED else 1  # odd, lest it fall on one channel


def sampled(count: int) -> int:
    """How many of ``count`` elements are looked at."""
    return -(-count // _stride(count))


def update_ratio(before: Tensor, after: Tensor, weights: Tensor) -> Tensor:
    """|after - before| / |before|, each sampled element counted for those that it stands for."""
    return (torch.dot((after - before).square(), weights) / torch.dot(before.square(), weights)).sqrt()
