"""Gradients kept until a step has used them: a ``zero_grad`` between a backward and the step does nothing."""
from __future__ import annotations

from typing import Any

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention


class IgnoreZeroGradBeforeStep(Intervention):
    """``p.grad = None`` by hand escapes."""

    NOTHING = Text("No zero_grad came between a backward and its step.", "反向传播和 step 之间没有出现过 zero_grad。")

    def let_zero_grad(self, owner: Any) -> bool:
        if self.stage.backwards == 0:
            return True
        self.touch()
        return False
