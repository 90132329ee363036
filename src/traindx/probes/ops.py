"""The op trace of a few chosen steps, by a TorchFunctionMode: every tensor operation with its operands' makers and the user's line.

The mode is put at the bottom of the mode stack and taken out by identity, since steps do not nest with the user's own modes. It is never
used once torch.compile is in play: each push would recompile.
"""
from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode, _len_torch_function_stack, _pop_mode, _push_mode
from torch.utils._device import DeviceContext

from traindx.core.observed import Compiled
from traindx.core.observed.ops import Input, Op, OpTrace
from traindx.probes import patching, sites
from traindx.probes.modules import path_of
from traindx.probes.novelty import Novelty, ending_key, forward_key, loss_key, read_at
from traindx.probes.session import TRACED_STEPS, BackwardRun, ForwardRun, LossRun, Probe, Session, StepRun
from traindx.probes.tensors import dtype_of, plain, readable, sample, shape_of, tensors_in

OPS_LIMIT = 3000
EVAL_TRACES = 2
PRELUDE = 300  # ops between two steps that are kept
NOT_OPS = frozenset(("__get__", "__set__", "__delete__", "size", "dim", "stride", "numel", "is_floating_point", "is_complex",
                      "__len__", "element_size", "data_ptr", "untyped_storage", "get_device", "is_contiguous", "register_hook",
                      "backward", "retain_grad", "__hash__", "__repr__", "__format__", "requires_grad_", "has_names",
                      "result_type", "can_cast", "is_same_size", "is_tensor", "is_storage", "is_nonzero", "storage_offset",
                      "is_inference", "is_signed", "is_conj", "is_neg", "__class__", "is_grad_enabled"))
_SEEN_GETS = frozenset(("data", "T", "mT", "real", "imag", "H"))
_READS = frozenset(("item", "tolist", "__float__", "__int__", "__bool__", "__index__", "numpy", "__array__"))


def install(session: Session) -> None:
    tracer = Tracer(session)
    for owner in (torch, torch.nn.Module):
        patching.replace(session.stack, owner, "compile", lambda original: _observed_compile(original, session, tracer))
    Traces.tracer = tracer
    session.add(Traces)


def _observed_compile(original: Any, session: Session, tracer: Tracer) -> Any:
    def compile(*args: Any, **kwargs: Any) -> Any:
        if session.watching and not session.compiled:
            session.compiled = True
            tracer.disarm()
            session.emit(Compiled(step=session.step, site=sites.here(2)))
        return original(*args, **kwargs)
    return patching.dressed(compile, original)


class StackMode(TorchFunctionMode):  # type: ignore[misc]  # torch does not type its base
    """A function mode that goes on and off at any time. While it handles a call (``backward`` passes through it), torch has taken it
    off the stack and puts it back after: it is then taken off at the next chance."""

    lingering: ClassVar[list[StackMode]] = []

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.armed = self.placed = False
        self.handling = 0
        session.stack.callback(self.off)

    def on(self) -> None:
        settle()
        self.armed = True
        if not self.placed:
            self.placed = True
            _insert(self)

    def off(self) -> None:
        self.armed = False
        if self.placed and self not in StackMode.lingering:
            StackMode.lingering.append(self)
        settle()

    def handle(self, func: Any, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self.armed:
            return func(*args, **(kwargs or {}))
        self.handling += 1
        try:
            return self.handle(func, args, kwargs or {})
        finally:
            self.handling -= 1


def settle() -> None:
    """Takes modes off that are no longer armed and handle no call."""
    for mode in list(StackMode.lingering):
        if mode.armed or not mode.handling:
            StackMode.lingering.remove(mode)
            if not mode.armed:
                mode.placed = False
                _remove(mode)


class Tracer(StackMode):
    """Collects ops while armed."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.ops: list[Op] = []
        self.makers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self.origins: dict[int, tuple[weakref.ref[Any], str]] = {}
        self.cut = False
        self.after_op: Callable[[], None] | None = None

    def arm(self) -> None:
        if self.armed or self.session.compiled or self.session.in_backward:
            return
        self.reset()
        self.session.tracing = True
        self.on()

    def disarm(self) -> None:
        self.session.tracing = False
        self.off()

    def reset(self) -> None:
        self.ops, self.makers, self.origins, self.cut = [], {}, {}, False

    def handle(self, func: Any, args: Any, kwargs: Any) -> Any:
        session = self.session
        if type(func) is FunctionType:
            func = _itself(func, sys._getframe(3))
        if session.thread.busy:
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name == "__get__":
            name = _property_name(func)
        if name in NOT_OPS:
            return func(*args, **kwargs)
        try:
            inputs = self._inputs(args, kwargs)
        except Exception:
            inputs = ()
        output = func(*args, **kwargs)
        session.thread.busy = True
        try:
            self._note(name, inputs, args, kwargs, output)
        except Exception:
            self.cut = True
        finally:
            session.thread.busy = False
        return output

    def _inputs(self, args: Any, kwargs: Any) -> tuple[Input, ...]:
        return tuple(self._input(t) for t in tensors_in((args, list(kwargs.values())), 12))

    def _input(self, tensor: Tensor) -> Input:
        entry = self.makers.get(id(tensor))
        made_by = entry[1] if entry is not None and entry[0]() is tensor else -1
        parameter = 0
        mark = self.origins.get(id(tensor))
        origin = mark[1] if mark is not None and mark[0]() is tensor else ""
        if made_by < 0 and not origin and plain(tensor) and tensor.is_leaf and tensor.requires_grad:
            origin, parameter = "parameter", self.session.ids.of(tensor)
        return Input(shape_of(tensor), dtype_of(tensor), made_by, _requires_grad(tensor), origin, parameter)

    def _note(self, name: str, inputs: tuple[Input, ...], args: Any, kwargs: Any, output: Any) -> None:
        if len(self.ops) >= OPS_LIMIT:
            self.cut = True
            return
        first = next(tensors_in(output, 1), None)
        value = float(output) if name in _READS and isinstance(output, (int, float)) else None
        if first is None and name not in _READS:
            return
        modules = self.session.thread.modules
        module = modules[-1] if modules else None
        index = len(self.ops)
        low, high, bad = value_range(first) if first is not None else (None, None, 0)
        node = first.grad_fn if first is not None and not first.is_leaf else None
        self.ops.append(Op(
            index=index, name=name, site=sites.here(3), inputs=inputs, shape=shape_of(first), dtype=dtype_of(first) if first is not None else "",
            requires_grad=first is not None and _requires_grad(first), module=path_of(self.session, module) if module is not None else None,
            module_class=type(module).__name__ if module is not None else "",
            module_training=getattr(module, "training", None) if module is not None else None,
            scalars=scalars_of(args, kwargs), low=low, high=high, nonfinite=bad, value=value,
            in_place=bool(inputs) and first is not None and any(first is t for t in tensors_in(args, 2)),
            node=type(node).__name__ if node is not None else "", number=node._sequence_nr() if node is not None else -1))
        for tensor in tensors_in(output, 8):
            self.made(tensor, index)
        if self.after_op is not None:
            self.after_op()

    def made(self, tensor: Tensor, index: int) -> None:
        key = id(tensor)
        self.makers[key] = (weakref.ref(tensor), index)

    def mark(self, tensors: Any, origin: str) -> None:
        for tensor in tensors_in(tensors, 8):
            self.origins.setdefault(id(tensor), (weakref.ref(tensor), origin))

    def maker_of(self, tensor: Any) -> int:
        entry = self.makers.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else -1


def _itself(func: FunctionType, caller: FrameType) -> FunctionType:
    """Torch's own function, which is in ``caller``, where the program has put one of its own in its place.

    While a mode is on, torch looks its functions up by name to hand them to the mode: it would find the program's.
    """
    code = caller.f_code
    if code.co_freevars or caller.f_globals.get(code.co_name) is not func:
        return func
    inner: Any = func
    while inner.__code__ is not code and sites.is_ours(inner.__code__.co_filename) and hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    return func if inner.__code__ is code else FunctionType(code, caller.f_globals, code.co_name)


def _property_name(func: Any) -> str:
    name = getattr(getattr(func, "__self__", None), "__name__", "")
    return name if name in _SEEN_GETS else "__get__"


def _requires_grad(tensor: Tensor) -> bool:
    try:
        return bool(tensor.requires_grad)
    except RuntimeError:
        return False


def scalars_of(args: Any, kwargs: Any) -> dict[str, str] | None:
    """The plain arguments of a call, by position or keyword, as text."""
    plain_values = {str(i): repr(a) for i, a in enumerate(args) if _is_plain(a)}
    plain_values |= {name: repr(a) for name, a in kwargs.items() if _is_plain(a)}
    return plain_values or None


def _is_plain(value: Any) -> bool:
    return _is_index(value) or (isinstance(value, (tuple, list)) and len(value) <= 8 and all(_is_index(v) for v in value))


def _is_index(value: Any) -> bool:
    """What may stand between the brackets of ``x[...]`` besides tensors."""
    if isinstance(value, slice):
        return all(isinstance(v, (int, type(None))) for v in (value.start, value.stop, value.step))
    return value is Ellipsis or isinstance(value, (int, float, bool, str, type(None)))


def value_range(tensor: Tensor) -> tuple[float | None, float | None, int]:
    """Low and high of the finite elements and the number of others, over a sample when large."""
    if not readable(tensor) or tensor.numel() == 0 or tensor.is_complex() or tensor.dtype is torch.bool:
        return None, None, 0
    values = sample(tensor)
    if values.is_floating_point():
        finite = torch.isfinite(values)
        bad = int(values.numel() - finite.sum())
        if bad:
            values = values[finite]
            if values.numel() == 0:
                return None, None, bad
    else:
        bad = 0
    low, high = torch.aminmax(values)
    return float(low), float(high), bad


def _insert(mode: StackMode) -> None:
    modes = [_pop_mode() for _ in range(_len_torch_function_stack())][::-1]
    place = 1 if modes and isinstance(modes[0], DeviceContext) else 0  # torch.device must stay the bottom: it asserts so
    for each in [*modes[:place], mode, *modes[place:]]:
        _push_mode(each)


def _remove(mode: StackMode) -> None:
    modes = [_pop_mode() for _ in range(_len_torch_function_stack())][::-1]
    for each in modes:
        if each is not mode:
            _push_mode(each)


class Traces(Probe):
    """When to trace: from the first forward of a chosen step to its end; the first evaluation passes; and what is new later on."""

    areas = ("shape", "loss", "mode", "numeric")
    tracer: Tracer

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._phase = ""
        self._eval_left = EVAL_TRACES
        self._batch: int | None = None
        self._model = 0
        self._root = -1
        self._losses: list[int] = []
        self._targets: list[tuple[int, ...]] = []
        self._novelty = Novelty()
        self._next = 0  # a step that is traced because something new was seen
        self._begun = False  # a root was called since the last step or evaluation pass

    def _due(self) -> bool:
        return self.session.step in TRACED_STEPS or self.session.step == self._next

    def _asks(self, key: tuple[Any, ...]) -> bool:
        """Whether this is new, and worth a trace."""
        if self.tracer.armed:
            self._novelty.traced(key)
            return False
        return self._novelty.wants(key, self.session.step)

    def before_forward(self, run: ForwardRun) -> None:
        tracer = self.tracer
        settle()
        kind = "train" if run.grad and run.training else "eval"
        if self._phase == "eval" and kind == "train":
            self._finish()  # an evaluation pass is over when training goes on
        if not self._phase and (self._wanted(kind) or self._new(run)):
            self._phase, self._model = kind, run.model
            if len(tracer.ops) > PRELUDE:
                tracer.reset()
            tracer.arm()
        self._begun = True
        if not tracer.armed:
            self._phase = ""
            return
        self._novelty.traced(forward_key(run))
        tracer.mark((run.args, run.kwargs), "input")
        if self._batch is None:
            first = next(tensors_in((run.args, run.kwargs), 1), None)
            if first is not None and first.dim() > 0:
                self._batch, self._model = int(first.shape[0]), run.model

    def _wanted(self, kind: str) -> bool:
        if kind == "train":
            return self._due()
        # programs that never call train() or no_grad look like evaluation at first: their steps are traced all the same
        return self._eval_left > 0 or self._due()

    def _new(self, run: ForwardRun) -> bool:
        """A call like none that was traced: at once where this step only begins, else the next step is traced as a whole."""
        if not self._novelty.may_ask(self.session.step) or not self._asks(forward_key(run)):
            return False
        self._next = self.session.step + 1
        return not self._begun

    def on_loss(self, run: LossRun) -> None:
        if self._novelty.may_ask(self.session.step) and self._asks(loss_key(run)):
            self._next = self.session.step + 1
        if self._phase:
            self.tracer.mark(run.target, "target")
            self._losses.append(self.tracer.maker_of(run.output) if self.tracer.maker_of(run.output) >= 0 else len(self.tracer.ops))
            self._targets.append(shape_of(run.target))

    def before_backward(self, run: BackwardRun) -> None:
        step = self.session.step
        if read_at(step) and self._novelty.may_ask(step) and self._asks(ending_key(run)):
            self._next = step + 1
        if run.roots and (run.accumulate or (self.session.optimizers == 0 and run.by_hand)):
            made = self.tracer.maker_of(run.roots[0])
            bare = self.tracer.armed and not self._begun and made >= 0  # tensors alone, no module was called
            if self._phase or bare:
                self._root, self._phase = made, "train"

    def before_step(self, run: StepRun) -> None:
        bare = not self._begun
        self._finish()  # the optimizer's own arithmetic is not the program's
        if bare and self._due():
            self.tracer.arm()  # unless it is given a closure, which may call no module

    def on_tick(self, step: int) -> None:
        self._finish()
        if self._due():
            if self.session.optimizers == 0:
                self._phase = "train"  # no module may ever be called
            self.tracer.arm()  # how a batch is gathered tells which of its dimensions holds the samples

    def at_end(self) -> None:
        self._finish()

    def _finish(self) -> None:
        tracer = self.tracer
        tracer.disarm()
        if self._phase and tracer.ops:
            if self._phase == "eval":
                self._eval_left -= 1
            self.session.emit(OpTrace(step=self.session.step, phase=self._phase, ops=tuple(tracer.ops), batch=self._batch, model=self._model,
                                      root=self._root, losses=tuple(self._losses), targets=tuple(self._targets), cut=tracer.cut))
        tracer.reset()
        self._begun = False
        self._phase, self._batch, self._root, self._losses, self._targets = "", None, -1, [], []
