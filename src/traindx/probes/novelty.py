"""What is new in a program: cheap signs that something runs that no op trace has shown yet, such as a second phase of training.

Three things are looked at: which root is called from which line with how many samples, which loss function is called from
which line, and the end of the graph that a backward starts from (a term that joins a loss written by hand shows only there).
"""
from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Any

from torch import Tensor

from traindx.probes.session import BackwardRun, ForwardRun, LossRun
from traindx.probes.tensors import tensors_in

NODES = 16  # of a graph that are told apart, from the root on: enough for the arithmetic of a loss
FEW = 2  # fresh traces in a run, and one more for every doubling of its steps
TRIES = 3  # steps that are traced in the hope to meet one ending again: those of a GAN alternate
ALL, STRIDE = 64, 7  # graphs are read on all of the first steps, then on one in seven (which meets both of two that alternate)

Key = tuple[Hashable, ...]


class Novelty:
    """Keys that were traced, and how often a fresh trace may still be asked for."""

    def __init__(self) -> None:
        self._traced: set[Key] = set()
        self._tries: dict[Key, int] = {}
        self._asked = 0

    def may_ask(self, step: int) -> bool:
        """Programs in which all is new at every step are given up early."""
        return self._asked < FEW + step.bit_length()

    def traced(self, key: Key) -> None:
        self._traced.add(key)

    def wants(self, key: Key, step: int) -> bool:
        """Whether a fresh trace should be made for this key; it counts as asked for."""
        if key in self._traced or not self.may_ask(step) or self._tries.get(key, 0) >= TRIES:
            return False
        self._tries[key] = self._tries.get(key, 0) + 1
        self._asked += 1
        return True


def forward_key(run: ForwardRun) -> Key:
    """The root, the calling line, the mode, and the size of dim 0 of the first tensor argument."""
    first = run.args[0] if run.args else None
    if not isinstance(first, Tensor):
        first = next(tensors_in((run.args, run.kwargs), 1), None)
    return run.model, id(run.site), run.training and run.grad, _size(first)


def _size(tensor: Tensor | None) -> int | None:
    """Of dim 0; a nested tensor has no sizes to tell."""
    return None if tensor is None or tensor.is_nested or not tensor.dim() else int(tensor.shape[0])


def loss_key(run: LossRun) -> Key:
    return run.function, id(run.site), run.grad


def read_at(step: int) -> bool:
    """Whether the graph of this step's backward is read."""
    return step <= ALL or step % STRIDE == 0


def ending_key(run: BackwardRun) -> Key:
    """The first nodes of the graph, breadth first from the root; where one averages or adds up, how many dimensions it had before it."""
    root = run.roots[0] if run.roots else None
    queue = deque([getattr(root, "grad_fn", None)])
    names: list[Hashable] = [id(run.site)]
    while queue and len(names) <= NODES:
        node = queue.popleft()
        if node is not None:
            names.append(type(node).__name__)
            names.append(_dimensions(node))
            queue.extend(next_node for next_node, _ in node.next_functions)
    return tuple(names)


def _dimensions(node: Any) -> int:
    """Dimensions larger than 1 of what a mean or sum was taken over; 0 for other nodes."""
    return sum(n > 1 for n in getattr(node, "_saved_self_sym_sizes", ())) if type(node).__name__ in ("MeanBackward0", "SumBackward0") else 0
