"""What is not finite in the model's inputs becomes 0, in training and in validation."""
from __future__ import annotations

import torch
from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools.inputs import ReplacedInputs


class FiniteInputs(ReplacedInputs):
    """NaN and infinities only; all else stays, to the last bit."""

    NOTHING = Text("All inputs of the model were finite.", "模型的输入全是有限数。")

    def takes(self, tensor: Tensor) -> bool:
        return super().takes(tensor) and tensor.is_floating_point() and not bool(torch.isfinite(tensor).all())

    def instead(self, tensor: Tensor) -> Tensor:
        return torch.nan_to_num(tensor, nan=0.0, posinf=0.0, neginf=0.0)
