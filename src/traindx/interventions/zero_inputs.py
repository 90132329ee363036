"""The model sees no data: its inputs are zeros, in training and in validation."""
from __future__ import annotations

import torch
from torch import Tensor

from traindx.interventions.tools.inputs import ReplacedInputs


class ZeroInputs(ReplacedInputs):
    """Class numbers and tokens become number 0. What is called a label, target, mask or length stays."""

    def instead(self, tensor: Tensor) -> Tensor:
        return torch.zeros_like(tensor)
