"""Does an output depend on other samples of its batch? In eval mode, by gradients and by exchanging a sample."""
from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from traindx.core.observed import Site
from traindx.core.text import Text
from traindx.gauges import Watcher
from traindx.gauges.tools.aside import aside, cloned, mapped
from traindx.gauges.tools.batches import Samples, output_of, samples_of
from traindx.gauges.tools.losscalls import LossCall
from traindx.gauges.tools.ops import seen_by_modes
from traindx.gauges.tools.running import Running
from traindx.probes import mixing
from traindx.probes.session import ForwardRun
from traindx.probes.tensors import tensors_in

ROOTS = 4
ASKED = 8  # outputs whose gradients are taken
SHOWN = 12  # leaks that are listed
NOISE = 1e-6  # of the strongest gradient: above what rounding leaves
NO_CALL = Text("No module with gradients was called before a loss.", "计算损失之前，没有在开着梯度时调用过模块。")
ONE = Text("The batch has one sample only.", "这个 batch 只有一个样本。")
NO_DIM = Text("No output of {module} holds one entry for each of the {size} sample{size:|s}.",
              "{module} 的输出里，没有哪一维对应这 {size} 个样本。")
DEAD = Text("No output of {module} depends on its own input in a way that can be seen.", "看不出 {module} 的输出依赖它自己的输入。")


@dataclass(frozen=True)
class _Call:
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Measurement(Watcher):
    """Value: ``mixes`` (true where an output depends on another sample), ``module``, ``samples`` {size, dim, evidence},
    ``by_gradient`` and ``by_exchange`` (true, false, or null where it could not be asked), ``leaks`` [[output, input, strength
    beside the strongest gradient]], ``others`` (how many other samples reach one output), ``culprit``: null or the operation
    in which the samples meet {op, site, module, made_at}.

    The dimension of the samples is the setting ``dim``, else it is told by the labels; evidence "independent": the one along
    which nothing mixes; "assumed": the first, a guess.
    """

    settings: ClassVar[dict[str, Any]] = {"dim": None}

    def begin(self, stack: ExitStack) -> None:
        self._running = Running(stack)
        self._calls: list[_Call] = []

    def on_forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if len(self._calls) < ROOTS and all(call.module is not module for call in self._calls):
            self._calls.append(_Call(module, cloned(args), cloned(kwargs)))

    def on_loss(self, function: str, input: Tensor, target: Any, value: Tensor, kwargs: dict[str, Any], site: Site | None) -> None:
        if self._calls:
            self._measure(LossCall(function, input, target, value, kwargs, site))

    def on_backward(self, root: Tensor) -> None:
        if self._calls:
            self._measure(None)  # a loss by hand

    def _measure(self, loss: LossCall | None) -> None:
        calls, self._calls, self.done = self._calls, [], True
        found = [self._of(call, loss) for call in calls]
        mixing_one = next((value for value in found if value.get("mixes")), None)
        clear = next((value for value in found if "mixes" in value), None)
        self.send(mixing_one or clear or found[0])

    def _of(self, call: _Call, loss: LossCall | None) -> dict[str, Any]:
        """Where nothing tells which dimension holds the samples, it is one along which nothing mixes, if there is one."""
        samples = samples_of(list(tensors_in((call.args, call.kwargs))), loss, self.asked["dim"])
        found = self._along(call, samples)
        if samples is not None and samples.evidence == "assumed" and found.get("mixes"):
            other = samples_of(list(tensors_in((call.args, call.kwargs))), loss, 1)
            second = self._along(call, other)
            if other is not None and second.get("mixes") is False:
                return {**second, "samples": vars(replace(other, evidence="independent"))}
        return found

    def _along(self, call: _Call, samples: Samples | None) -> dict[str, Any]:
        name = type(call.module).__name__
        if samples is None or samples.size < 2:
            return _not(ONE)
        with aside(call.module, training=False):
            matrix = gradient_matrix(call.module, call.args, call.kwargs, samples)
            exchange = self._exchanged(call, samples)
        if isinstance(matrix, str):
            return _not(NO_DIM.fill(module=name, size=samples.size))
        by_gradient, by_exchange = None if matrix is None else leaks(matrix) != [], exchange.get("mixes")
        if by_gradient is None and by_exchange is None:
            return _not(DEAD.fill(module=name))
        listed = leaks(matrix) if matrix is not None else []
        reached = max((sum(1 for i, _, _ in listed if i == row) for row, _, _ in listed), default=exchange.get("others", 0) or 0)
        return {"mixes": bool(by_gradient or by_exchange), "module": name, "samples": vars(samples), "by_gradient": by_gradient,
                "by_exchange": by_exchange, "leaks": listed[:SHOWN], "others": reached, "culprit": self._culprit(exchange)}

    def _exchanged(self, call: _Call, samples: Samples) -> dict[str, Any]:
        """The same question by values: it needs no gradient, so that tokens and lookups are answered, too."""
        if samples.size < 3:
            return {"mixes": None}
        run = ForwardRun(0, _Samples(call.module, samples), call.args, call.kwargs, None, True, True)
        with seen_by_modes():
            return mixing.replayed(run, mixing.Batch(samples.size, samples.dim, samples.evidence))

    def _culprit(self, exchange: dict[str, Any]) -> dict[str, Any] | None:
        if not exchange.get("op"):
            return None
        return {"op": exchange["op"], "site": exchange.get("op_site"), "module": exchange.get("module_class") or None,
                "made_at": exchange.get("made_at")}

    def at_end(self) -> None:
        self.not_measured(NO_CALL)


class _Samples(nn.Module):  # type: ignore[misc]  # torch is not followed by the type checker
    """A module whose only output is the one that holds the samples: a loss beside it depends on all of them by right."""

    def __init__(self, module: nn.Module, samples: Samples) -> None:
        super().__init__()
        self.module, self.samples = module, samples

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        output = self.module(*args, **kwargs)
        held = output_of(output, self.samples)
        return held[0] if held is not None else output


def _not(why: Text) -> dict[str, Any]:
    return {"not_measured": {"en": why.en, "zh": why.zh}}


def gradient_matrix(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], samples: Samples) -> Tensor | str | None:
    """(outputs asked, samples): norm of the gradient of each output, weighted at random, with respect to each input.

    None where no input has gradients, "shape" where no output holds the samples.
    """
    inputs: list[Tensor] = []

    def leaf(tensor: Tensor) -> Tensor:
        copy = tensor.detach().clone()
        if copy.is_floating_point() and copy.dim() > samples.dim and copy.shape[samples.dim] == samples.size:
            inputs.append(copy.requires_grad_())
        return copy
    with torch.enable_grad():
        output = module(*mapped(args, leaf), **mapped(kwargs, leaf))
    held = output_of(output, samples)
    if held is None:
        return "shape"
    tensor, dim = held
    if not inputs or not tensor.requires_grad:
        return None
    return torch.stack([_row(tensor.select(dim, i), inputs, samples) for i in range(min(ASKED, samples.size))])


def _row(output: Tensor, inputs: list[Tensor], samples: Samples) -> Tensor:
    """A plain sum would hide probabilities, whose sum never changes: each element has a weight of its own."""
    weights = torch.rand(output.shape, generator=torch.Generator().manual_seed(0)).to(output) + 0.5
    found = torch.autograd.grad((output * weights).sum(), inputs, retain_graph=True, allow_unused=True)
    squares = [g.cpu().double().square().transpose(0, samples.dim).reshape(samples.size, -1).sum(1) for g in found if g is not None]
    return torch.stack(squares).sum(0).sqrt().cpu() if squares else torch.zeros(samples.size, dtype=torch.float64)


def leaks(matrix: Tensor) -> list[list[Any]]:
    """``[output, input, strength]`` of every other sample that reaches an output, strongest first."""
    strength = matrix / matrix.max().clamp_min(1e-300)
    found = [[i, j, float(strength[i, j])] for i, j in (strength > NOISE).nonzero().tolist() if i != j]
    return sorted(found, key=lambda leak: -leak[2])
