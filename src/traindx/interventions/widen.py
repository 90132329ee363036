"""Twice the width, whatever the model: a second copy beside it, from other random weights, their outputs added."""
from __future__ import annotations

import copy
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Clip, RootCall, Stage

APART = 55_555  # from the program's own seed, whose numbers may have become its data
OTHER_OUTPUT = Text("The model does not return one tensor of numbers: outputs cannot be added.",
                    "模型返回的不是单个浮点张量，没法把两份输出相加。")


@dataclass
class Beside:
    """A copy, and the random numbers that it draws."""

    twin: nn.Module
    pairs: list[tuple[nn.Parameter, nn.Parameter]]
    random: Tensor = field(default_factory=torch.get_rng_state)

    def run(self, call: RootCall) -> Any:
        """In the original's modes; the program's own random numbers stay where they were."""
        for own, other in zip(call.module.modules(), self.twin.modules()):
            other.training = own.training
        with torch.random.fork_rng():
            torch.set_rng_state(self.random)
            output = self.twin(*call.args, **call.kwargs)
            self.random = torch.get_rng_state()
        return output

    def clear(self) -> None:
        for _, other in self.pairs:
            other.grad = None


class Widen(Intervention):
    """That is the layer structure of twice the width with the cross connections left out. Each trainable tensor of the copy has the
    original's values in another order: the same distribution, whatever scheme drew it. It learns in the original's parameter groups.
    """

    NOTHING = Text("No model with parameters in an optimizer was called in training.", "训练中没有调用过参数在优化器里的模型。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._optimizers: list[weakref.ref[Optimizer]] = []
        self._beside: weakref.WeakKeyDictionary[nn.Module, Beside] = weakref.WeakKeyDictionary()

    def on_optimizer(self, optimizer: Optimizer) -> None:
        self._optimizers.append(weakref.ref(optimizer))

    def on_root_call(self, call: RootCall) -> None:
        if call.grad and call.has_parameters and not self.stage.steps and call.module not in self._beside:
            held = self._groups_of(call.module)
            if held:
                self._beside[call.module] = _copied(call.module, held)

    def on_root_return(self, call: RootCall) -> None:
        beside = self._beside.get(call.module)
        if beside is None:
            return
        if not isinstance(call.output, Tensor) or not call.output.is_floating_point():
            self.problem = OTHER_OUTPUT
            del self._beside[call.module]
            return
        with self.stage.quiet():
            call.output = call.output + beside.run(call)
        if call.grad:
            self.touch()

    def on_clip(self, clip: Clip) -> Any:
        """A norm is that of the whole model."""
        clipped = {id(parameter) for parameter in clip.parameters}
        clip.parameters.extend(other for beside in self._beside.values() for own, other in beside.pairs if id(own) in clipped)
        return None

    def let_zero_grad(self, owner: Any) -> bool:
        if isinstance(owner, nn.Module):
            for beside in (self._beside[module] for module in owner.modules() if module in self._beside):
                beside.clear()
        return True

    def _groups_of(self, module: nn.Module) -> dict[int, list[Any]]:
        """The parameter lists that hold this model's tensors, by tensor."""
        mine = {id(parameter) for parameter in module.parameters() if parameter.requires_grad}
        return {id(parameter): group["params"] for ref in self._optimizers if (optimizer := ref()) is not None
                for group in optimizer.param_groups for parameter in group["params"] if id(parameter) in mine}


def _copied(module: nn.Module, held: dict[int, list[Any]]) -> Beside:
    twin = copy.deepcopy(module)
    pairs = [(own, other) for own, other in zip(module.parameters(), twin.parameters()) if id(own) in held]
    generator = torch.Generator().manual_seed(torch.initial_seed() % 2**32 + APART)
    with torch.no_grad():
        for own, other in pairs:
            order = torch.randperm(other.numel(), generator=generator).to(other.device)
            other.copy_(other.reshape(-1)[order].view_as(other))
            held[id(own)].append(other)
    return Beside(twin, pairs)
