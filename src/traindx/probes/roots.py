"""What the graph at a backward's root says of the loss: the factor before its batch mean, a GradScaler's scale."""
from __future__ import annotations

import math
from typing import Any

import torch

from traindx.probes.tensors import number

NODES_LIMIT = 24
MEAN, SUM = 1, 2  # torch's codes of reductions
_SAME = tuple(f"{name}Backward" for name in (
    "Neg", "Add", "Sub", "ToCopy", "Clone", "View", "Reshape", "Squeeze", "Unsqueeze", "UnsafeView", "Sqrt", "Select",
    "Alias"))


def batch_mean_weight(root: Any) -> float | None:
    """The largest |factor| in front of a mean over a batch in this root: 1 for ``loss``, 1/k for ``loss / k``.

    None where the graph does not say: sums over samples, user functions, compiled graphs.
    """
    node = getattr(root, "grad_fn", None)
    found: list[float] = []
    stack = [(node, 1.0)]
    for _ in range(NODES_LIMIT):
        if not stack:
            break
        node, weight = stack.pop()
        if node is None:
            continue
        name = type(node).__name__
        if name.startswith(_SAME):
            stack += [(following, weight) for following, _ in node.next_functions]
        elif name.startswith(("MulBackward", "DivBackward")):
            stack += _through_factor(node, weight, name.startswith("Div"))
        elif (mean := _mean_weight(node, name, weight)) is not None:
            found.append(mean)
    return max(found, default=None)


def _through_factor(node: Any, weight: float, divides: bool) -> list[tuple[Any, float]]:
    """Past a multiplication or division by a constant; a product of two that both need gradients ends the walk."""
    following = [n for n, _ in node.next_functions if n is not None]
    factor = _constant(node)
    if len(following) != 1 or not factor:
        return []
    return [(following[0], weight / factor if divides else weight * factor)]


def _saved(node: Any, name: str) -> Any:
    """What a node keeps for its backward; None where an earlier backward has freed it."""
    try:
        return getattr(node, name, None)
    except RuntimeError:
        return None


def _constant(node: Any) -> float | None:
    for name in ("_saved_other", "_saved_self"):
        value = _saved(node, name)
        if isinstance(value, torch.Tensor):
            value = number(value)
        if isinstance(value, (int, float)):
            return abs(float(value))
    return None


def _mean_weight(node: Any, name: str, weight: float) -> float | None:
    reduction = _saved(node, "_saved_reduction")
    if reduction == MEAN or name.startswith("MeanBackward"):
        return weight
    if reduction == SUM:
        return _sum_weight(getattr(_saved(node, "_saved_self"), "shape", ()), weight)
    if name.startswith("SumBackward"):
        return _sum_weight(_saved(node, "_saved_self_sym_sizes"), weight)
    return None


def _sum_weight(sizes: Any, weight: float) -> float | None:
    """A mean by hand: a sum divided by the number of its rows or elements."""
    if not sizes:
        return None
    rows, elements = int(sizes[0]), math.prod(int(size) for size in sizes)
    return next((1.0 for count in (rows, elements) if count > 1 and abs(weight * count - 1) < 1e-4), None)


def carries(root: Any, scale: float) -> bool:
    """Whether a loss in this root was multiplied by just this scale."""
    stack = [getattr(root, "grad_fn", None)]
    for _ in range(NODES_LIMIT):
        if not stack:
            return False
        node = stack.pop()
        if node is None:
            continue
        name = type(node).__name__
        factor = _constant(node) if name.startswith("MulBackward") else None
        if factor is not None and abs(factor / scale - 1) < 1e-6:
            return True
        if name.startswith((*_SAME, "MulBackward", "DivBackward", "SumBackward", "StackBackward")):
            stack += [following for following, _ in node.next_functions]
    return False
