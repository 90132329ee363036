"""The stage on which a trial's program runs: each of torch's seams is patched once, and whoever takes part may change what passes.

Unlike a probe, a part may change arguments, gradients and results. Order: the parts in the order in which they entered,
so that a tracer that enters last sees what really went in.
"""
from __future__ import annotations

import inspect
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._C import DisableTorchFunction
from torch.nn.modules.loss import _Loss
from torch.optim import Optimizer
from torch.optim import lr_scheduler as schedulers
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _BaseDataLoaderIter

from traindx.core.observed import Site
from traindx.probes import patching, sites
from traindx.probes.losses import LOSSES
from traindx.probes.optimizers import steps_on_the_stack
from traindx.probes.session import LONGEST_ACCUMULATION
from traindx.probes.tensors import Marks, tensors_in

LONGEST_BEFORE_FIRST = 32  # backwards before any optimizer has stepped, after which they are taken for the steps
Send = Callable[[dict[str, Any]], None]


@dataclass
class RootCall:
    """A forward that the program itself asked for. ``args`` and ``kwargs`` may be changed before, ``output`` after."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    grad: bool
    training: bool
    has_parameters: bool
    output: Any = None


@dataclass
class LossCall:
    """A call of a torch loss function; all but ``function`` may be changed. ``arguments`` are all others, by name."""

    function: str
    input: Any
    target: Any
    arguments: dict[str, Any]
    grad: bool
    site: Site | None
    output: Any = None
    changed: bool = False


@dataclass
class Backward:
    """A pass through the autograd engine. ``seeds`` are the gradients it starts from, one a root, and may be changed."""

    roots: tuple[Any, ...]
    seeds: tuple[Any, ...]
    fills_grad: bool
    inputs: tuple[Any, ...] = ()
    site: Site | None = None

    @property
    def trains(self) -> bool:
        """Fills ``.grad``, or is asked for the gradients of leaves, as an update by hand does."""
        return self.fills_grad or (bool(self.inputs) and all(t.is_leaf for t in self.inputs))


@dataclass
class Clip:
    """A call of ``clip_grad_norm_`` or ``clip_grad_value_``, not yet made."""

    function: str
    original: Callable[..., Any]
    parameters: list[Any]
    limit: Any
    rest: tuple[Any, ...]
    options: dict[str, Any]
    site: Site | None = None

    def __call__(self, limit: Any = None) -> Any:
        """Makes it, with another limit if one is given."""
        return self.original(self.parameters, self.limit if limit is None else limit, *self.rest, **self.options)


class Part:
    """Base of interventions and tracers: override the hooks you need."""

    def on_root_call(self, call: RootCall) -> None:
        """A root module is about to run; never a loss module of torch."""
    def on_root_return(self, call: RootCall) -> None: ...
    def on_loss_call(self, call: LossCall) -> None:
        """A loss function is about to run. Set ``changed`` after changing anything."""
    def on_loss_return(self, call: LossCall) -> None: ...
    def before_backward(self, run: Backward) -> None: ...
    def after_backward(self, run: Backward) -> None: ...
    def on_optimizer(self, optimizer: Optimizer) -> None:
        """An optimizer was made."""
    def before_any_step(self, optimizer: Optimizer) -> None:
        """Also where an optimizer steps inside the step of another."""
    def after_any_step(self, optimizer: Optimizer) -> None: ...
    def before_step(self, optimizer: Optimizer) -> None:
        """An optimizer is about to step. With a closure (Lightning, LBFGS), its backward is still to come."""
    def before_update(self, optimizer: Optimizer) -> None:
        """The gradients are complete: they are about to be used. Once for each call of a closure."""
    def after_step(self, optimizer: Optimizer) -> None: ...
    def on_tick(self, step: int) -> None:
        """Step ``step`` (from 1) is over."""
    def at_end(self) -> None: ...
    # those that answer
    def let_zero_grad(self, owner: Any) -> bool:
        """Whether this ``zero_grad`` may act."""
        return True

    def let_schedule(self, scheduler: Any) -> bool:
        """Whether this scheduler may take its step."""
        return True

    def on_batch(self, loader: DataLoader[Any], iterator: Any, batch: Any) -> Any:
        """The batch to hand out."""
        return batch

    def on_clip(self, clip: Clip) -> Any:
        """The clip's result; None to have it made as written."""

    def failed(self, problem: Exception) -> None:
        """A hook of this part raised: it is not called again."""


HOOKS = tuple(name for name in vars(Part) if name.startswith(("on_", "before_", "after_", "at_", "let_")))


@dataclass
class Stage:
    """One trial's seams. Enter it, then its parts; ``steps`` is the number of steps done."""

    send: Send = lambda message: None
    limit: int | None = None  # steps after which ``stop`` is called
    stop: Callable[[], None] = lambda: None
    steps: int = 0
    optimizers_made: int = 0
    backwards: int = 0  # since the last step
    scale: float | None = None  # of a GradScaler, for the next backward
    stepped: bool = False  # by an optimizer
    compiled: bool = False  # some part of the program is: what happens inside is not seen
    trained: bool = False
    in_backward: int = 0
    depth: int = 0
    parts: list[Part] = field(default_factory=list)
    outputs: Marks = field(default_factory=Marks)  # what root modules returned
    stack: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.active = False
        self.busy = False
        self.owner = threading.get_ident()
        self.began = time.perf_counter()
        self._hooks: dict[str, list[tuple[Part, Callable[..., Any]]]] = {name: [] for name in HOOKS}
        self._later: list[Callable[[], None]] = []
        self._pid = os.getpid()

    # -- parts ------------------------------------------------------------------------------------------------------

    def add(self, part: Part) -> None:
        self.parts.append(part)
        for name in HOOKS:
            if getattr(type(part), name) is not getattr(Part, name):
                self._hooks[name].append((part, getattr(part, name)))

    def remove(self, part: Part) -> None:
        self.parts = [other for other in self.parts if other is not part]
        self._silence(part)

    def _silence(self, part: Part) -> None:
        for name, hooks in self._hooks.items():
            self._hooks[name] = [entry for entry in hooks if entry[0] is not part]

    def has(self, hook: str) -> bool:
        return bool(self._hooks[hook])

    def call(self, hook: str, *args: Any) -> None:
        for _ in self._answers(hook, *args):
            pass

    def ask(self, hook: str, *args: Any) -> bool:
        """Whether all parts say yes."""
        answers = list(self._answers(hook, *args))  # everybody is asked, also after a no
        return False not in answers

    def _answers(self, hook: str, *args: Any) -> Iterator[Any]:
        """Runs a hook of every part, as ours: what it calls of torch is not seen by others, what it raises stays here."""
        hooks = self._hooks[hook]
        if not hooks or self.busy:
            return
        self.busy = True
        try:
            for part, function in hooks:
                try:
                    with DisableTorchFunction():
                        answer = function(*args)
                except Exception as problem:
                    self._failed(part, problem)
                    continue
                yield answer
        finally:
            self.busy = False

    def _failed(self, part: Part, problem: Exception) -> None:
        if os.environ.get("TRAINDX_DEBUG"):
            import traceback
            traceback.print_exception(problem)
        self._silence(part)
        part.failed(problem)

    @property
    def watching(self) -> bool:
        return self.active and not self.busy and threading.get_ident() == self.owner

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Torch calls in here are ours: nobody takes part."""
        before, self.busy = self.busy, True
        try:
            yield
        finally:
            self.busy = before

    def mark(self, call: RootCall) -> None:
        """What a model returned is known again, with the step and whether it has a graph, also when it was detached."""
        if call.has_parameters:
            for tensor in tensors_in(call.output):
                try:
                    self.outputs.put(tensor, (self.steps, call.grad))
                except Exception:
                    pass  # batched, fake or sparse: no memory to mark

    def later(self, action: Callable[[], None]) -> None:
        """Runs something as the program's own, once the hooks have run: its steps count, and others take part."""
        self._later.append(action)

    def run_later(self) -> None:
        actions, self._later = self._later, []
        for action in actions:
            action()

    # -- the clock --------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        self.steps += 1
        self.backwards = 0
        self.call("on_tick", self.steps)
        if self.limit is not None and self.steps >= self.limit:
            self.stop()

    def end(self) -> None:
        self.call("at_end")
        self.active = False

    # -- seams ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Stage:
        self.active = True
        stack = self.stack
        os.register_at_fork(after_in_child=self._leave)
        patching.replace(stack, nn.Module, "__call__", partial(_root, self))
        for name in LOSSES:
            patching.replace(stack, F, name, partial(_loss, self))
        patching.replace(stack, torch.autograd, "_engine_run_backward", partial(_backward, self))
        patching.replace(stack, _BaseDataLoaderIter, "__next__", partial(_next, self))
        patching.replace(stack, DataLoader, "__iter__", partial(_iter, self))
        for owner in (torch, nn.Module):
            patching.replace(stack, owner, "compile", partial(_compile, self))
        self._install_optimizers()
        return self

    def _install_optimizers(self) -> None:
        stack, steps = self.stack, _Steps(self)
        stack.callback(register_optimizer_step_pre_hook(steps.before).remove)
        stack.callback(register_optimizer_step_post_hook(steps.after).remove)
        patching.replace(stack, Optimizer, "__init__", partial(_optimizer, self))
        for owner in (Optimizer, nn.Module):
            patching.replace(stack, owner, "zero_grad", partial(_zero_grad, self))
        for kind in (schedulers.LRScheduler, schedulers.ReduceLROnPlateau):
            patching.replace(stack, kind, "__init__", partial(_scheduler_built, self))
            patching.replace(stack, kind, "step", partial(_schedule, self))
        for owner in (torch.nn.utils.clip_grad, torch.nn.utils):
            for name in ("clip_grad_norm_", "clip_grad_value_"):
                patching.replace(stack, owner, name, partial(_clip, self))
        patching.replace(stack, torch.amp.GradScaler, "scale", partial(_scale, self))

    def _leave(self) -> None:
        """A forked child, such as a loader's worker, is not the trial; the batch fetched there still is."""
        if os.getpid() != self._pid:
            self.active = False

    def __exit__(self, *exc: object) -> None:
        self.active = False
        self.stack.close()


class _Steps:
    """The global step hooks. A step inside a step (SAM, Lookahead) is part of the outer one."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.depth = 0

    def before(self, optimizer: Optimizer, args: Any, kwargs: Any) -> Any:
        if not self.stage.watching:
            return None
        self.depth = self.depth + 1 if self.depth == 0 else steps_on_the_stack()
        outermost = self.depth == 1
        if outermost:
            self.stage.stepped = True
            self.stage.call("before_step", optimizer)
        self.stage.call("before_any_step", optimizer)
        if not outermost:
            return None
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if not callable(closure):
            self.stage.call("before_update", optimizer)
            return None
        watched = self._watched(closure, optimizer)
        return ((args[0], watched, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": watched})

    def _watched(self, closure: Callable[[], Any], optimizer: Optimizer) -> Callable[[], Any]:
        def watched() -> Any:
            result = closure()
            self.stage.call("before_update", optimizer)
            return result
        return watched

    def after(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if not self.stage.watching or self.depth == 0:
            return
        self.stage.call("after_any_step", optimizer)
        self.depth -= 1
        if self.depth == 0:
            self.stage.call("after_step", optimizer)
            self.stage.tick()


_has_parameters: weakref.WeakKeyDictionary[nn.Module, bool] = weakref.WeakKeyDictionary()


def has_parameters(module: nn.Module) -> bool:
    """Whether a module is a model rather than a function such as an activation or a loss."""
    known = _has_parameters.get(module)
    if known is None:
        known = _has_parameters[module] = next(module.parameters(), None) is not None
    return known


def _root(stage: Stage, original: Any) -> Any:
    is_compiling = torch.compiler.is_compiling

    def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or stage.depth or not stage.watching or isinstance(self, _Loss) or type(self).__hash__ is None:
            return original(self, *args, **kwargs)
        call = RootCall(self, args, kwargs, torch.is_grad_enabled(), bool(getattr(self, "training", False)), has_parameters(self))
        stage.call("on_root_call", call)
        stage.depth = 1
        try:
            call.output = original(self, *call.args, **call.kwargs)
        finally:
            stage.depth = 0
        stage.call("on_root_return", call)
        stage.mark(call)
        return call.output
    return __call__


def _compile(stage: Stage, original: Any) -> Any:
    def compile(*args: Any, **kwargs: Any) -> Any:
        stage.compiled = True
        return original(*args, **kwargs)
    return patching.dressed(compile, original)


class _Inside(threading.local):
    on = False


def _loss(stage: Stage, original: Any) -> Any:
    is_compiling, inside = torch.compiler.is_compiling, _Inside()
    names = tuple(inspect.signature(original).parameters)

    def on_stage(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        bound = dict(zip(names, args)) | kwargs
        call = LossCall(original.__name__, bound.pop(names[0], None), bound.pop(names[1], None), bound,
                        torch.is_grad_enabled(), sites.here(3))
        stage.call("on_loss_call", call)
        inside.on = True  # under a function mode the call comes back through this very name
        try:
            call.output = (original(**{names[0]: call.input, names[1]: call.target}, **call.arguments) if call.changed
                           else original(*args, **kwargs))
        finally:
            inside.on = False
        stage.call("on_loss_return", call)
        return call.output

    def loss(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not stage.watching or inside.on:
            return original(*args, **kwargs)
        return on_stage(args, kwargs)
    return patching.shadow(loss, original)  # type: ignore[arg-type]


def _backward(stage: Stage, original: Any) -> Any:
    def run_backward(roots: Any, seeds: Any, *args: Any, **kwargs: Any) -> Any:
        if not stage.trained and stage.active and not stage.busy:
            stage.owner, stage.trained = threading.get_ident(), True  # the first thread that trains is the one that counts
        if stage.in_backward or not stage.watching:
            return original(roots, seeds, *args, **kwargs)
        inputs = tuple(args[2]) if len(args) > 2 and isinstance(args[2], (tuple, list)) else ()
        run = Backward(tuple(roots), tuple(seeds), bool(kwargs.get("accumulate_grad", False)), inputs, sites.here(3))
        stage.call("before_backward", run)
        stage.in_backward += 1
        try:
            result = original(roots, run.seeds, *args, **kwargs)
        finally:
            stage.in_backward -= 1
        stage.call("after_backward", run)
        _count(stage, run)
        stage.run_later()
        return result
    return run_backward


def _count(stage: Stage, run: Backward) -> None:
    """Backwards are the steps where there is no optimizer, or where none has stepped for very long."""
    if run.fills_grad or (stage.optimizers_made == 0 and run.trains):
        stage.backwards += 1
        stage.scale = None
        longest = LONGEST_ACCUMULATION if stage.stepped else LONGEST_BEFORE_FIRST
        if stage.optimizers_made == 0 or stage.backwards > longest:
            stage.tick()


_loader_of: weakref.WeakKeyDictionary[Any, Callable[[], Any]] = weakref.WeakKeyDictionary()


def loader_of(iterator: Any) -> Any:
    """The DataLoader that began this iterator on a stage; None where it is gone or another's."""
    loader = _loader_of.get(iterator)
    return loader() if loader is not None else None


def _held(loader: DataLoader[Any]) -> Callable[[], Any]:
    """A loader written into the loop's head lives on only through its iterator; one with persistent workers owns the iterator in turn."""
    return weakref.ref(loader) if loader.persistent_workers else lambda: loader


def _iter(stage: Stage, original: Any) -> Any:
    def __iter__(self: Any) -> Any:
        iterator = original(self)
        if stage.active and isinstance(iterator, _BaseDataLoaderIter):
            _loader_of[iterator] = _held(self)
        return iterator
    return patching.dressed(__iter__, original)


def _next(stage: Stage, original: Any) -> Any:
    def __next__(self: Any) -> Any:
        batch = original(self)
        loader = _loader_of.get(self)
        if loader is None or not stage.watching or not stage.has("on_batch"):
            return batch
        for part, hook in list(stage._hooks["on_batch"]):
            with stage.quiet():
                try:
                    batch = hook(loader(), self, batch)
                except Exception as problem:
                    stage._failed(part, problem)
        return batch
    return patching.dressed(__next__, original)


def _optimizer(stage: Stage, original: Any) -> Any:
    def __init__(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        stage.optimizers_made += 1
        if stage.watching:
            stage.call("on_optimizer", self)
    return patching.dressed(__init__, original)


def _zero_grad(stage: Stage, original: Any) -> Any:
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not stage.watching or stage.ask("let_zero_grad", self):
            return original(self, *args, **kwargs)
        return None
    return patching.dressed(zero_grad, original)


_building: weakref.WeakSet[Any] = weakref.WeakSet()


def _scheduler_built(stage: Stage, original: Any) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        _building.add(self)  # the constructor takes a first step of its own
        try:
            original(self, *args, **kwargs)
        finally:
            _building.discard(self)
    return patching.dressed(__init__, original)


def _schedule(stage: Stage, original: Any) -> Any:
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self in _building or not stage.watching or stage.ask("let_schedule", self):
            return original(self, *args, **kwargs)
        return None
    return patching.dressed(step, original)


def _clip(stage: Stage, original: Any) -> Any:
    if hasattr(original, "_traindx_stage"):  # the other name of the same function
        return original
    limit_name = "max_norm" if "norm" in original.__name__ else "clip_value"

    def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
        if not stage.watching:
            return original(parameters, *args, **kwargs)
        options = dict(kwargs)
        limit = args[0] if args else options.pop(limit_name, None)
        each = [parameters] if isinstance(parameters, Tensor) else list(parameters)
        call = Clip(original.__name__, original, each, limit, args[1:], options, sites.here(2))
        answers = [answer for answer in stage._answers("on_clip", call) if answer is not None]
        return answers[0] if answers else call()
    dressed = patching.dressed(clip, original)
    dressed._traindx_stage = True
    return dressed


def _scale(stage: Stage, original: Any) -> Any:
    def scale(self: Any, outputs: Any) -> Any:
        result = original(self, outputs)
        if stage.watching and self.is_enabled():
            stage.scale = float(self.get_scale())
        return result
    return patching.dressed(scale, original)
