"""Values read out of tensors (``item``, ``float``, ``tolist``) are those that the same line read before: nothing is waited for.

For timing only: what the program decides by such a value, it decides by an old one. A line reads truly until it has done so once.
"""
from __future__ import annotations

from typing import Any

from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools.stage import Stage
from traindx.interventions.tools.switched import Switched
from traindx.probes import patching, sites

READS = ("item", "__float__", "__int__", "__bool__", "tolist")


class SkipReads(Switched):
    """Only where the line that reads is the user's own."""

    NOTHING = Text("The program read no values out of tensors.", "程序没有从张量里读过数值。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._known: dict[tuple[int, str], Any] = {}

    def install(self) -> None:
        for name in READS:
            patching.replace(self.stack, Tensor, name, lambda original, name=name: self._old(original, name))  # type: ignore[misc]

    def _old(self, original: Any, name: str) -> Any:
        def read(tensor: Any) -> Any:
            if not self.stage.watching or self.stage.in_backward:
                return original(tensor)
            site = sites.calling(2)
            if site is None:
                return original(tensor)
            key = (id(site), name)
            if not self.on or key not in self._known:
                self._known[key] = value = original(tensor)
                return value
            self.touch()
            return self._known[key]
        return patching.dressed(read, original)
