"""The seam of autograd: one name that every backward passes through, ``torch.autograd._engine_run_backward``."""
from __future__ import annotations

import math
from typing import Any

import torch

from traindx.core.observed.program import BackwardCall
from traindx.probes import patching, sites
from traindx.probes.session import BackwardRun, Probe, ScalerRun, Session
from traindx.probes.tensors import number


def install(session: Session) -> None:
    patching.replace(session.stack, torch.autograd, "_engine_run_backward", lambda original: _observed(original, session))
    session.add(Backwards)


def _observed(original: Any, session: Session) -> Any:
    thread = session.thread

    def run_backward(roots: Any, *args: Any, **kwargs: Any) -> Any:
        # nested calls (reentrant checkpointing, double backward inside a Function) belong to the outer one
        if session.in_backward or ((thread.busy or not session.active) and not session.claim()):
            return original(roots, *args, **kwargs)
        session.trained = True
        run = _describe(roots, args, kwargs)
        session.call("before_backward", run)
        session.in_backward += 1
        try:
            result = original(roots, *args, **kwargs)
        finally:
            session.in_backward -= 1
        if not run.accumulate and isinstance(result, (tuple, list)):
            run.gradients = tuple(result)
        session.call("after_backward", run)
        if (run.accumulate or (session.optimizers == 0 and run.by_hand)) and session.backwards_are_the_clock():
            session.tick()
        return result
    return run_backward


def _describe(roots: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BackwardRun:
    # (grad_tensors, retain_graph, create_graph, inputs, allow_unreachable, accumulate_grad)
    keep = bool(args[1]) if len(args) > 1 else False
    create = bool(args[2]) if len(args) > 2 else False
    inputs = tuple(args[3]) if len(args) > 3 and isinstance(args[3], (tuple, list)) else ()
    return BackwardRun(tuple(roots), sites.here(3), bool(kwargs.get("accumulate_grad", False)), create, keep, inputs)


class Backwards(Probe):
    """Every backward, with the value it started from."""

    areas = ("loss", "optim", "curve")
    always = ("on_scaler", "before_backward")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._roots: list[float] = []
        self._step = 0  # theirs
        self._scale = 1.0  # of a GradScaler, for the next backward

    def on_scaler(self, run: ScalerRun) -> None:
        if run.what == "scale":
            self._scale = number(run.scaler._scale) or float(run.scaler._init_scale)  # made at its first use only

    def before_backward(self, run: BackwardRun) -> None:
        root = run.roots[0] if run.roots else None
        run.value = self.session.number(root)
        if not (run.accumulate or (self.session.optimizers == 0 and run.by_hand)):
            return
        self.session.event("backward", run.site)
        if run.value is not None:
            if not math.isfinite(run.value):
                self.session.wake()
            if self._step != self.session.step:
                self._step, self._roots = self.session.step, []
            self._roots.append(run.value / self._scale)
            self.session.values["loss"] = sum(self._roots) / len(self._roots)
        self._scale = 1.0

    def after_backward(self, run: BackwardRun) -> None:
        if not self.session.detailed:
            return
        root = run.roots[0] if run.roots else None
        node = getattr(root, "grad_fn", None)
        self.session.emit(BackwardCall(
            step=self.session.step, site=run.site, value=run.value, root_op=type(node).__name__ if node is not None else "",
            accumulate=run.accumulate, create_graph=run.create_graph, keep_graph=run.keep_graph))
