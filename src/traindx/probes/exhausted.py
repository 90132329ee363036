"""When memory ran out: where, in which phase, and what the program's own tensors held then."""
from __future__ import annotations

import re
import traceback
import weakref
from collections import Counter
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from traindx.core.observed import Site
from traindx.core.observed.memory import OutOfMemory
from traindx.probes import sites
from traindx.probes.memory import resident
from traindx.probes.session import BackwardRun, ForwardRun, Probe, Session, StepRun
from traindx.probes.tensors import shape_of, tensors_in

_ASKED_CPU = re.compile(r"tried to allocate (\d+) bytes")
_ASKED_GPU = re.compile(r"Tried to allocate ([\d.]+) ([KMGT]?i?B)")
_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
Shapes = tuple[tuple[int, ...], ...]


def install(session: Session) -> None:
    session.add(Exhausted)


def ran_out(problem: BaseException | None) -> bool:
    """Whether an exception says that memory ran out, on a CPU or a GPU."""
    gpu: Any = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
    if isinstance(problem, (gpu, MemoryError)):
        return True
    return isinstance(problem, RuntimeError) and "DefaultCPUAllocator" in str(problem)


def asked_of(message: str) -> int | None:
    """Bytes that an allocator's message says it could not give."""
    if match := _ASKED_CPU.search(message):
        return int(match[1])
    if match := _ASKED_GPU.search(message):
        return int(float(match[1]) * _UNITS.get(match[2], 1))
    return None


class Exhausted(Probe):
    """Follows models and optimizers weakly, and adds up what they hold when the program has ended so."""

    areas = ("memory",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._models: weakref.WeakSet[Any] = weakref.WeakSet()
        self._optimizers: list[weakref.ref[Any]] = []
        self._phase = "forward"
        self._inputs: Shapes = ()
        self._usual: Counter[Shapes] = Counter()

    def before_forward(self, run: ForwardRun) -> None:
        self._phase = "forward"
        self._models.add(run.module)
        self._inputs = tuple(shape_of(tensor) for tensor in tensors_in((run.args, run.kwargs), 4))
        if len(self._usual) < 256 or self._inputs in self._usual:
            self._usual[self._inputs] += 1

    def before_backward(self, run: BackwardRun) -> None:
        self._phase = "backward"

    def after_backward(self, run: BackwardRun) -> None:
        self._phase = "forward"

    def on_optimizer(self, optimizer: Any, id: int, site: Site | None) -> None:
        self._optimizers.append(weakref.ref(optimizer))

    def before_step(self, run: StepRun) -> None:
        self._phase = "step"

    def after_step(self, run: StepRun) -> None:
        self._phase = "forward"

    def at_end(self) -> None:
        if ran_out(self.session.problem):
            self.session.emit(self._told(self.session.problem))

    def _told(self, problem: Any) -> OutOfMemory:
        optimizers = [optimizer for ref in self._optimizers if (optimizer := ref()) is not None]
        models = list(self._models)
        owned = [*(t for model in models for t in (*model.parameters(), *model.buffers())),
                 *(p for optimizer in optimizers for group in optimizer.param_groups for p in group["params"])]
        states = [t for optimizer in optimizers for state in optimizer.state.values() for t in tensors_in(state, 64)]
        gpu = torch.cuda.is_available() and torch.cuda.is_initialized()
        usual = self._usual.most_common(1)
        return OutOfMemory(
            step=self.session.step, site=_line_of(problem), device="cuda" if gpu else "cpu", phase=self._phase, asked=asked_of(str(problem)),
            parameters=bytes_of(owned), gradients=bytes_of(p.grad for p in owned if p.is_leaf and p.grad is not None),
            optimizer=bytes_of(states), resident=resident(), reserved=torch.cuda.memory_reserved() if gpu else None,
            capacity=torch.cuda.mem_get_info()[1] if gpu else None, inputs=self._inputs, usual_inputs=usual[0][0] if usual else ())


def bytes_of(tensors: Iterable[Tensor]) -> int:
    """Each storage once."""
    found: dict[int, int] = {}
    for tensor in tensors:
        try:
            storage = tensor.untyped_storage()
        except Exception:
            continue
        found[storage._cdata] = storage.nbytes()
    return sum(found.values())


def _line_of(problem: BaseException) -> Site | None:
    for frame in reversed(traceback.extract_tb(problem.__traceback__)):
        if sites.is_user(frame.filename):
            return sites.at(frame.filename, frame.lineno or 0, frame.name)
    return None
