"""The model sees noise: inputs drawn anew, with the mean and spread of those that they replace."""
from __future__ import annotations

import torch
from torch import Tensor

from traindx.interventions.tools.inputs import ReplacedInputs
from traindx.interventions.tools.stage import Stage


class RandomInputs(ReplacedInputs):
    """Class numbers and tokens are shuffled among themselves. What is called a label, target, mask or length stays."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._generator = torch.Generator().manual_seed(0)

    def instead(self, tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            flat = tensor.reshape(-1)
            return flat[torch.randperm(len(flat), generator=self._generator).to(flat.device)].reshape(tensor.shape)
        noise = torch.randn(tensor.shape, generator=self._generator, dtype=torch.float32).to(tensor.device, tensor.dtype)
        return noise * tensor.std(unbiased=False) + tensor.mean()
