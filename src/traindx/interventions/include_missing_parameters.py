"""Parameters that get gradients but belong to no optimizer are given to the first one."""
from __future__ import annotations

import weakref
from typing import Any

from torch import nn
from torch.optim import Optimizer

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Backward, Stage

NODES = 100_000  # of a graph that are walked


class IncludeMissingParameters(Intervention):
    """They join its group with the largest rate: what is forgotten is mostly a new head, and pretrained parts are slow. Looked for at every
    backward, for layers may be put in later, before anything is clipped or stepped.
    """

    NOTHING = Text("Every parameter that gets a gradient belongs to an optimizer.", "凡是得到梯度的参数，都在某个优化器里。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._optimizers: list[weakref.ref[Optimizer]] = []

    def on_optimizer(self, optimizer: Optimizer) -> None:
        self._optimizers.append(weakref.ref(optimizer))

    def before_backward(self, run: Backward) -> None:
        optimizers = [optimizer for ref in self._optimizers if (optimizer := ref()) is not None]
        if not run.fills_grad or not optimizers:
            return
        held = {id(p) for optimizer in optimizers for group in optimizer.param_groups for p in group["params"]}
        missing = [p for p in _leaves(run.roots) if id(p) not in held]
        if missing:
            max(optimizers[0].param_groups, key=_rate)["params"].extend(missing)
            self.touch()


def _rate(group: dict[str, Any]) -> float:
    return float(group.get("lr", 0.0))


def _leaves(roots: tuple[Any, ...]) -> list[nn.Parameter]:
    """The parameters at the ends of a graph."""
    stack, found = [root.grad_fn for root in roots], []
    seen: set[Any] = set()
    while stack and len(seen) < NODES:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if isinstance(variable, nn.Parameter):
            found.append(variable)
        stack.extend(following for following, _ in node.next_functions)
    return found
