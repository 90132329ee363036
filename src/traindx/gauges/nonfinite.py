"""Where the first NaN or infinity is made: module, operation and line, in the forward, the backward or the step.

The trial is the replay: the same program runs again, and from step ``from`` on every operation's result is looked at, so
that also what is computed outside of modules is seen. Infinities that a mask puts in on purpose are followed, not blamed.
"""
from __future__ import annotations

import bisect
import weakref
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from traindx.core.codec import encode
from traindx.core.observed import Site
from traindx.core.text import Text
from traindx.gauges import Watcher
from traindx.gauges.tools.ops import Ops
from traindx.gauges.tools.running import Running
from traindx.gauges.tools.steps import ScaleSeen
from traindx.probes import graph, sites
from traindx.probes.tensors import dtype_of, plain, shape_of

OPS_KEPT = 50_000  # of one step
ON_PURPOSE = frozenset(("masked_fill", "masked_fill_", "fill_", "full", "full_like", "new_full", "where", "triu", "tril",
                        "tensor", "__setitem__", "scatter", "scatter_", "masked_scatter"))
COMPILED = Text("The model is compiled: its operations cannot be looked at one by one.", "模型编译过，里面的运算没法逐个看。")


@dataclass(frozen=True)
class _Op:
    """``number``: that of the newest graph node when it was done; nodes up to it, from the operation before on, are its own."""

    name: str
    site: Site | None
    modules: tuple[nn.Module, ...]
    number: int
    bad: bool


@dataclass(frozen=True)
class _Origin:
    """What first made a bad value. ``source``: "operation", or what came in bad: "parameter", "input"."""

    op: _Op
    source: str
    kind: str  # nan, inf
    given: tuple[dict[str, Any], ...]
    on_purpose: bool = False
    via: _Origin | None = field(default=None)


class Measurement(Watcher):
    """Value: ``found``; where true: ``step``, ``phase`` ("forward", "backward", "step": finite gradients, then weights that are
    not; "input": the data; "parameters": weights bad from the start), ``kind`` (nan, inf), ``op``, ``site``, ``module``, ``type``, ``made_at``,
    ``forward_at``, ``given`` (ranges of what went in), ``via`` (a mask's infinity that it was made from), ``modules`` (calls in this
    step), ``halvings`` (questions a bisection over them asks) and ``bisection`` (the module it ends at), ``loss_site``,
    ``scale`` of a GradScaler. Gradients that overflow only under a GradScaler are reported at the end, for it skips such steps.
    """

    settings: ClassVar[dict[str, Any]] = {"from": 1}

    def begin(self, stack: ExitStack) -> None:
        self._running, self._scale = Running(stack), ScaleSeen(stack)
        self._step, self._stepping = 1, False
        self._record: list[_Op] = []
        self._origins: dict[int, tuple[weakref.ref[Tensor], _Origin]] = {}
        self._pending: dict[str, Any] | None = None  # a bad loss that has not gone backward, or an overflow under a scaler
        self._overflows, self._loss_finite = 0, False
        self._loss_site: Site | None = None
        self._ops = Ops(self._op_seen)
        self._ops.on = self.asked["from"] <= 1
        stack.enter_context(self._ops)

    # -- forward ---------------------------------------------------------------------------------------------------------

    def _op_seen(self, name: str, site: Site | None, given: list[Tensor], made: list[Tensor]) -> None:
        if self._stepping or self.done or self.resting():
            return
        bad = [t for t in made if not finite(t)]
        number = max(newest(made), self._record[-1].number if self._record else -1)
        op = _Op(name, site, tuple(self._running.modules), number, bool(bad))
        if len(self._record) < OPS_KEPT:
            self._record.append(op)
        if bad:
            origin = self._origin(op, given, bad)
            for tensor in bad:
                self._origins[id(tensor)] = weakref.ref(tensor), origin

    def _origin(self, op: _Op, given: list[Tensor], made: list[Tensor]) -> _Origin:
        came = [self._known(t, op) for t in given if not finite(t)]
        blamed = next((origin for origin in came if not origin.on_purpose), None)
        if blamed is not None:
            return blamed
        kind, ranges = kind_of(made), tuple(described(t) for t in given[:4])
        if not came:
            return _Origin(op, "operation", kind, ranges, on_purpose=kind == "inf" and op.name in ON_PURPOSE)
        if kind == "nan" and all(kind_of([t]) != "nan" for t in given):
            return _Origin(op, "operation", kind, ranges, via=came[0])  # as 0 * inf, or the softmax of nothing but -inf
        return came[0]

    def _known(self, tensor: Tensor, op: _Op) -> _Origin:
        entry = self._origins.get(id(tensor))
        if entry is not None and entry[0]() is tensor:
            return entry[1]
        source = "parameter" if tensor.is_leaf and tensor.requires_grad else "input"
        kind = kind_of([tensor])
        return _Origin(op, source, kind, (described(tensor),), on_purpose=source == "input" and kind == "inf")

    def on_loss(self, function: str, input: Tensor, target: Any, value: Tensor, kwargs: dict[str, Any], site: Site | None) -> None:
        self._loss_site, self._loss_finite = site, finite(value)
        if self._ops.on and not finite(value) and self._pending is None:
            self._pending = self._forward_fault(value)

    def _forward_fault(self, value: Tensor) -> dict[str, Any] | None:
        entry = self._origins.get(id(value))
        if entry is None or entry[0]() is not value:
            return None
        origin = entry[1]
        phase = {"operation": "forward", "input": "input", "parameter": "parameters"}[origin.source]
        via = None if origin.via is None else {"op": origin.via.op.name, "site": encode(origin.via.op.site)}
        return {**self._fault(phase, origin.kind), **self._place(origin.op), "given": list(origin.given), "via": via, **self._bisected()}

    def _fault(self, phase: str, kind: str) -> dict[str, Any]:
        return {"found": True, "step": self._step, "phase": phase, "kind": kind, "loss_site": encode(self._loss_site)}

    def _place(self, op: _Op) -> dict[str, Any]:
        inner = self._running.told(op.modules[-1], op.modules[0]) if op.modules else dict.fromkeys(("module", "type", "made_at", "forward_at"))
        return {"op": op.name, "site": encode(op.site), **inner}

    def _bisected(self) -> dict[str, Any]:
        """The bisection by hand over the module calls of this step: is what came out here still finite?"""
        calls: list[_Op] = []
        for op in self._record:
            if calls and calls[-1].modules == op.modules:
                calls[-1] = op
            else:
                calls.append(op)
        calls = [op for op in calls if op.modules]
        if not any(op.bad for op in calls):
            return {"modules": len(calls), "halvings": None, "bisection": None}
        last = max(i for i, op in enumerate(calls) if op.bad)
        at, asked = bisection([op.bad for op in calls[:last + 1]])
        return {"modules": len(calls), "halvings": asked, "bisection": self._place(calls[at])["module"]}

    # -- backward --------------------------------------------------------------------------------------------------------

    def on_backward(self, root: Tensor) -> None:
        scale = self._scale.take()
        if not self._ops.on:
            return
        if torch.compiler.is_compiling():
            return self.not_measured(COMPILED)
        if finite(root):
            self._pending = None if self._pending and not self._pending.get("scaled") else self._pending
            self._follow(root, scale)
        elif scale != 1.0 and self._loss_finite:
            self._overflowed(self._forward_fault(root) or {}, scale)
        elif (fault := self._forward_fault(root) or self._pending) is not None:
            self._found({**fault, "scale": scale})

    def _follow(self, root: Tensor, scale: float) -> None:
        """Backward runs from the loss down: the first node that turns finite gradients into others is the one."""
        met: list[Any] = []

        def hook(node: Any) -> Any:
            def look(made: Sequence[Tensor | None], given: Sequence[Tensor | None]) -> None:
                if not met and not self.resting() and not all(finite(g) for g in made if g is not None):
                    met.append(node)
                    self._backward_fault(node, [g for g in made if g is not None], [g for g in given if g is not None], scale)
            return look
        for node in graph.below(root.grad_fn):
            node.register_hook(hook(node))

    def _backward_fault(self, node: Any, made: list[Tensor], given: list[Tensor], scale: float) -> None:
        if self.done:
            return
        number = node._sequence_nr()
        at = bisect.bisect_left([op.number for op in self._record], number)
        place = self._place(self._record[at]) if at < len(self._record) else {"op": type(node).__name__, "site": None}
        fault = {**self._fault("backward", kind_of(made)), **place, "node": type(node).__name__, "scale": scale,
                 "given": [described(g) for g in given[:4]], "via": None}
        if scale == 1.0:
            return self._found(fault)
        self._overflowed(fault, scale)

    def _overflowed(self, fault: dict[str, Any], scale: float) -> None:
        """A GradScaler skips this step: that is what it is for, a few times at the start."""
        self._overflows += 1
        self._pending = self._pending or {**fault, "scale": scale, "scaled": True}

    # -- step ------------------------------------------------------------------------------------------------------------

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._stepping = True
        held = [p for group in optimizer.param_groups for p in group["params"]]
        self._sound = all(finite(p) and (p.grad is None or finite(p.grad)) for p in held)

    def after_step(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        held = [p for group in optimizer.param_groups for p in group["params"]]
        if self._sound and (bad := [p for p in held if not finite(p)]):
            self._found({**self._fault("step", kind_of(bad)), "op": type(optimizer).__name__, "site": encode(sites.here(2)),
                         "given": [described(p.grad) for p in bad[:4] if p.grad is not None], "via": None})
        self._stepping = False
        self._step = step + 1
        self._record.clear()
        self._origins.clear()
        self._ops.on = self._step >= self.asked["from"] and not self.done

    def _found(self, fault: dict[str, Any]) -> None:
        self.done = True
        self._ops.on = False
        self.send(fault)

    def at_end(self) -> None:
        if self._pending is not None:
            return self._found({**self._pending, "overflows": self._overflows})
        self.send({"found": False, "steps": self._step - 1})


def newest(made: list[Tensor]) -> int:
    """The number of the graph node that made the first of them; -1 without one."""
    try:
        node = made[0].grad_fn
    except RuntimeError:
        return -1  # a view made without gradients of something changed with them
    return node._sequence_nr() if node is not None else -1


def finite(tensor: Tensor) -> bool:
    """True for what cannot be anything else, too: integers, and tensors that may not be read."""
    if not plain(tensor) or not (tensor.is_floating_point() or tensor.is_complex()):
        return True
    return bool(torch.isfinite(tensor.detach()).all())


def kind_of(tensors: Sequence[Tensor]) -> str:
    """ "nan" where any element is one, else "inf" where any is one, else ""."""
    floats = [t.detach() for t in tensors if plain(t) and t.is_floating_point()]
    if any(bool(torch.isnan(t).any()) for t in floats):
        return "nan"
    return "inf" if any(bool(torch.isinf(t).any()) for t in floats) else ""


def described(tensor: Tensor) -> dict[str, Any]:
    """Shape, dtype, range of the finite elements and how many are not."""
    values = tensor.detach()
    told: dict[str, Any] = {"shape": list(shape_of(tensor)), "dtype": dtype_of(tensor), "low": None, "high": None, "bad": 0}
    if plain(tensor) and values.numel() and (values.is_floating_point() or not values.is_complex()):
        good = values[torch.isfinite(values)]
        told["bad"] = int(values.numel() - good.numel())
        if good.numel():
            told |= {"low": float(good.min()), "high": float(good.max())}
    return told


def bisection(bad: Sequence[bool]) -> tuple[int, int]:
    """``(index, questions)``: where a bisection ends that knows the last to be bad and asks the middle, again and again."""
    low, high, asked = 0, len(bad) - 1, 0
    while low < high:
        middle = (low + high) // 2
        asked += 1
        low, high = (low, middle) if bad[middle] else (middle + 1, high)
    return low, asked
