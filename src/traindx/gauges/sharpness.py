"""The sharpness of the loss: the top eigenvalue of its Hessian on the batch, and the learning rate that it allows.

Lanczos iteration on Hessian-vector products through the program's own graph, so that dropout masks and batch statistics are
those of the step. Gradient descent at learning rate lr multiplies the error along that direction by |1 - lr * value|: it shrinks
below lr = 2 / value. Limits with momentum and for Adam: Cohen et al. (2021, 2022).
"""
from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from traindx.core.text import Text
from traindx.gauges import Watcher
from traindx.gauges.tools.steps import ScaleSeen, dot, gradients, leaves_of

Vector = list[Tensor]
Product = Callable[[Vector], Vector]
ROOM = 1 << 30  # bytes for Lanczos' vectors
NOT_TWICE = Text("An operation of this model cannot be differentiated twice: {error}", "模型里有一个运算不能求二阶导：{error}")
TOO_SHORT = Text("The trial ended before step {at}.", "运行在第 {at} 步之前就结束了。")
NOT_FINITE = Text("The loss or its curvature is not finite at step {at}.", "第 {at} 步的损失或曲率不是有限的数。")
NO_GRADIENT = Text("What went backward at step {at} depends on no parameter.", "第 {at} 步反向传播的起点不依赖任何参数。")
LINEAR = Text("The gradient at step {at} does not depend on the parameters: the curvature is 0.", "第 {at} 步的梯度不随参数变化：曲率为 0。")


@dataclass(frozen=True)
class Top:
    """The largest eigenvalue. ``residual`` is |Hv - value v|: an eigenvalue lies within it of ``value``, and the
    largest is never below ``value``."""

    value: float
    residual: float
    iterations: int
    converged: bool
    lowest: float  # that was met: where it is below 0 the loss curves downwards, too


class Measurement(Watcher):
    """Value: ``value``, ``residual``, ``iterations``, ``converged``, ``lowest``; ``limit`` = 2 / value, ``lr``,
    ``multiplier`` = abs(1 - lr (value + weight decay)); for SGD with momentum ``momentum`` and ``limit_with_momentum``.

    For Adam, AdamW and RMSprop ``preconditioned`` {value, limit, lr, ...}: the eigenvalue in the metric that they divided by
    in the step before: so from step 2 on, and it settles when the second moments do, after about 1 / (1 - b2) steps.
    Where a step is made of several backwards, the first stands for all (``backwards``). Without an optimizer of torch it
    is the first backward alone (``backwards`` null), and what needs one is null.
    """

    settings: ClassVar[dict[str, Any]] = {"at": 1, "iterations": 80, "tolerance": 1e-3, "seed": 0}

    def begin(self, stack: ExitStack) -> None:
        self._step, self._backwards = 1, 0
        self._optimizer: torch.optim.Optimizer | None = None
        self._found: dict[str, Any] | None = None
        self._leaves: list[Tensor] = []
        self._scale = ScaleSeen(stack)
        # the fused kernels cannot be differentiated twice; this one computes the same
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))

    def on_backward(self, root: Tensor) -> None:
        scale = self._scale.take()
        if self._step != self.asked["at"]:
            return
        self._backwards += 1
        if self._backwards == 1:
            self._measure(root, scale)

    def _measure(self, root: Tensor, scale: float) -> None:
        at = self.asked["at"]
        leaves = self._leaves = self._optimized(leaves_of(root))
        if not leaves:
            return self.not_measured(NO_GRADIENT.fill(at=at))
        try:
            slopes = [(leaf, g) for leaf, g in zip(leaves, gradients(root, leaves, create_graph=True)) if g is not None]
            if all(g.grad_fn is None for _, g in slopes):
                return self.not_measured(LINEAR.fill(at=at))
            if once_only([g for _, g in slopes]):
                return self.not_measured(NOT_TWICE.fill(error="once_differentiable"))
            product = hessian_product([leaf for leaf, _ in slopes], [g for _, g in slopes], scale)
            self._found = self._eigenvalues(product, [leaf for leaf, _ in slopes])
        except (RuntimeError, NotImplementedError) as problem:
            return self.not_measured(NOT_TWICE.fill(error=str(problem).split("\n")[0][:200]))
        if self._found is None:
            self.not_measured(NOT_FINITE.fill(at=at))

    def _optimized(self, leaves: list[Tensor]) -> list[Tensor]:
        """Of the leaves, those that the optimizer moves, once it is known."""
        if self._optimizer is None:
            return leaves
        held = {id(p) for group in self._optimizer.param_groups for p in group["params"]}
        return [leaf for leaf in leaves if id(leaf) in held]

    def _eigenvalues(self, product: Product, leaves: Vector) -> dict[str, Any] | None:
        top = self._top(product, leaves)
        if top is None:
            return None
        found = {**vars(top), "parameters": sum(leaf.numel() for leaf in leaves), "tolerance": self.asked["tolerance"]}
        metric = preconditioner(self._optimizer, leaves) if self._optimizer else None
        if metric is not None:
            inner = self._top(lambda v: _times(metric, product(_times(metric, v))), leaves)
            found["preconditioned"] = None if inner is None else vars(inner)
        return found

    def _top(self, product: Product, leaves: Vector) -> Top | None:
        generator = torch.Generator().manual_seed(self.asked["seed"])
        start = [torch.randn(leaf.shape, generator=generator).to(leaf) for leaf in leaves]
        return top_eigenvalue(product, start, self.asked["iterations"], self.asked["tolerance"])

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        if self._optimizer is None or {id(p) for g in optimizer.param_groups for p in g["params"]} & {id(p) for p in self._leaves}:
            self._optimizer = optimizer
        if self._found is not None and optimizer is self._optimizer:
            self.done = True
            self.send({"at": self.asked["at"], "backwards": self._backwards, **limits(self._found, optimizer, self._backwards)})

    def after_step(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        self._step = step + 1

    def at_end(self) -> None:
        if self._found is not None:  # an update by hand: its limit is 2 / value where it is a plain one
            value = self._found["value"]
            return self.send({"at": self.asked["at"], "backwards": None, **self._found, "limit": 2 / value if value > 0 else None,
                              "lr": None, "optimizer": None, "multiplier": None})
        self.not_measured(TOO_SHORT.fill(at=self.asked["at"]))


def hessian_product(leaves: Vector, slopes: Vector, scale: float = 1.0) -> Product:
    """v -> H v, from gradients that have a graph of their own."""
    alive = [slope for slope in slopes if slope.grad_fn is not None]

    def product(vector: Vector) -> Vector:
        chosen = [v for v, slope in zip(vector, slopes) if slope.grad_fn is not None]
        found = torch.autograd.grad(alive, leaves, grad_outputs=chosen, retain_graph=True, allow_unused=True)
        return [torch.zeros_like(leaf) if g is None else g.to_dense().detach() / scale for g, leaf in zip(found, leaves)]
    return product


def once_only(slopes: Vector) -> bool:
    """Whether a function marked ``once_differentiable`` cuts this graph: torch would leave its share out without a word."""
    seen, stack = set(), [slope.grad_fn for slope in slopes]
    while stack:
        node = stack.pop()
        if node is not None and node not in seen:
            if type(node).__name__ == "Error":
                return True
            seen.add(node)
            stack.extend(after for after, _ in node.next_functions)
    return False


def top_eigenvalue(product: Product, start: Vector, iterations: int, tolerance: float) -> Top | None:
    """The largest eigenvalue of a symmetric operator by Lanczos' method; None where a product is not finite.

    Lanczos keeps the vectors that power iteration throws away, and so needs tens of products where that needs thousands; all
    are made orthogonal again each time. At most ``iterations`` products, fewer where the vectors would fill :data:`ROOM`.
    """
    size = sum(part.numel() for part in start)
    basis = [_times(1 / dot(start, start) ** 0.5, start)]
    diagonal: list[float] = []
    beside: list[float] = []
    most = max(2, min(iterations, size, ROOM // (4 * size)))
    while True:
        image = product(basis[-1])
        diagonal.append(dot(basis[-1], image))
        for _ in range(2):  # once leaves rounding errors that grow
            for known in basis:
                image = _plus(image, -dot(known, image), known)
        length = dot(image, image) ** 0.5
        if not length < float("inf"):
            return None
        top = _ritz(diagonal, beside, length, tolerance)
        if top.converged or len(basis) >= most:
            return top
        beside.append(length)
        basis.append(_times(1 / length, image))


def _ritz(diagonal: list[float], beside: list[float], length: float, tolerance: float) -> Top:
    """The top of the small matrix in which Lanczos' vectors see the operator; ``length`` is what sticks out of them."""
    small = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
    for i, value in enumerate(beside):
        small[i, i + 1] = small[i + 1, i] = value
    values, vectors = torch.linalg.eigh(small)
    value, residual = float(values[-1]), length * abs(float(vectors[-1, -1]))
    scale = float(values.abs().max())
    settled = residual <= tolerance * abs(value) or residual <= 1e-7 * scale
    return Top(value, residual, len(diagonal), settled, float(values[0]))


def _times(factor: float | Vector, vector: Vector) -> Vector:
    return [f * v for f, v in zip(factor, vector)] if isinstance(factor, list) else [factor * v for v in vector]


def _plus(one: Vector, factor: float, other: Vector) -> Vector:
    return [a + factor * b for a, b in zip(one, other)]


def preconditioner(optimizer: torch.optim.Optimizer, leaves: Vector) -> Vector | None:
    """1 / sqrt(P), where P is what Adam, AdamW or RMSprop divided by in the last step. None for others, and in step 1."""
    groups = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    found = [_divisor(type(optimizer).__name__, optimizer.state.get(leaf, {}), groups[id(leaf)]) for leaf in leaves]
    return None if any(d is None for d in found) else [d.clamp_min(1e-30).rsqrt() for d in found if d is not None]


def _divisor(kind: str, state: dict[str, Any], group: dict[str, Any]) -> Tensor | None:
    if kind in ("Adam", "AdamW") and "exp_avg_sq" in state and not group.get("amsgrad"):
        corrected = state["exp_avg_sq"] / (1 - float(group["betas"][1]) ** float(state["step"]))
        return corrected.sqrt() + group["eps"]
    if kind == "RMSprop" and "square_avg" in state and not group.get("centered"):
        return state["square_avg"].sqrt() + group["eps"]
    return None


def limits(found: dict[str, Any], optimizer: torch.optim.Optimizer, backwards: int) -> dict[str, Any]:
    """The largest stable learning rates beside the one in use; null where the groups' rates differ."""
    group = optimizer.param_groups[0]
    rates = {float(g["lr"]) for g in optimizer.param_groups}
    lr = rates.pop() if len(rates) == 1 else None
    found = {**found, "value": found["value"] * backwards, "residual": found["residual"] * backwards}
    value, kind = found["value"], type(optimizer).__name__
    decay = float(group.get("weight_decay") or 0.0) if kind == "SGD" else 0.0
    limit = 2 / (value + decay) if value + decay > 0 else None
    found |= {"limit": limit, "lr": lr, "optimizer": kind, "weight_decay": decay,
              "multiplier": abs(1 - lr * (value + decay)) if lr is not None else None}
    if kind == "SGD" and group.get("momentum"):
        found |= {"momentum": group["momentum"], "limit_with_momentum": None if limit is None else limit * _momentum_factor(group)}
    if found.get("preconditioned"):
        found["preconditioned"] = _preconditioned(found["preconditioned"], group, kind, lr, backwards)
    return found


def _momentum_factor(group: dict[str, Any]) -> float:
    """Of 2/value: heavy ball 1 + b, divided by 1 - dampening; Nesterov (1 + b) / (1 + 2 b)."""
    b = float(group["momentum"])
    return (1 + b) / (1 + 2 * b) if group.get("nesterov") else (1 + b) / (1 - float(group.get("dampening") or 0.0))


def _preconditioned(top: dict[str, Any], group: dict[str, Any], kind: str, lr: float | None, backwards: int) -> dict[str, Any]:
    """Adam's first moment is an average: lr * value must stay below 2 (1 + b1) / (1 - b1), 38 for b1 = 0.9."""
    first = float(group["betas"][0]) if kind != "RMSprop" else 0.0
    bound = 2 * (1 + first) / (1 - first) if kind != "RMSprop" else 2 * (1 + float(group.get("momentum") or 0.0))
    value = top["value"] * backwards
    return {**top, "value": value, "residual": top["residual"] * backwards, "bound": bound,
            "limit": bound / value if value > 0 else None, "lr": lr}
