"""Where the time of a step goes: one clock that is handed from phase to phase, so that every moment belongs to one of them."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from torch import Tensor

from traindx.core.observed import Site
from traindx.interventions.tools.stage import Backward, LossCall, Part, RootCall, Stage
from traindx.probes.tensors import tensors_in

HOST = "host"
PHASES = ("input", "forward", "loss", "backward", "optimizer", "sync", "transfer", "logging", "evaluation", HOST)


class Clock(Part):
    """``running``: only then is anything counted; else each seam costs one test. Times are those of the thread that trains; on a GPU
    they are the times to queue work, and what is waited for shows as ``sync``."""

    def __init__(self, stage: Stage, now: Callable[[], float] = time.perf_counter) -> None:
        self.stage, self.now = stage, now
        self.running = False
        self.phase = HOST
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self.calls: dict[str, dict[Site, list[float]]] = {}  # phase -> line -> [calls, seconds]
        self.backward_site: Site | None = None
        self.backward_seconds: list[float] = []  # of each step
        self.graph_nodes: list[int] = []  # of the first backward of each step
        self.steps = 0
        self._stack: list[str] = []
        self._last = 0.0

    def start(self) -> None:
        self._stack, self.phase = [], HOST
        self._last, self.running = self.now(), True

    def stop(self) -> None:
        self._hand_over(HOST)
        self.running = False

    def enter(self, phase: str) -> None:
        self._stack.append(self.phase)
        self._hand_over(phase)

    def leave(self) -> None:
        self._hand_over(self._stack.pop() if self._stack else HOST)

    def _hand_over(self, phase: str) -> None:
        now = self.now()
        self.seconds[self.phase] += now - self._last
        self._last, self.phase = now, phase

    def timed(self, phase: str, original: Callable[..., Any], args: Any, kwargs: Any, site: Site | None = None) -> Any:
        """``original(*args, **kwargs)`` in its phase; its line's calls and seconds are added up."""
        self.enter(phase)
        began = self._last
        try:
            return original(*args, **kwargs)
        finally:
            self.leave()
            if site is not None:
                row = self.calls.setdefault(phase, {}).setdefault(site, [0, 0.0])
                row[0] += 1
                row[1] += self._last - began

    # -- the stage's seams ------------------------------------------------------------------------------------------------

    def on_root_call(self, call: RootCall) -> None:
        if self.running:
            self.enter("forward" if call.grad else "evaluation")

    def on_root_return(self, call: RootCall) -> None:
        if self.running:
            self.leave()

    def on_loss_call(self, call: LossCall) -> None:
        if self.running:
            self.enter("loss" if call.grad else "evaluation")

    def on_loss_return(self, call: LossCall) -> None:
        if self.running:
            self.leave()

    def before_backward(self, run: Backward) -> None:
        if self.running and run.trains:
            self.backward_site = run.site or self.backward_site
            self._count_nodes(run.roots)
            self.enter("backward")
            self._began = self._last

    def _count_nodes(self, roots: Any) -> None:
        """Now and then, in nobody's time."""
        if self.steps % EVERY == 0 and len(self.graph_nodes) <= self.steps // EVERY:
            self._hand_over(self.phase)
            self.graph_nodes.append(nodes_of(roots))
            self._last = self.now()

    def after_backward(self, run: Backward) -> None:
        if self.running and run.trains:
            self.leave()
            while len(self.backward_seconds) <= self.steps:
                self.backward_seconds.append(0.0)
            self.backward_seconds[self.steps] += self._last - self._began

    def before_step(self, optimizer: Any) -> None:
        if self.running:
            self.enter("optimizer")

    def after_step(self, optimizer: Any) -> None:
        if self.running:
            self.leave()

    def on_tick(self, step: int) -> None:
        self.steps += self.running


EVERY = 4  # steps
MOST_NODES = 20_000


def nodes_of(roots: Any, most: int = MOST_NODES) -> int:
    """Nodes of the autograd graph behind these tensors, counted up to ``most``."""
    waiting = [t.grad_fn for t in tensors_in(roots) if isinstance(t, Tensor) and t.grad_fn is not None]
    seen = set(waiting)
    while waiting and len(seen) < most:
        for node, _ in waiting.pop().next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                waiting.append(node)
    return len(seen)

