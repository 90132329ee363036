"""Layer by layer: spread of activations and of gradients, dead features, how weights were started, what residual branches add."""
from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from traindx.core.codec import encode
from traindx.core.text import Text
from traindx.gauges import Watcher
from traindx.gauges.tools import weights
from traindx.gauges.tools.running import Running
from traindx.gauges.tools.steps import ScaleSeen, wide
from traindx.probes import modules
from traindx.probes.tensors import plain, sample, tensors_in

LAYERS = 400  # of a root
RECENT = 12  # tensors of a shape that a sum is looked for among
COMPARED = 256  # elements of them
NO_CALL = Text("No module was called at step {steps}.", "第 {steps} 步没有调用过模块。")


@dataclass(frozen=True)
class _Tensor:
    """What is remembered of one tensor to recognise sums: a few elements, its spread, who made it and when."""

    path: str
    shape: tuple[int, ...]
    few: Tensor
    std: float
    time: int
    exact: bool  # not half precision


@dataclass
class _Pass:
    """One measured step."""

    step: int
    layers: dict[str, dict[str, Any]] = field(default_factory=dict)
    residual: list[dict[str, Any]] = field(default_factory=list)
    inputs: deque[_Tensor] = field(default_factory=lambda: deque(maxlen=RECENT))
    outputs: deque[_Tensor] = field(default_factory=lambda: deque(maxlen=RECENT))
    time: int = 0
    scale: float = 1.0


class Measurement(Watcher):
    """Value: ``measured``, one entry a step of the setting ``steps``: ``layers`` in the order of execution {layer, type, made_at,
    in_std, out_std, zero (share of outputs that are 0), in_dead (share of input features that are 0 for the whole batch), grad_std
    (of the gradient of the output, without a GradScaler's factor), followed_by, and at step 1 weight}, ``residual`` sums
    {branch, stream_std, branch_std, sum_std}, ``forward_factor`` and ``backward_factor``: by how much, from one layer with weights to the
    next, activations grow on their way forward and gradients on their way back (geometric mean; the last layer left out).
    """

    settings: ClassVar[dict[str, Any]] = {"steps": [1, 20]}

    def begin(self, stack: ExitStack) -> None:
        self._running, self._scale = Running(stack), ScaleSeen(stack)
        self._step = 1
        self._pass: _Pass | None = None
        self._hooks: list[Any] = []
        self._hooked: list[nn.Module] = []
        self._measured: list[dict[str, Any]] = []

    def before_forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._step not in self.asked["steps"] or any(module is known for known in self._hooked):
            return
        self._pass = self._pass or _Pass(self._step)
        self._hooked.append(module)
        single = len(self._hooked) == 1
        for path, inner in list(module.named_modules())[:LAYERS]:
            name = path if single else f"{type(module).__name__}.{path}".rstrip(".")
            self._hooks.append(inner.register_forward_pre_hook(self._before(self._pass)))
            self._hooks.append(inner.register_forward_hook(self._after(self._pass, name)))

    def _before(self, run: _Pass) -> Any:
        def before(module: nn.Module, args: tuple[Any, ...]) -> None:
            tensor = _first(args)
            if tensor is not None and tensor.dim() > 1:
                _note_input(run, tensor)
        return self._safe(before)

    def _after(self, run: _Pass, path: str) -> Any:
        def after(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            tensor = _first(output)
            if tensor is None:
                return
            if _is_layer(module) and path not in run.layers:
                self._note_layer(run, path, module, _first(args), tensor)
            if tensor.dim() > 1:
                run.time += 1
                run.outputs.append(_remembered(path, tensor, run.time))
        return self._safe(after)

    def _safe(self, hook: Any) -> Any:
        """Hooks run inside the program's own forward: what they raise stays here."""
        def guarded(*args: Any) -> None:
            if self.done:
                return
            try:
                with torch.no_grad():
                    hook(*args)
            except Exception as problem:
                self.not_measured(Text(f"{type(problem).__name__}: {problem}", f"{type(problem).__name__}: {problem}"))
        return guarded

    def _note_layer(self, run: _Pass, path: str, module: nn.Module, given: Tensor | None, made: Tensor) -> None:
        layer = run.layers[path] = {
            "layer": path, "type": type(module).__name__, "made_at": encode(modules.made_at(module)),
            "in_std": _std(given), "out_std": _std(made), "zero": float((made == 0).float().mean()),
            "in_dead": dead_share(module, given), "grad_std": None, "followed_by": None}
        if run.step == 1:
            layer["weight"] = weights.described(module)
        if made.requires_grad:
            made.register_hook(self._safe(lambda gradient: layer.update(grad_std=_std(gradient))))

    def on_backward(self, root: Tensor) -> None:
        scale = self._scale.take()
        if self._pass is not None:
            self._pass.scale = scale

    def after_step(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        self._step = step + 1
        self._finish()
        self.done = step >= max(self.asked["steps"])

    def _finish(self) -> None:
        run, self._pass = self._pass, None
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._hooked = [], []
        if run is not None:
            self._measured.append(told(run))
            self.send({"measured": self._measured})

    def at_end(self) -> None:
        self._finish()
        if not self._measured:
            self.not_measured(NO_CALL.fill(steps=", ".join(map(str, self.asked["steps"]))))


def _is_layer(module: nn.Module) -> bool:
    return next(module.children(), None) is None or isinstance(module, nn.MultiheadAttention)


def _first(value: Any) -> Tensor | None:
    return next((t for t in tensors_in(value, 4) if plain(t) and t.is_floating_point() and t.numel() > 0), None)


def _std(tensor: Tensor | None) -> float | None:
    return float(wide(tensor).std(correction=0)) if tensor is not None else None


def dead_share(module: nn.Module, given: Tensor | None) -> float | None:
    """Share of the features that enter a linear or convolutional layer that are 0 in the whole batch."""
    convolution = isinstance(module, nn.modules.conv._ConvNd)
    if given is None or given.dim() < 2 or not (convolution or isinstance(module, nn.Linear)):
        return None
    features = given.movedim(1 if convolution else -1, 0).flatten(1)
    return float((features == 0).all(1).float().mean())


def _remembered(path: str, tensor: Tensor, time: int) -> _Tensor:
    few = wide(sample(tensor, COMPARED).clone())
    return _Tensor(path, tuple(tensor.shape), few, float(wide(tensor).std(correction=0)), time, tensor.dtype in (torch.float32, torch.float64))


def _note_input(run: _Pass, tensor: Tensor) -> None:
    """An input that is an earlier input plus what a module made since is a residual sum."""
    run.time += 1
    entering = _remembered("", tensor, run.time)
    if any(known.shape == entering.shape and torch.equal(known.few, entering.few) for known in run.inputs):
        return  # handed down to an inner module
    found = residual_of(entering, list(run.inputs), list(run.outputs))
    if found is not None:
        stream, branch = found
        run.residual.append({"branch": branch.path, "stream_std": stream.std, "branch_std": branch.std, "sum_std": entering.std})
    run.inputs.append(entering)


def residual_of(entering: _Tensor, inputs: Sequence[_Tensor], outputs: Sequence[_Tensor]) -> tuple[_Tensor, _Tensor] | None:
    """``(stream, branch)`` whose sum this tensor is, or whose rectified sum; the latest of each."""
    tolerance = 1e-5 if entering.exact else 2e-2
    x = entering.few
    for branch in reversed([b for b in outputs if b.shape == entering.shape and b.std > 0]):
        for stream in reversed([a for a in inputs if a.shape == entering.shape and a.std > 0 and a.time < branch.time]):
            total = stream.few + branch.few
            size = float(total.abs().max()) * tolerance
            if _near(x, total, size) or (bool((x > 0).any()) and _near(x, total.clamp_min(0), size)):
                return stream, branch
    return None


def _near(one: Tensor, other: Tensor, size: float) -> bool:
    return bool((one - other).abs().max() <= size)


def told(run: _Pass) -> dict[str, Any]:
    layers = list(run.layers.values())
    for layer, following in pairwise(layers):
        layer["followed_by"] = following["type"]
    for layer in layers:
        if layer["grad_std"] is not None:
            layer["grad_std"] /= run.scale
    deep = [layer for layer in layers if _weighty(layer)][:-1]
    return {"step": run.step, "layers": layers, "residual": run.residual,
            "forward_factor": factor([layer["out_std"] for layer in deep]),
            "backward_factor": factor([layer["grad_std"] for layer in reversed(deep)])}


def _weighty(layer: dict[str, Any]) -> bool:
    return layer["type"].startswith(("Linear", "Conv", "Bilinear", "LSTM", "GRU", "RNN", "Multihead"))


def factor(spreads: Sequence[float | None]) -> float | None:
    """The factor from one to the next, as a geometric mean; None for fewer than two, or where one is 0 or missing."""
    if len(spreads) < 2 or not spreads[0] or not spreads[-1]:
        return None
    return float(spreads[-1] / spreads[0]) ** (1 / (len(spreads) - 1))
