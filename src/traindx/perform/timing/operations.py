"""Counts the operations of a step, phase by phase and line by line, and times those that run outside every phase."""
from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from traindx.core.observed import Site
from traindx.perform.timing.clock import HOST, Clock
from traindx.perform.timing.sampler import FILLING, runs_in
from traindx.probes import sites


class Operations(TorchDispatchMode):  # type: ignore[misc]
    """Entered and left between steps. ``outside``: seconds of operations that the program called itself, in no phase, and not on lines that
    are ``filling`` a batch."""

    def __init__(self, clock: Clock, filling: Sequence[tuple[str, int, int]] = ()) -> None:
        super().__init__()
        self.clock, self.filling = clock, filling
        self.steps = 0
        self.counts: Counter[str] = Counter()  # by phase
        self.lines: Counter[Site] = Counter()  # of forwards and of the program's own operations
        self.outside = 0.0
        self.call_seconds = 0.0
        self.elements = 0  # of the largest tensor that each was given, added up

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        phase = self.clock.phase
        if phase == HOST and self.filling and runs_in(sys._getframe(1), self.filling):
            phase = FILLING
        self.counts[phase] += 1
        self.elements += _largest(args)
        if phase in (HOST, "forward", "loss") and (site := sites.here(1)) is not None:
            self.lines[site] += 1
        if phase != HOST:
            return func(*args, **(kwargs or {}))
        began = time.perf_counter()
        result = func(*args, **(kwargs or {}))
        self.outside += time.perf_counter() - began
        return result


def _largest(args: Any) -> int:
    """Elements of the largest tensor; of a list of tensors, of all of them."""
    lists = (value if isinstance(value, (list, tuple)) else (value,) for value in args)
    return max((sum(t.numel() for t in each if isinstance(t, Tensor)) for each in lists), default=0)


CALLS = 100


def call_seconds(device: torch.device) -> float:
    """What an operation on one number takes, with its share of the backward: what a call costs on this machine, now."""
    with torch.enable_grad():
        end = one = torch.ones(1, device=device, requires_grad=True)
        began = time.perf_counter()
        for _ in range(CALLS):
            end = end + 1
        torch.autograd.grad(end.sum(), one)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return (time.perf_counter() - began) / (2 * CALLS)
