"""Small nets for the labs, several copies trained side by side: copy k owns slice k of every parameter.

The gradient of the sum of the copies' losses is, for each copy, the gradient of its own loss: one backward serves all.
Chance comes from generators of their own, never from the global one; numbers are float64.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

Parameters = list[Tensor]  # weight [copies, fan_in, fan_out] and bias [copies, 1, fan_out] of each layer
GONE = 1e8  # a loss this many times its start is called diverged, and the curve ends there


def dice(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def copies_of(parameters: Parameters, count: int) -> Parameters:
    """``count`` copies that start from the same weights."""
    return [parameter.detach().repeat(count, 1, 1).requires_grad_() for parameter in parameters]


def mlp(widths: Sequence[int], generators: Sequence[torch.Generator], gain: float = 1.0) -> Parameters:
    """One copy for each generator; weights of standard deviation gain / sqrt(fan_in), biases 0."""
    parameters: Parameters = []
    for fan_in, fan_out in pairwise(widths):
        weights = [normal(generator, fan_in, fan_out) * gain / fan_in**0.5 for generator in generators]
        parameters += [torch.stack(weights), torch.zeros(len(generators), 1, fan_out, dtype=torch.float64)]
    return [parameter.requires_grad_() for parameter in parameters]


def forward(parameters: Parameters, inputs: Tensor, activation: Callable[[Tensor], Tensor] = torch.tanh) -> Tensor:
    """[batch, in] -> [copies, batch, out]; the last layer is linear."""
    hidden = inputs.expand(len(parameters[0]), *inputs.shape[-2:])
    for place in range(0, len(parameters), 2):
        hidden = torch.baddbmm(parameters[place + 1], hidden, parameters[place])
        if place < len(parameters) - 2:
            hidden = activation(hidden)
    return hidden


def squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """The mean over the batch, for each copy: [copies, batch, out] -> [copies]."""
    return (outputs - targets).square().mean((1, 2))


def descend(parameters: Parameters, objective: Callable[[Parameters, int], Tensor], steps: int, rates: Tensor, *,
            watch: Callable[[Parameters], Tensor] | None = None, decay: float = 0.0) -> Tensor:
    """Gradient descent in place, each copy with its own rate: the watched losses at 0 .. steps [steps + 1, copies].

    ``objective(parameters, step)`` is what is descended, [copies]; ``watch`` (the objective, if not given) is what is recorded.
    """
    rates = rates.view(-1, 1, 1)
    seen = [_record(parameters, objective, watch, 0)]
    for step in range(steps):
        gradients = torch.autograd.grad(objective(parameters, step).sum(), parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients):
                parameter.sub_(rates * (gradient + decay * parameter))
        seen.append(_record(parameters, objective, watch, step + 1))
    return torch.stack(seen)


def _record(parameters: Parameters, objective: Callable[[Parameters, int], Tensor], watch: Callable[[Parameters], Tensor] | None,
            step: int) -> Tensor:
    with torch.no_grad():
        return watch(parameters) if watch else objective(parameters, step)


def curve(losses: Sequence[float], start: float | None = None) -> list[float]:
    """A curve as it is drawn: from the first value beyond GONE times the start on it is infinite."""
    limit = GONE * abs(losses[0] if start is None else start)
    alive = True
    drawn = []
    for loss in losses:
        alive = alive and abs(loss) <= limit
        drawn.append(loss if alive else float("inf"))
    return drawn
