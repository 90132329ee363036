"""The seam of torch.optim: construction, step, zero_grad, schedulers, clipping, GradScaler; in order."""
from __future__ import annotations

import os
import sys
import weakref
from functools import partial
from types import FrameType
from typing import Any, ClassVar

import torch
from torch.optim import Optimizer
from torch.optim import lr_scheduler as schedulers
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from traindx.core.observed import Site, changed
from traindx.core.observed.program import OptimizerMade, SchedulerMade
from traindx.probes import modules, patching, sites
from traindx.probes.session import ClipRun, Probe, ScalerRun, Session, StepRun
from traindx.probes.tensors import number, number_of

MAX_STEPS_STATUS = 0


class StopTraining(SystemExit):
    """Ends the script after ``--max-steps`` optimizer steps; ``except Exception`` does not catch it."""


def install(session: Session) -> None:
    replace_ = patching.replace
    stack = session.stack
    steps = _Steps(session)
    stack.callback(register_optimizer_step_pre_hook(steps.before).remove)
    stack.callback(register_optimizer_step_post_hook(steps.after).remove)
    replace_(stack, Optimizer, "__init__", lambda original: _observed_init(original, session))
    replace_(stack, Optimizer, "zero_grad", lambda original: _observed_zero(original, session))
    replace_(stack, torch.nn.Module, "zero_grad", lambda original: _observed_zero(original, session))
    replace_(stack, schedulers.LRScheduler, "__init__", lambda original: _observed_scheduler(original, session))
    replace_(stack, schedulers.LRScheduler, "step", lambda original: _observed_schedule(original, session))
    replace_(stack, schedulers.ReduceLROnPlateau, "__init__", lambda original: _observed_scheduler(original, session))
    replace_(stack, schedulers.ReduceLROnPlateau, "step", lambda original: _observed_schedule(original, session))
    _install_clips(session)
    _install_scaler(session)
    session.add(Optimizers)


class _Steps:
    """Global step hooks. A step inside a step (SAM, Lookahead) is part of the outer one."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.depth = 0
        self.run: StepRun | None = None
        self.asked_to_stop = 0

    def before(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        session = self.session
        if session.thread.busy or not session.active:
            return
        self.depth = self.depth + 1 if self.depth == 0 else steps_on_the_stack()
        if self.depth > 1:
            return
        try:
            id = announce(optimizer, session, None)  # it may have been made before the session
            self.run = StepRun(optimizer, id, sites.here(2), rate_of(optimizer))
        except Exception:
            self.run = None
            return
        session.call("before_step", self.run)

    def after(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        session = self.session
        if self.depth == 0 or not session.watching:
            return
        self.depth -= 1
        if self.depth or self.run is None:
            return
        run, self.run = self.run, None
        session.event("step", run.site, run.id)
        if run.id not in session.stepped:
            session.phase()
        session.stepped[run.id] = session.step
        session.call("after_step", run)
        session.tick()
        if session.max_steps is not None and session.step > session.max_steps:
            self.stop()

    def stop(self) -> None:
        """Ends the script as ``sys.exit`` would."""
        self.asked_to_stop += 1
        if self.asked_to_stop > 3:  # the script swallows SystemExit (a bare except)
            self.session.end("max-steps")
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(MAX_STEPS_STATUS)
        self.session.stopped = True
        raise StopTraining(MAX_STEPS_STATUS)


def steps_on_the_stack() -> int:
    """How many optimizer steps are really running: one that raised has left none of its own, but was counted."""
    file, count = Optimizer.profile_hook_step.__code__.co_filename, 0
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        count += frame.f_code.co_filename == file and frame.f_code.co_name == "wrapper"
        frame = frame.f_back
    return count


def _observed_init(original: Any, session: Session) -> Any:
    def __init__(self: Optimizer, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if session.watching:
            try:
                announce(self, session, modules.construction_site(self))
            except Exception:  # one that cannot be hashed or weakly held: it is not known, but it is there
                session.optimizers += 1
    return patching.dressed(__init__, original)


def announce(optimizer: Optimizer, session: Session, site: Site | None) -> int:
    """Tells the probes of an optimizer, once a session. Its number."""
    id = session.ids.of(optimizer)
    if id not in session.announced:
        session.announced.add(id)
        session.optimizers += 1
        session.wake()
        session.call("on_optimizer", optimizer, id, site)
    return id


def _observed_zero(original: Any, session: Session) -> Any:
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.watching:
            session.tell(_zeroed, session, self, sites.here(2))
        return original(self, *args, **kwargs)
    return patching.dressed(zero_grad, original)


def _zeroed(session: Session, thing: Any, site: Site | None) -> None:
    session.event("zero_grad", site, session.ids.of(thing))


_building: set[int] = set()  # identities of schedulers; one may have no hash


def _observed_scheduler(original: Any, session: Session) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        _building.add(id(self))  # the constructor takes a first step of its own
        try:
            original(self, *args, **kwargs)
        finally:
            _building.discard(id(self))
        if session.watching:
            session.tell(_made, session, self, sites.here(2))
    return patching.dressed(__init__, original)


def _observed_schedule(original: Any, session: Session) -> Any:
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.watching and id(self) not in _building:
            session.tell(_stepped, session, self, args, kwargs, sites.here(2))
        return original(self, *args, **kwargs)
    return patching.dressed(step, original)


def _made(session: Session, scheduler: Any, site: Site | None) -> None:
    Optimizers.of(session).scheduler_made(scheduler, site)


def _stepped(session: Session, scheduler: Any, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> None:
    Optimizers.of(session).scheduler_stepped(scheduler, args, kwargs, site)


def _install_clips(session: Session) -> None:
    from torch.nn import utils
    from torch.nn.utils import clip_grad
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        make = _clip_maker(session, name)
        patching.replace(session.stack, clip_grad, name, make)
        patching.replace(session.stack, utils, name, make)


def _clip_maker(session: Session, name: str) -> Any:
    def make(original: Any) -> Any:
        if hasattr(original, "_traindx"):
            return original

        def clip(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if not session.watching:
                return original(parameters, *args, **kwargs)
            if not isinstance(parameters, torch.Tensor):
                parameters = list(parameters)  # a generator can be walked only once
            with session.quiet():
                norm = original(parameters, *args, **kwargs)
            limit = args[0] if args else kwargs.get("max_norm", kwargs.get("clip_value"))
            session.tell(_clipped, session, name, parameters, limit, norm, sites.here(2))
            return norm
        shadowed = patching.dressed(clip, original)
        shadowed._traindx = True
        return shadowed
    return make


def _clipped(session: Session, name: str, parameters: Any, limit: Any, norm: Any, site: Site | None) -> None:
    Optimizers.of(session).clipped(name, parameters, limit, norm, site)


def _install_scaler(session: Session) -> None:
    try:
        from torch.amp.grad_scaler import GradScaler
    except ImportError:
        return
    for method, what in (("scale", "scale"), ("unscale_", "unscale"), ("step", "scaler-step"), ("update", "scaler-update")):
        patching.replace(session.stack, GradScaler, method, partial(_observed_scaler, session=session, what=what))


def _observed_scaler(original: Any, session: Session, what: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if session.watching and self.is_enabled():
            optimizer = args[0] if args and isinstance(args[0], Optimizer) else None
            site = sites.here(2)
            session.event(what, site, session.ids.of(optimizer if optimizer is not None else self))
            session.call("on_scaler", ScalerRun(what, self, session.ids.of(self), optimizer, site))
        return original(self, *args, **kwargs)
    return patching.dressed(method, original)


class Optimizers(Probe):
    """Optimizers, their groups' learning rates, schedulers and clips."""

    areas = ("optim",)
    always = ("before_step",)
    _instances: ClassVar[weakref.WeakKeyDictionary[Session, Optimizers]] = weakref.WeakKeyDictionary()

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        Optimizers._instances[session] = self
        self._schedulers: dict[int, SchedulerMade] = {}
        self._known: dict[int, list[int]] = {}
        self._sites: dict[int, Site | None] = {}

    @classmethod
    def of(cls, session: Session) -> Optimizers:
        return cls._instances[session]

    def on_optimizer(self, optimizer: Optimizer, id: int, site: Site | None) -> None:
        self._describe(optimizer, id, site)

    def before_step(self, run: StepRun) -> None:
        groups = run.optimizer.param_groups
        if self._known.get(run.id) != [len(group["params"]) for group in groups]:
            self._describe(run.optimizer, run.id, run.site if run.id not in self._known else None)
        if run.rate is not None:
            self.session.values["lr"] = run.rate

    def _describe(self, optimizer: Optimizer, id: int, site: Site | None) -> None:
        ids = self.session.ids
        self._known[id] = [len(group["params"]) for group in optimizer.param_groups]
        groups = tuple(tuple(ids.of(p) for p in group["params"]) for group in optimizer.param_groups)
        settings = tuple({name: str(value) for name, value in group.items() if name != "params"} for group in optimizer.param_groups)
        made = self._sites.get(id, site)
        self._sites[id] = made
        self.session.emit(OptimizerMade(step=self.session.step, key=f"optimizer-{id}", id=id, class_name=type(optimizer).__name__,
                                        site=made, parameters=groups, settings=settings))

    def scheduler_made(self, scheduler: Any, site: Site | None) -> None:
        id = self.session.ids.of(scheduler)
        settings = {name: str(value) for name, value in vars(scheduler).items()
                    if isinstance(value, (int, float, str, bool)) and not name.startswith("_")}
        made = SchedulerMade(step=self.session.step, key=f"scheduler-{id}", id=id, class_name=type(scheduler).__name__, site=site,
                             optimizer=self.session.ids.of(scheduler.optimizer), mode=str(getattr(scheduler, "mode", "")),
                             settings=settings)
        self._schedulers[id] = made
        self.session.emit(made)

    def scheduler_stepped(self, scheduler: Any, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> None:
        id = self.session.ids.of(scheduler)
        made = self._schedulers.get(id)
        if made is None:  # made before the session
            self.scheduler_made(scheduler, None)
            made = self._schedulers[id]
        fed = made.fed
        value = args[0] if args else kwargs.get("metrics")
        if isinstance(scheduler, schedulers.ReduceLROnPlateau) and value is not None and len(fed) < 1000:
            value = number(value) if isinstance(value, torch.Tensor) else float(value)
            fed = (*fed, value) if value is not None else fed
        made = self._schedulers[id] = changed(made, calls=made.calls + 1, call_site=site, fed=fed)
        told = bool(args or kwargs) and not isinstance(scheduler, schedulers.ReduceLROnPlateau)
        self.session.event("scheduler", site, id, "epoch" if told else "")
        if made.calls <= 3 or made.fed != () or self.session.detailed:
            self.session.emit(made)

    def clipped(self, name: str, parameters: Any, limit: Any, norm: Any, site: Site | None) -> None:
        self.session.event("clip", site, 0, name)
        value = number(norm) if isinstance(norm, torch.Tensor) else None
        if value is not None:
            self.session.metric("clip_norm", value)
        if isinstance(limit, (int, float)):
            self.session.metric("clip_limit", float(limit))
        each = [parameters] if isinstance(parameters, torch.Tensor) else parameters
        self.session.call("on_clip", ClipRun(name, each, float(limit) if isinstance(limit, (int, float)) else None, value, site))

    def at_end(self) -> None:
        for made in self._schedulers.values():
            self.session.emit(made)


def rate_of(optimizer: Optimizer) -> float | None:
    """The learning rate of the group whose rate is the largest by size."""
    groups = optimizer.param_groups
    if len(groups) == 1:
        return number_of(groups[0].get("lr"))
    rates = [rate for group in groups if (rate := number_of(group.get("lr"))) is not None]
    return max(rates, key=abs) if rates else None
