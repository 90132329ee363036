"""The model's real-valued inputs times ``k``, in training and in validation."""
from __future__ import annotations

from torch import Tensor

from traindx.interventions.tools.inputs import ReplacedInputs
from traindx.interventions.tools.stage import Stage


class ScaleInputs(ReplacedInputs):
    """Class numbers and tokens stay, and so does what is called a label, target, mask or length."""

    def __init__(self, stage: Stage, k: float) -> None:
        super().__init__(stage)
        self.k = float(k)

    def takes(self, tensor: Tensor) -> bool:
        return super().takes(tensor) and tensor.is_floating_point()

    def instead(self, tensor: Tensor) -> Tensor:
        return tensor * self.k
