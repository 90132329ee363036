"""Which of the program's variables holds a graph that grows from step to step."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from torch import Tensor, nn

from traindx.interventions.tools.stage import Part, RootCall
from traindx.perform.timing.clock import EVERY, Clock, nodes_of
from traindx.probes import sites

MOST = 400  # variables


class Growth(Part):
    """``nodes``: variable -> nodes of its graph at the end of every few steps; ``file``: where the variables are."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.nodes: dict[str, list[int]] = {}
        self.file = ""
        self._model: nn.Module | None = None

    def on_root_call(self, call: RootCall) -> None:
        self._model = call.module if call.grad and call.has_parameters else self._model

    def on_tick(self, step: int) -> None:
        if not self.clock.running or self.clock.steps % EVERY:
            return
        before = self.clock.now()
        for name, tensor in self._held():
            self.nodes.setdefault(name, []).append(nodes_of([tensor]))
        self.clock._last += self.clock.now() - before

    def _held(self) -> Iterator[tuple[str, Tensor]]:
        frame = _users_frame()
        if frame is None:
            return
        self.file = frame.f_code.co_filename
        yield from _with_graph({**frame.f_globals, **frame.f_locals}, "")
        for module in self._model.modules() if self._model is not None else ():
            yield from _with_graph(vars(module), "self.")

    @property
    def grown(self) -> str:
        """The variable whose graph grew most; "" where none did."""
        growth = {name: counts[-1] - counts[0] for name, counts in self.nodes.items() if len(counts) > 1}
        name = max(growth, key=lambda name: growth[name], default="")
        return name if name and growth[name] > 0 else ""


def _users_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not sites.is_user(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def _with_graph(variables: dict[str, Any], lead: str) -> Iterator[tuple[str, Tensor]]:
    for name, value in list(variables.items())[:MOST]:
        if isinstance(value, Tensor) and value.grad_fn is not None:
            yield lead + name, value
