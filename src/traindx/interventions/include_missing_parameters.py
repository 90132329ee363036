"""Parameters that get gradients but belong to no optimizer are given to the one that holds most of the others."""
from __future__ import annotations

import weakref
from typing import Any

from torch import nn
from torch.optim import Optimizer

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Backward, Stage
from traindx.probes import patching

NODES = 100_000  # of a graph that are walked


class IncludeMissingParameters(Intervention):
    """They join its group with the largest rate: what is forgotten is mostly a new head, and pretrained parts are slow.
    Looked for at the first backward, and again after a layer was made (a head that is exchanged for a second phase).
    """

    NOTHING = Text("Every parameter that gets a gradient belongs to an optimizer.", "凡是得到梯度的参数，都在某个优化器里。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._optimizers: list[weakref.ref[Optimizer]] = []
        self._new = True  # parameters or optimizers since the last look

    def install(self) -> None:
        patching.replace(self.stack, nn.Module, "register_parameter", self._noticed)

    def _noticed(self, original: Any) -> Any:
        def register_parameter(module: nn.Module, name: str, param: Any) -> None:
            self._new = self._new or param is not None
            original(module, name, param)
        return patching.dressed(register_parameter, original)

    def on_optimizer(self, optimizer: Optimizer) -> None:
        self._optimizers.append(weakref.ref(optimizer))
        self._new = True

    def before_backward(self, run: Backward) -> None:
        optimizers = [optimizer for ref in self._optimizers if (optimizer := ref()) is not None]
        if not self._new or not run.fills_grad or not optimizers:
            return
        self._new = False
        leaves = {id(p): p for p in _leaves(run.roots)}
        held = [leaves.keys() & _parameters(optimizer) for optimizer in optimizers]
        missing = [p for key, p in leaves.items() if all(key not in keys for keys in held)]
        if missing:
            # of equals, the latest: the one before has had its phase
            number = max(range(len(optimizers)), key=lambda n: (len(held[n]), n))
            max(optimizers[number].param_groups, key=_rate)["params"].extend(missing)
            self.touch()


def _rate(group: dict[str, Any]) -> float:
    return float(group.get("lr", 0.0))


def _parameters(optimizer: Optimizer) -> set[int]:
    return {id(p) for group in optimizer.param_groups for p in group["params"]}


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
