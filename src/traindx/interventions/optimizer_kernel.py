"""The optimizer steps by another kernel: ``to`` = ``fused`` (one kernel for all), ``foreach`` (one operation over all tensors) or ``single``.

The update is the same arithmetic, rounded in another order.
"""
from __future__ import annotations

import weakref
from typing import Any, Literal

from torch import Tensor
from torch.optim import Optimizer

from traindx.core.text import Text
from traindx.interventions.tools.stage import Stage
from traindx.interventions.tools.switched import Switched

Kernel = Literal["fused", "foreach", "single"]
KERNELS: dict[Kernel, tuple[bool, bool]] = {"fused": (False, True), "foreach": (True, False), "single": (False, False)}
DEVICES = ("cpu", "cuda", "mps", "xpu")  # that have fused kernels


class OptimizerKernel(Switched):
    """Of every optimizer of torch that steps; put back as it was when it is switched off."""

    NOTHING = Text("The optimizer has no such kernel, or uses it already.", "优化器没有这种实现，或者已经在用。")

    def __init__(self, stage: Stage, to: Kernel = "fused") -> None:
        super().__init__(stage)
        if to not in KERNELS:
            raise ValueError(f"to: one of {', '.join(KERNELS)}")
        self.to = to
        self._changed: weakref.WeakKeyDictionary[Optimizer, list[tuple[Any, Any]]] = weakref.WeakKeyDictionary()

    def before_any_step(self, optimizer: Optimizer) -> None:
        if self.on and optimizer not in self._changed and self._can(optimizer):
            self._changed[optimizer] = [(group.get("foreach"), group.get("fused")) for group in optimizer.param_groups]
            for group in optimizer.param_groups:
                _use(optimizer, group, *KERNELS[self.to])
        elif not self.on and optimizer in self._changed:
            for group, (foreach, fused) in zip(optimizer.param_groups, self._changed.pop(optimizer)):
                _use(optimizer, group, foreach, fused)
        self.touched += self.on and optimizer in self._changed

    def _can(self, optimizer: Optimizer) -> bool:
        foreach, fused = KERNELS[self.to]
        groups = optimizer.param_groups
        if any("fused" not in group if fused else "foreach" not in group for group in groups):
            return False
        if any(group.get("differentiable") or group.get("capturable") for group in groups):
            return False
        if all(bool(group.get("foreach")) == foreach and bool(group.get("fused")) == fused for group in groups):
            return False
        return not fused or all(p.is_floating_point() and p.device.type in DEVICES for group in groups for p in group["params"])


def _use(optimizer: Optimizer, group: dict[str, Any], foreach: Any, fused: Any) -> None:
    """Fused kernels keep the count of steps on the parameters' device, the others on the CPU."""
    group["foreach"], group["fused"] = foreach, fused
    for parameter in group["params"]:
        step = optimizer.state.get(parameter, {}).get("step")
        if isinstance(step, Tensor):
            optimizer.state[parameter]["step"] = step.to(parameter.device if fused else "cpu")
    if fused:
        optimizer._step_supports_amp_scaling = True  # type: ignore[attr-defined]
    elif hasattr(optimizer, "_step_supports_amp_scaling"):
        del optimizer._step_supports_amp_scaling
