"""Shapes of whole training steps: every module call, and the user's variables that hold tensors. On for ``traindx shapes`` only."""
from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import torch
from torch import nn

from traindx.core.observed.shapes import ModuleCall, StepShapes, Variable
from traindx.probes import sites
from traindx.probes.fewer import Branches
from traindx.probes.ops import Traces
from traindx.probes.session import BackwardRun, ForwardRun, Probe, Session, StepRun
from traindx.probes.tensors import dtype_of, shape_of, tensors_in

LOOK = "shapes"
CALLS, VARIABLES = 5000, 5000  # of a step
FRAMES = 60  # looked through for the user's
LOCALS = 500  # names of a frame


def install(session: Session) -> None:
    if LOOK in session.looks:
        session.add(Shapes)
        Branches.begin(session)


class Shapes(Probe):
    """Collects what one step shows; told together with the step's op trace."""

    areas = ("shape",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.tracer = Traces.tracer
        self.tracer.after_op = self.after_op
        self.start = 0
        self._forget()

    def _forget(self) -> None:
        self._calls: list[ModuleCall] = []
        self._variables: dict[Variable, None] = {}
        self.start = 0

    def batch_came(self) -> None:
        """What variables held before is of the batch before."""
        if not self.start:
            self.start = len(self.tracer.ops)
            self._variables.clear()

    def after_op(self) -> None:
        """Called by the tracer: the frames of the user's that led to this operation."""
        if len(self._variables) < VARIABLES:
            self._look(sys._getframe(3))

    def _look(self, frame: FrameType | None) -> None:
        for _ in range(FRAMES):
            if frame is None:
                return
            if sites.is_user(frame.f_code.co_filename):
                self._variables |= dict.fromkeys(_tensors_of(frame))
            frame = frame.f_back

    def after_module(self, module: nn.Module, path: str, args: tuple[Any, ...], output: Any) -> None:
        self._note(module, path, args, output)

    def after_forward(self, run: ForwardRun) -> None:
        if not run.failed:
            self._note(run.module, "", (run.args, run.kwargs), run.output)

    def _note(self, module: nn.Module, path: str, args: Any, output: Any) -> None:
        if not self.tracer.armed or len(self._calls) >= CALLS:
            return
        outputs = list(tensors_in(output, 4))
        library = not sites.is_user(_file_of(module))
        self._calls.append(ModuleCall(
            path, type(module).__name__, sites.here(4), tuple(shape_of(t) for t in tensors_in(args, 6)),
            tuple(shape_of(t) for t in outputs), dtype_of(outputs[0]) if outputs else "", len(self.tracer.ops), library,
            not any(call.path.startswith(f"{path}." if path else "") for call in self._calls[-200:] if call.path)))

    def before_backward(self, run: BackwardRun) -> None:
        self._look(sys._getframe(3))

    def before_step(self, run: StepRun) -> None:
        self._tell()

    def on_tick(self, step: int) -> None:
        self._tell()

    def _tell(self) -> None:
        if self._calls or self._variables:
            self.session.emit(StepShapes(
                step=self.session.step, key=f"shapes-{self.session.step}", calls=tuple(self._calls),
                variables=tuple(self._variables), start=self.start))
        self._forget()


def _file_of(module: nn.Module) -> str:
    code = getattr(type(module).forward, "__code__", None)
    return code.co_filename if code is not None else torch.__file__


def _tensors_of(frame: FrameType) -> list[Variable]:
    """Plain names of a frame that hold tensors. Of a module only those of a loop are wanted, which the reader decides."""
    code, place = frame.f_code, sites.of_frame(frame, frame.f_code.co_filename)
    return [Variable(place.file, code.co_name, frame.f_lineno, name, shape_of(value), dtype_of(value))
            for name, value in list(frame.f_locals.items())[:LOCALS]
            if isinstance(value, torch.Tensor) and not value.is_nested and not isinstance(value, nn.Parameter)]
