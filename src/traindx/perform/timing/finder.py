"""From where the program calls what trains it: the stacks of its first steps, for :mod:`traindx.speed.route`."""
from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

from traindx.core.speed import Span
from traindx.interventions.tools.stage import Backward, LossCall, Part, RootCall, Stage
from traindx.probes import sites
from traindx.probes.tensors import tensors_in
from traindx.speed.route import Call, Frame, Kind, Route, route_of

MOST = 400  # calls


class Finder(Part):
    """Looks until :attr:`done`. Frames are kept meanwhile, so that the same frame met again is known to be the same: it lasts if it came by the
    same instruction in several steps."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.done = stage, False
        self._step = 0
        self._calls: dict[tuple[Any, ...], tuple[Kind, list[tuple[FrameType, int]]]] = {}
        self._inputs: dict[int, list[tuple[Any, int]]] = {}  # of the model, by step: tensors (kept) and their versions
        self._steps: dict[tuple[FrameType, int], set[int]] = {}

    def on_root_call(self, call: RootCall) -> None:
        if call.grad and call.has_parameters and self._note("forward"):
            given = tensors_in([call.args, call.kwargs])
            self._inputs.setdefault(self._step, []).extend((t, -1 if t.is_inference() else t._version) for t in given)

    def on_loss_call(self, call: LossCall) -> None:
        if call.grad and not self.stage.depth:  # else it is a part of the model
            self._note("loss")

    def before_backward(self, run: Backward) -> None:
        self._note("backward")

    def before_step(self, optimizer: Any) -> None:
        self._note("step")

    def on_tick(self, step: int) -> None:
        self._step = step

    def _note(self, kind: Kind) -> bool:
        """Whether it was noted. The first step may hold what is only done once."""
        if self.done or not self._step or len(self._calls) >= MOST:
            return False
        frames = [(frame, frame.f_lasti) for frame in _users_frames(sys._getframe(2))]
        for place in frames:
            self._steps.setdefault(place, set()).add(self._step)
        self._calls.setdefault((kind, *((frame.f_code, at) for frame, at in frames)), (kind, frames))
        return True

    def route(self) -> Route:
        """What was found; nothing is looked at any more."""
        self.done = True
        lasting = {frame for (frame, _), steps in self._steps.items() if len(steps) > 1}
        calls = [Call(kind, tuple(_told(frame, at, frame in lasting) for frame, at in frames)) for kind, frames in self._calls.values()]
        sources = {frame.file: _text(frame.file) for call in calls for frame in call.frames}
        found = route_of(calls, sources)
        same = {frozenset((id(tensor), version) for tensor, version in given) for given in self._inputs.values()}
        if found.constant and len(same) > 1:  # by some way that the source does not show
            found.constant, found.unclear = False, True
        for kept in (self._calls, self._steps, self._inputs):
            kept.clear()
        return found


def _told(frame: FrameType, at: int, lasting: bool) -> Frame:
    code = frame.f_code
    return Frame(code.co_filename, code.co_name, code.co_firstlineno, _line(frame, at), _span(frame, at), lasting)


def _line(frame: FrameType, at: int) -> int:
    """Of an instruction: the frame itself may have gone on."""
    lines = (line for begin, end, line in frame.f_code.co_lines() if begin <= at < end and line is not None)
    return next(lines, frame.f_lineno)


def _users_frames(frame: FrameType | None) -> list[FrameType]:
    found = []
    while frame is not None:
        if sites.is_user(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back
    return found


def _span(frame: FrameType, at: int) -> Span | None:
    """Of the expression that an instruction belongs to; Python tells that from 3.11 on."""
    if not hasattr(frame.f_code, "co_positions"):
        return None
    first, last, begin, end = next(islice(frame.f_code.co_positions(), at // 2, None))
    return (first, last, begin, end) if None not in (first, last, begin, end) else None  # type: ignore[return-value]


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
