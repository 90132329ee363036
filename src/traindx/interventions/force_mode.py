"""The right mode, whatever the program forgot: ``to`` = ``eval`` for passes without gradients, ``train`` for those with."""
from __future__ import annotations

import weakref
from typing import Literal

from torch import nn

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import RootCall, Stage

To = Literal["train", "eval"]
CHOICES: tuple[To, ...] = ("train", "eval")


class ForceMode(Intervention):
    """For the length of a root module's call. ``train`` means: each part as it was in the first training pass, so that
    what is kept in eval mode on purpose stays there.
    """

    NOTHING = Text("Every pass was in the right mode.", "每一次前向都处在正确的模式。")

    def __init__(self, stage: Stage, to: To) -> None:
        super().__init__(stage)
        if to not in CHOICES:
            raise ValueError(f"to: one of {', '.join(CHOICES)}")
        self.to = to
        self._first: weakref.WeakKeyDictionary[nn.Module, dict[str, bool]] = weakref.WeakKeyDictionary()
        self._kept: list[tuple[nn.Module, bool]] = []

    def on_root_call(self, call: RootCall) -> None:
        self._put_back()  # of a call that raised
        if not call.has_parameters:
            return
        if self.to == "eval" and not call.grad:
            self._set(dict.fromkeys(call.module.modules(), False))
        elif self.to == "train" and call.grad:
            first = self._first.setdefault(call.module, {name: m.training for name, m in call.module.named_modules()})
            self._set({m: first.get(name, m.training) for name, m in call.module.named_modules()})

    def _set(self, modes: dict[nn.Module, bool]) -> None:
        for module, mode in modes.items():
            if module.training != mode:
                self._kept.append((module, module.training))
                module.training = mode
        self.touched += bool(self._kept)

    def on_root_return(self, call: RootCall) -> None:
        self._put_back()

    def _put_back(self) -> None:
        for module, mode in self._kept:
            module.training = mode
        self._kept.clear()
