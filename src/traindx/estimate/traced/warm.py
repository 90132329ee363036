"""Loaded before the engine forks: tensors without data import much of torch at their first use."""
from __future__ import annotations

from contextlib import ExitStack

import torch

from traindx.estimate.traced import perform  # noqa: F401
from traindx.estimate.traced.faking import Faker
from traindx.estimate.traced.watch import Watch


def _use_once() -> None:
    with ExitStack() as stack:
        faker = Faker()
        faker.install(stack)
        Watch(faker, lambda: None).install(stack)
        model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.LayerNorm(2), torch.nn.Dropout(0.1))
        torch.optim.AdamW(model.parameters())
        torch.nn.functional.cross_entropy(model(torch.zeros(2, 2)), torch.zeros(2, dtype=torch.long))


_use_once()
