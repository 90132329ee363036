"""The light tracer of a trial: one message per step, one per validation pass, and what kind of program this is."""
from __future__ import annotations

import hashlib
import time
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from traindx.core.codec import encode
from traindx.core.trials import Step
from traindx.interventions.tools import rows
from traindx.interventions.tools.stage import Backward, LossCall, Part, RootCall, Stage
from traindx.probes.tensors import plain, tensors_in

EXACT = 4_000_000  # parameters whose movement is measured in full; beyond, by a sample of each tensor
SAMPLED = 4096
FIRST = 12  # steps whose hashes are kept


class Tracer(Part):
    """Enters last, so that it sees what really went in. The loss is what the loss calls returned that were part of a
    backward; where no torch loss was, what went into backward, without a GradScaler's factor.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.validations = 0
        self.batches: set[tuple[str | None, str | None]] = set()  # hashes of what the first steps saw
        self._losses: list[float] = []
        self._pending: list[tuple[float, int, bool, bool]] = []  # value, samples, in eval mode, without gradients
        self._roots: list[float] = []
        self._inputs = hashlib.blake2b(digest_size=8)
        self._targets = hashlib.blake2b(digest_size=8)
        self._has_input = self._has_target = False
        self._samples = 0
        self._summed = False  # a loss call with reduction="sum"
        self._counted = False  # the samples of the micro-batch under way
        self._scale: float | None = None
        self._norm: float | None = None
        self._rate: float | None = None
        self._moved: float | None = None
        self._before: list[Tensor] = []
        self._root_grad = True
        self._eval = False
        self._tick = time.perf_counter()

    # -- forwards and losses ----------------------------------------------------------------------------------------

    def on_root_call(self, call: RootCall) -> None:
        if call.has_parameters:
            self._root_grad, self._eval = call.grad, not call.training
        if not call.grad:
            return
        for tensor in tensors_in([call.args, call.kwargs], 64):
            if tensor.grad_fn is None and plain(tensor):
                self._has_input = True
                self._inputs.update(rows.digest(tensor).encode())
                self._count_samples(tensor)

    def _count_samples(self, tensor: Tensor) -> None:
        if not self._counted and tensor.dim():
            self._counted = True
            self._samples += int(tensor.shape[0])

    def on_loss_return(self, call: LossCall) -> None:
        value = _mean(call.output)
        if value is None:
            return
        training = call.grad and isinstance(call.output, Tensor) and call.output.requires_grad
        target = call.target if isinstance(call.target, Tensor) and plain(call.target) else None
        if not training:
            if not self._root_grad and not call.grad:
                self._pending.append((value, len(target) if target is not None and target.dim() else 1, True, True))
            return
        if target is not None and target.grad_fn is None:
            self._has_target = True
            self._targets.update(rows.digest(target).encode())
            self._count_samples(target)
        self._summed |= call.arguments.get("reduction") == "sum"
        self._follow(call.output, value, target)

    def _follow(self, output: Tensor, value: float, target: Tensor | None) -> None:
        """It counts as a training loss when a backward reaches it; else, in eval mode, as validation."""
        entry = (value, len(target) if target is not None and target.dim() else 1, self._eval, False)
        self._pending.append(entry)

        def reached(gradient: Tensor) -> None:
            if entry in self._pending:
                self._pending.remove(entry)
                self._losses.append(value)
        output.register_hook(reached)

    # -- backward and step ------------------------------------------------------------------------------------------

    def before_backward(self, run: Backward) -> None:
        if not run.trains or not run.roots:
            return
        value = _mean(run.roots[0])
        if value is not None:
            self._roots.append(value)
        self._scale = self.stage.scale if self.stage.scale is not None else self._scale
        self._counted = False

    def before_step(self, optimizer: Optimizer) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self._before = [_part(p, _size(parameters)) for p in parameters]

    def before_update(self, optimizer: Optimizer) -> None:
        gradients = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        self._norm = _norm([g for g in gradients if g.layout is torch.strided])

    def before_any_step(self, optimizer: Optimizer) -> None:
        rates = [float(group["lr"]) for group in optimizer.param_groups if group.get("lr") is not None]
        self._rate = max(rates, default=self._rate)

    def after_step(self, optimizer: Optimizer) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        size = _size(parameters)
        changes = [_part(p, size).sub_(before) for p, before in zip(parameters, self._before)]
        factor = 1.0 if size <= EXACT else (size / max(1, sum(c.numel() for c in changes))) ** 0.5
        moved = _norm(changes)
        self._moved = None if moved is None else moved * factor
        self._before = []

    # -- messages ---------------------------------------------------------------------------------------------------

    def on_tick(self, step: int) -> None:
        self._say_validation(step - 1)
        now = time.perf_counter()
        made = self._step(step, now - self._tick)
        if step <= FIRST:
            self.batches.add((made.inputs, made.target))
        self.stage.send({"step": encode(made)})
        self._tick = now
        self._start_anew()

    def _step(self, step: int, seconds: float) -> Step:
        root = _average(self._roots)
        scale = self._scale
        loss = _average(self._losses)
        if root is not None and (loss is None or self._divided(root / (scale or 1.0))):
            loss = root / (scale or 1.0)
        return Step(step, loss, root, self._rate, self._norm, self._moved,
                    self._inputs.hexdigest() if self._has_input else None,
                    self._targets.hexdigest() if self._has_target else None, self._samples or None, scale, seconds)

    def _divided(self, root: float) -> bool:
        """Sums over all samples that the program divides afterwards, as transformers does: it is the quotient that it means."""
        return self._summed and abs(root - sum(self._losses)) > 1e-6 * abs(root)

    def _start_anew(self) -> None:
        self._losses, self._roots, self._pending = [], [], []
        self._inputs, self._targets = hashlib.blake2b(digest_size=8), hashlib.blake2b(digest_size=8)
        self._has_input = self._has_target = self._counted = False
        self._samples = 0
        self._norm = self._moved = self._scale = self._rate = None
        self._summed = False

    def _say_validation(self, step: int) -> None:
        seen = [(value, count) for value, count, evaluating, without in self._pending if evaluating]
        if seen and step:
            total = sum(count for _, count in seen)
            self.validations += 1
            mean = sum(value * count for value, count in seen) / max(total, 1)
            self.stage.send({"validation": [step, encode(mean)]})

    def at_end(self) -> None:
        self._say_validation(self.stage.steps)


def _mean(value: Any) -> float | None:
    """A loss as a number; of one per sample, the mean."""
    if not isinstance(value, Tensor) or not plain(value) or not value.numel() or value.is_complex():
        return None
    with torch.no_grad():
        return float(value.detach().double().mean())


def _average(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _norm(tensors: list[Tensor]) -> float | None:
    dense = [t.detach() for t in tensors if t.numel()]
    if not dense:
        return None
    with torch.no_grad():
        return float(sum(float(n) ** 2 for n in torch._foreach_norm(dense)) ** 0.5)


def _size(parameters: list[Tensor]) -> int:
    return sum(p.numel() for p in parameters)


def _part(parameter: Tensor, size: int) -> Tensor:
    """A copy to compare with later: all of it in a small model, else evenly spread elements."""
    flat = parameter.detach()
    if size <= EXACT:
        return flat.clone()
    flat = flat.reshape(-1)
    return flat[::(flat.numel() // SAMPLED) | 1].clone()
