"""Asking a module of the program something aside: afterwards modes, buffers and random numbers are as they were."""
from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


@contextmanager
def aside(module: nn.Module, training: bool | None = None) -> Iterator[None]:
    """Inside, the module is in the mode asked for and anything may be drawn; what it keeps in plain attributes stays changed."""
    modes = [(inner, inner.training) for inner in module.modules()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    with random_numbers_kept():
        try:
            if training is not None:
                module.train(training)
            yield
        finally:
            for inner, mode in modes:
                inner.training = mode
            for buffer, before in buffers:
                if not torch.equal(buffer, before):
                    buffer.data.copy_(before)  # past autograd: the program's graph may hold this buffer


@contextmanager
def random_numbers_kept() -> Iterator[None]:
    """The global generators of python, numpy and torch go on afterwards as if nothing had been drawn."""
    states = random.getstate(), np.random.get_state()
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices):
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(states[1])


def mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """Nested tuples, lists and dicts with every tensor changed; everything else as it is."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(item, change) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(item, change) for item in value)
    if type(value) is dict:
        return {key: mapped(item, change) for key, item in value.items()}
    return value


def cloned(value: Any) -> Any:
    """Inputs of a forward as they are now: a program may write into them later."""
    return mapped(value, lambda tensor: tensor.detach().clone())
