"""The same training step with fewer samples, in a child that goes on with the program from where the batch arrives.

The child is a fork: nothing of it comes back but what it says, and nothing is written (see replay). It ends with its
step. Where a DataLoader gives the batch, the child gets fewer of its samples; else what picks rows of a larger tensor
gives fewer rows, and so do the arguments of the root module.
"""
from __future__ import annotations

import atexit
import copy
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch.overrides import _push_mode
from torch.utils.data.dataloader import _BaseDataLoaderIter

from traindx.core.codec import decode, encode
from traindx.core.observed import Site
from traindx.core.observed.ops import OpTrace
from traindx.core.observed.shapes import OtherBatch, StepShapes
from traindx.probes import patching, replay, sites
from traindx.probes.modules import Forwards
from traindx.probes.ops import StackMode, Traces
from traindx.probes.recorder import Recorder
from traindx.probes.session import ForwardRun, Probe, Session, StepRun
from traindx.probes.tensors import plain, tensors_in

STEP = 2  # by then the loop is warm, and its trace is whole
LATEST = 4  # the child's last step, where a framework fetches batches ahead
ROWS = frozenset(("__getitem__", "index_select", "narrow", "take_along_dim"))
LISTS = frozenset(("split", "chunk", "tensor_split", "unbind"))
JOINS = frozenset(("stack", "cat", "concat", "vstack"))
MADE = frozenset(("rand", "randn", "randint", "randperm", "zeros", "ones", "full", "arange", "empty", "normal",
                  "tensor", "from_numpy", "as_tensor"))


class Branches(Probe):
    """Asks for the branches in the program's own process, and speaks for it in a child."""

    instance: Branches | None = None

    @staticmethod
    def begin(session: Session) -> None:
        patching.replace(session.stack, _BaseDataLoaderIter, "__next__", lambda original: _observed_next(original, session))
        session.add(Branches)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.loaded = False  # a batch came for training
        self.full = 0  # samples of the root's batch, by dim 0 of its first argument
        self.done: set[int] = set()
        self.failed = False
        self.child: _Child | None = None
        self.tracer = Traces.tracer
        Branches.instance = self

    # -- in the program --

    def on_batch_of(self, loader_batch: int | None, batch: Any) -> Any:
        """The batch, or in a child fewer samples of it."""
        self.loaded = self.loaded or torch.is_grad_enabled()
        if self.child is not None:
            self.child.next_batch()
            return batch
        if self.session.step == 1 and not self.tracer.armed and torch.is_grad_enabled() and not self.session.compiled:
            self.tracer.arm()
        self._mark_start()
        if self.session.step != STEP or not torch.is_grad_enabled() or self.done:
            return batch
        full = samples_in(batch, loader_batch)
        if full is None or full < 2:
            self.done.add(0)
            self.session.emit(OtherBatch(step=STEP, key="other-none", samples=0, full=full or 0, how="loader",
                                         why="one sample only" if full == 1 else "no dimension of the batch holds its samples"))
            return batch
        given = self._with_fewer(batch, full)
        return given[0] if given is not None else batch

    def _with_fewer(self, batch: Any, full: int) -> tuple[Any] | None:
        """In a child, its batch. Where a tensor has as many samples as steps in time, either may come first."""
        tensors = list(tensors_in(batch, 32))
        square = any(t.dim() > 1 and t.shape[0] == t.shape[1] == full for t in tensors)
        leading = all(t.dim() > 0 and t.shape[0] == full for t in tensors)
        for dims in ((0, 1), (1, 0)) if square else ((0, 1),):
            sure, fits = leading and not square, True
            for samples in dict.fromkeys((full - 1, 1)):
                made = self._branch("loader", samples, full, partial(fewer, batch, full, dims=dims), sure)
                if made is not None:
                    return made
                fits = fits and (samples == 1 or not self.failed)
                sure = sure or not self.failed
            if fits:
                break
        return None

    def _mark_start(self) -> None:
        for probe in self.session.probes:
            if hasattr(probe, "batch_came") and self.tracer.armed:
                probe.batch_came()

    def before_forward(self, run: ForwardRun) -> None:
        if self.child is not None:
            self.child.enter(run)
        elif run.grad and not self.full:
            first = next(tensors_in((run.args, run.kwargs), 1), None)
            self.full = int(first.shape[0]) if first is not None and first.dim() > 0 else 0

    def before_step(self, run: StepRun) -> None:
        if self.child is not None:
            self.child.step_over()

    def on_tick(self, step: int) -> None:
        if self.child is not None:
            self.child.step_over()
        elif step == STEP - 1 and not self.loaded and self.full >= 2:
            sure = False
            for samples in dict.fromkeys((self.full - 1, 1)):
                if self._branch("rows", samples, self.full, lambda n: Rows(self.session, self.full, n), sure) is not None:
                    return
                sure = not self.failed

    def _branch(self, how: str, samples: int, full: int, make: Callable[[int], Any], sure: bool) -> tuple[Any] | None:
        """None in the program, when the child is over; in the child, what ``make`` gave.

        ``sure``: all that holds samples got fewer, so that an error is the program's own.
        """
        self.done.add(samples)
        said = self._fork(how, samples, full, make)
        if isinstance(said, tuple):
            return said
        if said.error:  # is it the number of samples, or that it ran in a child?
            control = self._fork(how, full, full, make)
            if isinstance(control, tuple):
                return control
            if control.error or control.why:
                said = replace(said, error="", why=f"the step cannot be repeated in a child: {control.error or control.why}")
            elif not sure:
                said = replace(said, error="", why=f"not everything that holds samples could be made smaller ({said.error})")
        self.failed = bool(said.error or said.why)
        self.session.emit(said)
        return None

    def _fork(self, how: str, samples: int, full: int, make: Callable[[int], Any]) -> OtherBatch | tuple[Any]:
        armed, step = self.tracer.armed, self.session.step
        about = [module for probe in self.session.probes if isinstance(probe, Forwards) for module in probe.roots()]
        outcome = replay.branch(self.session, about)
        if isinstance(outcome, replay.Branch):
            self.child = _Child(self, outcome, armed, samples, full)
            return (make(samples),)
        facts = {"step": step, "key": f"other-{samples}", "samples": samples, "full": full, "how": how}
        return decode(OtherBatch, {**facts, **(outcome.value or {"why": outcome.why})})  # type: ignore[no-any-return]


def _observed_next(original: Any, session: Session) -> Any:
    def __next__(self: Any) -> Any:
        batch = original(self)
        branches = Branches.instance
        if branches is None or not session.watching:
            return batch
        given: list[Any] = []
        sampler = getattr(self, "_index_sampler", None)
        session.guard(branches, lambda: given.append(branches.on_batch_of(getattr(sampler, "batch_size", None), batch)))
        return given[0] if given else batch
    return patching.dressed(__next__, original)


# -- in the child --


class _Child:
    """Goes on with the program until its step is over, then says what it saw."""

    def __init__(self, owner: Branches, pipe: replay.Branch, armed: bool, samples: int, full: int) -> None:
        self.pipe = pipe
        self.session = session = owner.session
        self.samples, self.full = samples, full
        self.entered = False
        session.active = True  # a fork is silent by itself
        session.recorder = Recorder(None)
        session.max_steps = None
        replay.Replays.instance = None
        if armed:
            session.tracing = True
            owner.tracer.on()
        sys.excepthook = self.raised
        atexit.register(lambda: self.say({"why": "the program ended before its step did"}))

    def enter(self, run: ForwardRun) -> None:
        """A root begins. Where batches are fetched ahead, it may still be given the batch before."""
        if Rows.instance is not None and run.grad:
            Rows.instance.enter(run)
        leads = {n for t in tensors_in((run.args, run.kwargs)) for n in t.shape[:2]}
        ours = self.samples in leads and (self.samples == self.full or self.full not in leads)
        self.entered = self.entered or (run.grad and ours)

    def next_batch(self) -> None:
        """Several batches to one step: what the first of them showed is enough."""
        if self.entered:
            self.finish()

    def step_over(self) -> None:
        if self.entered or self.session.step >= LATEST:
            self.finish()

    def finish(self) -> NoReturn:
        self.say(self.seen() if self.entered else {"why": "no model was given the smaller batch"})

    def seen(self) -> dict[str, Any]:
        for probe in self.session.probes:
            for name in ("_finish", "_tell"):
                if hasattr(probe, name) and type(probe).__name__ in ("Traces", "Shapes"):
                    getattr(probe, name)()
        memory = self.session.recorder.memory
        trace = memory.last(OpTrace) if memory is not None else None
        shapes = memory.last(StepShapes) if memory is not None else None
        return {"trace": encode(trace) if trace else None, "shapes": encode(shapes) if shapes else None}

    def raised(self, kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> NoReturn:
        text = f"{kind.__name__}: {problem}".strip()[:400]
        if isinstance(problem, OSError):
            self.say({"why": f"the step reaches outside the process ({text})"})
        site = _user_site(trace)
        with torch._C.DisableTorchFunction(), self.session.quiet():
            self.say({**self.seen(), "error": text, "error_site": encode(site) if site else None})

    def say(self, value: dict[str, Any]) -> NoReturn:
        self.pipe.say(value)


def _user_site(trace: TracebackType | None) -> Site | None:
    """The innermost line of the user's in a traceback."""
    frames = [(frame, line) for frame, line in traceback.walk_tb(trace) if sites.is_user(frame.f_code.co_filename)]
    if not frames:
        return None
    frame, line = frames[-1]
    return sites.at(frame.f_code.co_filename, line, frame.f_code.co_name)


class Rows(StackMode):
    """Fewer rows: what is picked from a larger tensor, or made anew with that many rows."""

    instance: Rows | None = None

    def __init__(self, session: Session, full: int, samples: int) -> None:
        super().__init__(session)
        self.full, self.samples = full, samples
        Rows.instance = self
        self.on()
        Meeting(self).on()

    def idle(self) -> bool:
        return bool(self.session.thread.busy or self.session.thread.depth or self.session.in_backward or self.full == self.samples)

    def handle(self, func: Any, args: Any, kwargs: Any) -> Any:
        output = func(*args, **kwargs)
        if self.idle():
            return output
        name = getattr(func, "__name__", "")
        given = next(tensors_in((args, list(kwargs.values())), 1), None)
        picked = name in ROWS | LISTS and given is not None and given.dim() > 0 and given.shape[0] != self.full
        return mapped(output, self.cut) if picked or name in JOINS | MADE else output

    def enter(self, run: ForwardRun) -> None:
        """Arguments that were not picked from anything: the whole data, or a batch that was made before the fork."""
        if not any(self.samples in t.shape[:2] for t in tensors_in((run.args, run.kwargs))):
            run.args, run.kwargs = mapped(run.args, self.cut), mapped(run.kwargs, self.cut)

    def cut(self, tensor: Tensor) -> Tensor:
        if tensor.dim() == 0 or tensor.shape[0] != self.full or isinstance(tensor, torch.nn.Parameter):
            return tensor
        return tensor[: self.samples] if plain(tensor) else tensor


class Meeting(StackMode):
    """Operands that still have all rows (labels fetched before) lose some where they meet others that have fewer.

    It stands before the tracer, which shall see what it makes, and :class:`Rows` behind it.
    """

    def __init__(self, rows: Rows) -> None:
        super().__init__(rows.session)
        self.rows = rows

    def on(self) -> None:
        self.armed = self.placed = True
        _push_mode(self)

    def handle(self, func: Any, args: Any, kwargs: Any) -> Any:
        rows = self.rows
        if not rows.idle() and getattr(func, "__name__", "") not in ROWS:
            sizes = {int(t.shape[0]) for t in tensors_in((args, list(kwargs.values())), 70) if t.dim() > 0}
            if {rows.full, rows.samples} <= sizes:
                args, kwargs = mapped(args, rows.cut), mapped(kwargs, rows.cut)
        return func(*args, **kwargs)


# -- batches --


def samples_in(batch: Any, of_loader: int | None) -> int | None:
    """How many samples a batch holds: dim 0 (else dim 1) of its tensors, else the length of its lists. None: not known."""
    tensors = [t for t in tensors_in(batch, 32) if t.dim() > 0]
    if not tensors:
        return None
    leads = [int(t.shape[0]) for t in tensors]
    if of_loader and (of_loader in leads or any(of_loader in t.shape[:2] for t in tensors)):
        return of_loader
    if len(set(leads)) == 1 and plain(tensors[0]):
        return leads[0]
    lengths = [len(part) for part in (batch if isinstance(batch, (list, tuple)) else ()) if isinstance(part, (list, tuple))]
    return lengths[0] if len(set(lengths)) == 1 else None


def fewer(batch: Any, full: int, samples: int, dims: tuple[int, int] = (0, 1)) -> Any:
    """The batch with its first ``samples`` samples: along the first of ``dims`` in which a tensor has ``full``."""
    def cut(tensor: Tensor) -> Tensor:
        if not plain(tensor) or tensor.dim() == 0:
            return tensor
        dim = next((d for d in dims if d < tensor.dim() and tensor.shape[d] == full), None)
        return tensor if dim is None else tensor.narrow(dim, 0, samples).clone()
    return mapped(batch, cut, (full, samples))


def mapped(value: Any, change: Callable[[Tensor], Tensor], lists: tuple[int, int] | None = None) -> Any:
    """Tensors in nested containers, changed. ``lists`` (full, samples): lists of ``full`` items keep their first few."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        changed = {key: mapped(item, change, lists) for key, item in value.items()}
        return changed if type(value) is dict else _rebuilt(value, changed)
    if isinstance(value, (list, tuple)):
        items = list(value)
        if lists and len(items) == lists[0] and not _holds_batches(items, lists[0]):
            items = items[: lists[1]]
        else:
            items = [mapped(item, change, lists) for item in items]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if hasattr(type(value), "__dataclass_fields__"):
        other = copy.copy(value)
        for name in type(value).__dataclass_fields__:
            object.__setattr__(other, name, mapped(getattr(value, name), change, lists))
        return other
    if type(getattr(value, "data", None)) is dict and hasattr(type(value), "__getitem__"):  # transformers' BatchEncoding
        return _rebuilt(value, mapped(value.data, change, lists))
    return value


def _rebuilt(value: Any, items: dict[Any, Any]) -> Any:
    """A mapping of the same kind with other items."""
    other = copy.copy(value)
    for key, item in items.items():
        other[key] = item
    return other


def _holds_batches(items: list[Any], full: int) -> bool:
    return any(isinstance(item, Tensor) and item.dim() > 0 and item.shape[0] == full for item in items)

