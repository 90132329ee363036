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
GONE = 1e10  # a loss this many times its start is called diverged, and the curve ends there


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
            watch: Callable[[Parameters], Tensor] | None = None, decay: Tensor | float = 0.0) -> Tensor:
    """Gradient descent in place, each copy with its own rate (and decay): the watched losses at 0 .. steps [steps + 1, copies].

    ``objective(parameters, step)`` is what is descended, [copies]; ``watch`` (the objective, if not given) is what is recorded.
    """
    rates, shrink = (torch.as_tensor(each, dtype=torch.float64).view(-1, 1, 1) for each in (rates, rates * decay))
    seen = []
    for step in range(steps):
        losses = objective(parameters, step)
        gradients = torch.autograd.grad(losses.sum(), parameters)
        with torch.no_grad():
            seen.append(watch(parameters) if watch else losses.detach())
            for parameter, gradient in zip(parameters, gradients):
                parameter.sub_(rates * gradient + shrink * parameter)
    with torch.no_grad():
        return torch.stack([*seen, watch(parameters) if watch else objective(parameters, steps)])


def curve(losses: Sequence[float], start: float | None = None) -> list[float]:
    """A curve as it is drawn: from the first value beyond GONE times the start on it is infinite."""
    limit = GONE * abs(losses[0] if start is None else start)
    alive = True
    drawn = []
    for loss in losses:
        alive = alive and abs(loss) <= limit
        drawn.append(loss if alive else float("inf"))
    return drawn


def climb(losses: Sequence[float]) -> float:
    """The share of a curve's whole way that leads up: 0 falls all along, 0.5 comes back to where it began, 1 only rises."""
    moves = [after - before for before, after in pairwise(losses)]
    return sum(move for move in moves if move > 0) / max(sum(map(abs, moves)), 1e-300)
