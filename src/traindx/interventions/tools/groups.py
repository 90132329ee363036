"""Changing a setting of an optimizer's groups for the length of its step only: schedulers and the program see their own."""
from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch.optim import Optimizer

from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Stage


class GroupSetting(Intervention):
    """Sets ``key`` in every group that has it, before each step, and puts it back after."""

    KEY: ClassVar[str]

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._kept: list[tuple[dict[str, Any], Any]] = []

    def changed(self, value: Any) -> Any:
        """The value to step with, given the program's own."""
        raise NotImplementedError

    def before_step(self, optimizer: Optimizer) -> None:
        self._put_back()  # of a step that raised

    def before_any_step(self, optimizer: Optimizer) -> None:
        for group in optimizer.param_groups:
            value = group.get(self.KEY)
            # a wrapper (SAM, Lookahead) shares its groups with the optimizer inside: each is changed once
            if isinstance(value, (int, float, torch.Tensor)) and all(group is not other for other, _ in self._kept):
                self._change(group, value)

    def _change(self, group: dict[str, Any], value: Any) -> None:
        changed = self.changed(value)
        self._kept.append((group, value))
        group[self.KEY] = changed
        if float(changed) != float(value):
            self.touch()

    def after_step(self, optimizer: Optimizer) -> None:
        self._put_back()

    def _put_back(self) -> None:
        for group, value in self._kept:
            group[self.KEY] = value
        self._kept.clear()
