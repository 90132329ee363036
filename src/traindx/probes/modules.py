"""The seam of nn.Module: forwards of root modules, modes, and where modules were made. One patch of ``__call__`` does it all.

Global forward hooks would recompile compiled models, hooks on instances would stop them from pickling.
"""
from __future__ import annotations

import sys
import weakref
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.loss import _Loss

from traindx.core.observed import Site, changed
from traindx.core.observed.program import ForwardSeen, ModelSeen, Parameter
from traindx.probes import patching, sites
from traindx.probes.session import ForwardRun, Given, Probe, Session
from traindx.probes.tensors import dtype_of, shape_of, tensors_in

ALL_FOLLOWED = 64  # forwards of a kind whose backward is waited for one by one
EVERY = 8
# by the module's mode and the gradient mode
MODES = {(True, True): "train", (True, False): "train no_grad", (False, True): "eval", (False, False): "eval no_grad"}

_made_at: weakref.WeakKeyDictionary[nn.Module, Site | None] = weakref.WeakKeyDictionary()


def made_at(module: nn.Module) -> Site | None:
    """Where a module was constructed: the user's line that called the class."""
    return _made_at.get(module)


def note_made(module: nn.Module) -> None:
    """Called by what stands in for ``nn.Module.__init__``: remembers where the module is made."""
    _made_at[module] = construction_site(module, 3)


def construction_site(made: Any, depth: int = 2) -> Site | None:
    """The caller of the outermost ``__init__`` that is still building this very object."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and frame.f_code.co_name == "__init__" and _self_of(frame) is made:
        frame = frame.f_back
    while frame is not None and not sites.is_user(frame.f_code.co_filename):
        frame = frame.f_back
    return sites.of_frame(frame, frame.f_code.co_filename) if frame is not None else None


def _self_of(frame: FrameType) -> Any:
    names = frame.f_code.co_varnames
    return frame.f_locals.get(names[0]) if names else None


def install(session: Session) -> None:
    patching.replace(session.stack, nn.Module, "__init__", lambda original: _observed_init(original, session))
    patching.replace(session.stack, nn.Module, "__call__", lambda original: _observed_call(original, session))
    patching.replace(session.stack, nn.Module, "train", lambda original: _observed_train(original, session))
    session.add(Forwards)


def _observed_init(original: Any, session: Session) -> Any:
    def __init__(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        if session.active:
            try:
                note_made(self)
            except Exception:
                pass  # a module that cannot be hashed or weakly held: its place stays unknown
        original(self, *args, **kwargs)
    return patching.dressed(__init__, original)


def _observed_call(original: Any, session: Session) -> Any:
    thread, is_compiling, is_dynamo_compiling = session.thread, torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling

    def __call__(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        # the one question that Dynamo answers itself comes first, then the one that most calls end at
        if is_dynamo_compiling() or thread.alone or is_compiling() or not session.active or thread.busy:
            return original(self, *args, **kwargs)
        if thread.depth == 0:
            return root_call(original, session, self, args, kwargs)
        modules = thread.modules
        modules.append(self)
        try:
            output = original(self, *args, **kwargs)
        finally:
            modules.pop()
        if session.detailed:
            session.call("after_module", self, path_of(session, self), args, output)
        return output
    return __call__


def root_call(original: Any, session: Session, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A forward that the program itself asked for. Loss modules are not roots: their torch loss is observed instead."""
    if isinstance(module, _Loss) or type(module).__hash__ is None:  # torch cannot walk a module without a hash either
        return original(module, *args, **kwargs)
    thread = session.thread
    run = ForwardRun(0, module, args, kwargs, sites.here(3), bool(getattr(module, "training", False)), torch.is_grad_enabled())
    session.call("before_forward", run)
    thread.depth = 1
    thread.alone = not (session.detailed or session.tracing)
    thread.modules = [] if thread.alone else [module]
    try:
        run.output = original(module, *run.args, **run.kwargs)  # a probe may exchange them, in a child of its own
    except BaseException:
        run.failed = True
        raise
    finally:
        thread.depth = 0
        thread.modules, thread.alone = [], False
        session.call("after_forward", run)
    return run.output


_train_depth = 0
_train_site: Site | None = None
_switched: weakref.WeakKeyDictionary[nn.Module, Site | None] = weakref.WeakKeyDictionary()


def switched_at(module: nn.Module) -> Site | None:
    """The last ``train()`` or ``eval()`` that reached a module, called on it or on one that holds it."""
    return _switched.get(module)


def _observed_train(original: Any, session: Session) -> Any:
    def train(self: nn.Module, mode: bool = True) -> nn.Module:
        global _train_depth, _train_site
        outer = _train_depth == 0 and session.watching and session.thread.depth == 0
        if outer:
            _train_site = _switch_site(self)
        if outer or _train_depth:
            _note_switch(self)
        _train_depth += 1
        try:
            return original(self, mode)
        finally:
            _train_depth -= 1
            if outer:
                session.event("train" if mode else "eval", _train_site, session.ids.of(self))
    return patching.dressed(train, original)


def _note_switch(module: nn.Module) -> None:
    try:
        _switched[module] = _train_site
    except TypeError:
        pass  # a module that cannot be hashed: its switch stays unknown


def _switch_site(module: nn.Module) -> Site | None:
    """The line that asked for the mode: outside a ``train`` or ``eval`` that the user's class overrides."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name in ("train", "eval") and _self_of(frame) is module:
        frame = frame.f_back
    while frame is not None and not sites.is_user(frame.f_code.co_filename):
        frame = frame.f_back
    return sites.of_frame(frame, frame.f_code.co_filename) if frame is not None else None


def path_of(session: Session, module: nn.Module) -> str:
    """The dotted path of a module in the root that is running; its class name where it is not in the root's tree."""
    modules = session.thread.modules
    if not modules:
        return ""
    info = Forwards.instance.info(modules[0]) if Forwards.instance else None
    return info.paths.get(id(module), f"<{type(module).__name__}>") if info else ""


@dataclass
class RootInfo:
    """What is remembered of a root module between forwards."""

    ref: weakref.ref[nn.Module]
    id: int
    paths: dict[int, str] = field(default_factory=dict)
    dropouts: list[weakref.ref[nn.Module]] = field(default_factory=list)
    norms: list[weakref.ref[nn.Module]] = field(default_factory=list)
    said: tuple[Any, ...] = ()
    looked: int = 0


class Forwards(Probe):
    """Every root forward: who, where, in which mode, and whether a backward came through it."""

    areas = ("mode", "optim", "shape")
    always = ("before_forward",)
    instance: Forwards | None = None

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._roots: dict[int, RootInfo] = {}
        self._seen: dict[tuple[Any, ...], ForwardSeen] = {}
        self._said: dict[str, ForwardSeen] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        Forwards.instance = self

    def info(self, module: nn.Module) -> RootInfo:
        entry = self._roots.get(id(module))
        if entry is None or entry.ref() is not module:
            entry = self._roots[id(module)] = RootInfo(weakref.ref(module), self.session.ids.of(module))
            self._look(entry, module, None)
        return entry

    def roots(self) -> list[nn.Module]:
        """The root modules that are alive."""
        return [module for entry in self._roots.values() if (module := entry.ref()) is not None]

    def before_forward(self, run: ForwardRun) -> None:
        info = self.info(run.module)
        run.model = info.id
        if self.session.detailed and info.looked != self.session.step:
            self._look(info, run.module, run.site)
        self.session.event("forward", run.site, info.id, MODES[run.training, run.grad])
        if self.session.coasting and run.args and type(run.args[0]) is torch.Tensor:
            self.session.given.append(Given(info.id, run.site, run.grad, weakref.ref(run.args[0])))

    def after_forward(self, run: ForwardRun) -> None:
        if run.failed:
            return
        info = self.info(run.module)
        drops, norms = _modes(info.dropouts), _modes(info.norms)
        key = (info.id, id(run.site), run.training, run.grad, drops, norms)
        seen = self._seen.get(key)
        step = self.session.step
        if seen is None:
            first = next(tensors_in((run.args, run.kwargs)), None)
            seen = ForwardSeen(
                step=step, key=f"forward-{len(self._seen)}", model=info.id, site=run.site, training=run.training, grad=run.grad,
                dropout=drops, batchnorm=norms, count=0, backward=0, first_step=step, last_step=step,
                input_shape=shape_of(first), switched_at=_switched.get(run.module), inference=torch.is_inference_mode_enabled())
        seen = self._seen[key] = changed(seen, count=seen.count + 1, last_step=step)
        if seen.count == 1:
            self._say(seen)
        if run.grad and (seen.count <= ALL_FOLLOWED or seen.count % EVERY == 0):
            self._note_backward(key, run.output, 1 if seen.count <= ALL_FOLLOWED else EVERY)

    def _note_backward(self, key: tuple[Any, ...], output: Any, weight: int) -> None:
        """A hook costs as much as all else here: later forwards are sampled, each standing for several."""
        for tensor in tensors_in(output, 4):
            if tensor.requires_grad and tensor.grad_fn is not None:
                done = False

                def reached(_: Any) -> None:
                    nonlocal done
                    if not done:
                        done = True
                        self._seen[key] = changed(self._seen[key], backward=self._seen[key].backward + weight)
                tensor.register_hook(reached)
                return

    def on_tick(self, step: int) -> None:
        if self.session.detailed:
            self._say_all()

    def at_end(self) -> None:
        self._say_all()

    def _say_all(self) -> None:
        for seen in self._seen.values():
            if self._said.get(seen.key) != seen:
                self._say(seen)

    def _say(self, seen: ForwardSeen) -> None:
        self._said[seen.key] = seen
        self.session.emit(seen)

    def _look(self, info: RootInfo, module: nn.Module, site: Site | None) -> None:
        """Reads the module's tree; said again only when parameters, their flags or modules changed."""
        info.looked = self.session.step
        named = list(module.named_modules())
        info.paths = {id(inner): path for path, inner in named}
        info.dropouts = [weakref.ref(m) for _, m in named if drops(m)]
        info.norms = [weakref.ref(m) for _, m in named if isinstance(m, _BatchNorm) and m.track_running_stats]
        parameters = tuple(
            Parameter(self.session.ids.of(p), f"{path}.{name}" if path else name, shape_of(p), dtype_of(p), p.requires_grad,
                      path, type(inner).__name__, made_at(inner))
            for path, inner in named for name, p in inner._parameters.items() if p is not None)
        state = tuple((p.id, p.requires_grad, p.dtype) for p in parameters)
        if state != info.said or (site is not None and info.said == ()):
            info.said = state
            self.session.emit(ModelSeen(
                step=self.session.step, key=f"model-{info.id}-{self.session.step}", id=info.id, class_name=type(module).__name__,
                parameters=parameters, modules=tuple((path, type(inner).__name__) for path, inner in named),
                site=site, made_at=made_at(module)))


def drops(module: nn.Module) -> bool:
    """Whether it drops values at random in train mode; recurrent layers do so only between layers."""
    if isinstance(module, _DropoutNd):
        return bool(module.p > 0)
    if isinstance(module, nn.RNNBase):
        return bool(module.dropout > 0 and module.num_layers > 1)
    return isinstance(module, nn.MultiheadAttention) and bool(module.dropout > 0)


def _modes(refs: list[weakref.ref[nn.Module]]) -> tuple[int, int]:
    training = sum(1 for ref in refs if (module := ref()) is not None and module.training)
    return training, len(refs) - training

