"""Exchanging what a model is called with."""
from __future__ import annotations

import re
from typing import Any

from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools import rows
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import RootCall
from traindx.probes.tensors import plain

KEPT = re.compile(r"label|target|mask|length|position", re.IGNORECASE)  # arguments that are no data


class ReplacedInputs(Intervention):
    """Every tensor that comes from outside into a root module with parameters is replaced by :meth:`instead`."""

    NOTHING = Text("No model was called with plain data.", "没有模型直接以数据作为输入。")

    def instead(self, tensor: Tensor) -> Tensor:
        """What the model is to get for it: same shape, type and device."""
        raise NotImplementedError

    def takes(self, tensor: Tensor) -> bool:
        """What another model made is no data."""
        return plain(tensor) and tensor.grad_fn is None and not tensor.requires_grad and not self.stage.outputs.get(tensor)

    def on_root_call(self, call: RootCall) -> None:
        if call.has_parameters:
            call.args = tuple(rows.mapped(value, self._exchanged) for value in call.args)
            call.kwargs = {name: value if KEPT.search(name) else self._all(value) for name, value in call.kwargs.items()}

    def _all(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: item if KEPT.search(str(name)) else self._all(item) for name, item in value.items()}
        return rows.mapped(value, self._exchanged)

    def _exchanged(self, tensor: Tensor) -> Tensor:
        if not self.takes(tensor):
            return tensor
        self.touch()
        return self.instead(tensor.detach())
