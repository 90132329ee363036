"""What kind of program is timed: its batch, model, precision, optimizer and device."""
from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import torch
from torch.nn.modules.conv import _ConvNd
from torch.optim import Optimizer

from traindx.interventions.tools.stage import Backward, Part, RootCall, Stage
from traindx.perform.timing.clock import nodes_of
from traindx.probes.tensors import tensors_in

FIRST_STEPS = 5


class Facts(Part):
    """Looks at the first training forwards and steps. ``losses``: of the first backwards, read when they are asked for."""

    def __init__(self, stage: Stage, losses: int) -> None:
        self.stage = stage
        self.known: dict[str, Any] = {}
        self.evaluated = False
        self._evaluating = False
        self._evaluations: dict[int, bool] = {}  # of the first steps, whether a model was called without gradients
        self.forwards = 0
        self.nodes: list[int] = []  # of the graph of each of these backwards
        self._given: list[Any] = []  # what the model trained on in this step; kept, so that no two of them are the same memory
        self._backwards = 0
        self._batches: list[int] = []  # of the first steps, how many different ones each added up
        self._optimizers: set[int] = set()
        self._main: Any = None
        self._losses: list[Any] = []
        self._wanted = losses
        self._largest = 0

    def on_root_call(self, call: RootCall) -> None:
        self.forwards += call.has_parameters
        evaluates = call.has_parameters and not call.grad
        self.evaluated, self._evaluating = self.evaluated or evaluates, self._evaluating or evaluates
        if self.stage.steps < 3 and call.grad and call.has_parameters:
            self._look_at(call)
        if call.module is self._main and call.grad and len(self._batches) < FIRST_STEPS:
            self._given += tensors_in([call.args, call.kwargs], 1)

    def on_tick(self, step: int) -> None:
        if len(self._evaluations) < FIRST_STEPS:
            self._evaluations[step] = self._evaluating
        self._evaluating = False
        if len(self._batches) < FIRST_STEPS:
            self._batches.append(min(len({id(given) for given in self._given}), self._backwards))
        self._given, self._backwards = [], 0

    @property
    def evaluates_always(self) -> bool:
        """Whether that belongs to the step: all of the first few did it, but for the very first."""
        seen = list(self._evaluations.values())[1:]
        return len(seen) > 1 and all(seen)

    def _look_at(self, call: RootCall) -> None:
        parameters = list(call.module.parameters())
        size = sum(p.numel() for p in parameters)
        if size < self._largest:
            return
        self._largest, self._main = size, call.module
        first = next((t for t in tensors_in([call.args, call.kwargs], 1) if t.dim()), None)
        device = parameters[0].device
        self.known |= {
            "model": type(call.module).__name__, "parameters": size, "device": device.type,
            "dtype": str(parameters[0].dtype).removeprefix("torch."),
            "batch": int(first.shape[0]) if first is not None else None, "tokens": _tokens(first),
            "convolutions": any(isinstance(m, _ConvNd) and m.weight.dim() == 4 for m in call.module.modules())}

    def before_backward(self, run: Backward) -> None:
        self._backwards += run.trains
        if len(self._losses) < self._wanted and run.trains and run.roots:
            self._losses.append(run.roots[0].detach())
            self.nodes.append(nodes_of(run.roots))

    def on_root_return(self, call: RootCall) -> None:
        device = self.known.get("device", "cpu")
        if self.stage.steps < 3 and torch.is_autocast_enabled(device):
            self.known["autocast"] = str(torch.get_autocast_dtype(device)).removeprefix("torch.")

    @property
    def accumulated(self) -> int:
        """Batches of one step; 1 where several optimizers take turns, for then it is not known whose they are."""
        seen = sorted(self._batches[1:])
        return max(1, seen[len(seen) // 2]) if seen and len(self._optimizers) < 2 else 1

    def before_step(self, optimizer: Optimizer) -> None:
        if len(self._batches) < FIRST_STEPS:
            self._optimizers.add(id(optimizer))
        if "optimizer" not in self.known:
            group = optimizer.param_groups[0]
            self.known |= {"optimizer": type(optimizer).__name__, "lr": _number(group.get("lr")), "fused": bool(group.get("fused"))}

    @property
    def device(self) -> torch.device:
        """The model's; of a type alone, its current one."""
        return torch.device(self.known.get("device", "cpu"))

    @property
    def losses(self) -> list[float]:
        return [float(loss.double().mean()) for loss in self._losses]

    def told(self) -> dict[str, Any]:
        return {**self.known, "losses": self.losses, "threads": torch.get_num_threads(), "hardware": hardware(self.known.get("device")),
                "bf16": has_bf16(self.known.get("device")), "compiled": self.stage.compiled, "by_optimizer": self.stage.stepped,
                "accumulated": self.accumulated, "optimizers": max(1, len(self._optimizers))}


def _tokens(tensor: Any) -> int | None:
    """Of a batch of token ids: a whole-number matrix."""
    whole = tensor is not None and tensor.dim() == 2 and not tensor.is_floating_point() and tensor.dtype != torch.bool
    return int(tensor.numel()) if whole else None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def hardware(device: str | None) -> str:
    if device == "cuda":
        return str(torch.cuda.get_device_name())
    model = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    return model


def has_bf16(device: str | None) -> bool:
    """Whether the processor computes in bfloat16 itself, rather than by detours that are slower than float32."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    flags = ""
    if os.path.exists("/proc/cpuinfo"):
        flags = next((line for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines() if line.startswith("flags")), "")
    return any(name in flags.split() for name in ("avx512_bf16", "amx_bf16"))
