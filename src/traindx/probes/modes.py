"""What modes did in each root forward: dropout that dropped, BatchNorm that used its batch; and if a backward came.

Layers are judged by what they did, not by what they are: the functions of torch that drop values or normalise by a
batch are watched, whoever calls them. Only recurrent layers drop inside C code and are judged by their flags.
"""
from __future__ import annotations

import dis
import inspect
import sys
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from traindx.core.observed import Site, changed
from traindx.core.observed.mode import DropInEval, ForwardPass, Stretch, TrainedInMode
from traindx.core.observed.program import Event
from traindx.probes import modules, patching, sites
from traindx.probes.routine import PERIODS
from traindx.probes.session import ForwardRun, LossRun, Probe, Session
from traindx.probes.tensors import Marks, shape_of, tensors_in

DROPS = {F: ("dropout", "alpha_dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout",
             "scaled_dot_product_attention"),
         torch: ("dropout", "alpha_dropout", "feature_dropout")}
RATE_AT, ACTIVE_AT, ATTENTION_RATE_AT = 1, 2, 4  # positions of the arguments
ACTIVE_BY_DEFAULT = frozenset(("dropout", "dropout1d", "dropout2d", "dropout3d"))
LONGEST_REPEATED = 64  # forwards of a window that is counted for others
WINDOW_LIMIT = 4096  # forwards of one step that a backward may still reach
STRETCHES = 48
OUTPUTS = 16
_MODULES_FILE = modules.__file__
_DROPOUT_FILE = inspect.getsourcefile(nn.modules.dropout)
_CONTEXT_FILE = torch.utils._contextlib.__file__


def install(session: Session) -> None:
    session.add(Modes)
    probe = next((p for p in session.probes if isinstance(p, Modes)), None)
    if probe is None:
        return
    for owner, names in DROPS.items():
        for name in names:
            patching.replace(session.stack, owner, name, _drop_maker(name, session, probe))
    patching.replace(session.stack, F, "batch_norm", lambda original: _observed_norm(original, session, probe))


def _drop_maker(name: str, session: Session, probe: Modes) -> Callable[[Any], Any]:
    return lambda original: _observed_drop(original, name, session, probe)


def _observed_drop(original: Any, name: str, session: Session, probe: Modes) -> Any:
    is_compiling, is_dynamo_compiling = torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling
    thread, guard, saw = session.thread, session.guard, probe.saw_drop

    def drop(*args: Any, **kwargs: Any) -> Any:
        if not is_dynamo_compiling() and not session.coasting and thread.depth and not thread.busy and not is_compiling():
            guard(probe, saw, name, args, kwargs)
        return original(*args, **kwargs)
    return patching.shadow(drop, original)  # type: ignore[arg-type]


def _observed_norm(original: Any, session: Session, probe: Modes) -> Any:
    is_compiling, is_dynamo_compiling = torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling
    thread = session.thread

    def batch_norm(*args: Any, **kwargs: Any) -> Any:
        if not is_dynamo_compiling() and not session.coasting and thread.depth and not thread.busy and not is_compiling():
            probe.saw_norm(args, kwargs)
        return original(*args, **kwargs)
    return patching.shadow(batch_norm, original)  # type: ignore[arg-type]


@dataclass(eq=False)
class _Root:
    """A root module. ``fed_by`` are roots whose outputs it was given, ``unfed`` counts training calls without."""

    id: int
    class_name: str
    recurrent: list[weakref.ref[nn.Module]] = field(default_factory=list)
    plain: bool = False
    last_input: tuple[weakref.ref[Tensor], int, int] | None = None
    fed_by: set[int] = field(default_factory=set)
    unfed: int = 0
    parameters: frozenset[int] = frozenset()
    shapes: tuple[Any, ...] = ()
    size: int = 0
    looked: int = 0
    stretches: list[Stretch] = field(default_factory=list)
    dropout: bool = False
    batchnorm: bool = False


@dataclass(eq=False)
class _Forward:
    """One root forward, until it is counted."""

    root: _Root
    site: Site | None
    training: bool
    grad: bool
    step: int
    dropping: int = 0
    resting: int = 0
    batch_stats: int = 0
    running_stats: int = 0
    reached: bool = False
    scored: bool = False
    same_input: bool = False
    train_input: bool = False
    chained: bool = False
    fed_on: bool = False
    switched_at: Site | None = None
    group: _Group | None = None
    places: set[int] = field(default_factory=set)

    @property
    def mode(self) -> str:
        working, resting = self.dropping + self.batch_stats, self.resting + self.running_stats
        if working and self.training:
            return "train"
        return "eval" if resting and not working and not self.training else ""


@dataclass(eq=False)
class _Group:
    seen: ForwardPass
    root: _Root
    said: ForwardPass | None = None


class Modes(Probe):
    """Counts forwards that are alike, and follows the mode in which each root is trained."""

    areas = ("mode",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._recent: deque[list[_Forward]] = deque(maxlen=PERIODS)  # windows that are over
        self._now: _Forward | None = None
        self._last: _Forward | None = None
        self._roots: weakref.WeakKeyDictionary[nn.Module, _Root] = weakref.WeakKeyDictionary()
        self._by_id: dict[int, _Root] = {}
        self._groups: dict[tuple[Any, ...], _Group] = {}
        self._window: list[_Forward] = []
        self._inputs, self._outputs = Marks(), Marks()
        self._optimizer_of: dict[int, int] = {}  # by parameter
        self._drops: dict[int, DropInEval] = {}
        self._said: dict[str, Any] = {}

    # -- one forward ------------------------------------------------------------------------------------------------

    def before_forward(self, run: ForwardRun) -> None:
        root = self._root(run)
        now = self._now = _Forward(root, run.site, run.training, run.grad, self.session.step)
        for ref in root.recurrent:
            module = ref()
            if module is not None and module.training:
                now.dropping += 1
            elif module is not None:
                now.resting += 1
        if root.plain and not self.session.detailed:
            return
        self._look_at_inputs(now, run)

    def _look_at_inputs(self, now: _Forward, run: ForwardRun) -> None:
        root = now.root
        first: Tensor | None = None
        for tensor in tensors_in((run.args, run.kwargs), 4):
            if first is None and type(tensor) is Tensor:
                first = tensor
            if (mark := _get(self._outputs, tensor)) is not None and mark.root is not root:
                mark.fed_on, now.chained = True, True
                root.fed_by.add(mark.root.id)
        if first is None or first.is_inference():
            return
        before, age = root.last_input, (first._version, self.session.step)
        now.same_input = before is not None and before[0]() is first and before[1:] == age
        root.last_input = weakref.ref(first), *age
        trained = _get(self._inputs, first)
        shape, step = tuple(first.shape), self.session.step
        now.train_input = trained is not None and trained[0] >= step - 1 and trained[1] == shape
        if run.grad:
            _put(self._inputs, first, (step, shape))

    def saw_drop(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        now = self._now
        if now is None:
            return
        rate = _rate(name, args, kwargs)
        if not rate:
            return
        if not _active(name, args, kwargs):
            now.resting += 1
            return
        now.dropping += 1
        if not now.training:
            self._drop_in_eval(now, name, rate)

    def _drop_in_eval(self, now: _Forward, name: str, rate: float) -> None:
        owner = _functional_owner(sys._getframe(4))
        if owner is None or owner.training:
            return  # a dropout module that was switched on by itself, or its part of the model is in train mode
        site = sites.here(4)
        key = id(site)
        if key in now.places:
            return
        now.places.add(key)
        drop = self._drops.get(key) or DropInEval(
            step=now.step, key=f"drop-{len(self._drops)}", model=now.root.id, site=site, function=name, rate=rate,
            module_class=type(owner).__name__, forward_site=now.site)
        self._drops[key] = changed(drop, forwards=drop.forwards + 1, repeats=drop.repeats + now.same_input)

    def saw_norm(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``batch_norm(input, running_mean, ..., training, ...)``; without running statistics no mode matters."""
        now = self._now
        mean = args[1] if len(args) > 1 else kwargs.get("running_mean")
        if now is None or mean is None:
            return
        if args[5] if len(args) > 5 else kwargs.get("training", False):
            now.batch_stats += 1
        else:
            now.running_stats += 1

    def after_forward(self, run: ForwardRun) -> None:
        now, self._now = self._now, None
        if now is None or run.failed or torch.jit.is_tracing():
            return
        root = now.root
        root.plain = not (now.dropping or now.resting or now.batch_stats or now.running_stats)
        now.group = self._group(now, run)
        self._last = now
        if not run.grad:
            self._count(now)
            self._window.append(now)
        else:
            self._await_backward(now, run.output)
        if not root.plain:
            for tensor in tensors_in(run.output, 4):
                _put(self._outputs, tensor, now)

    def _await_backward(self, now: _Forward, output: Any) -> None:
        def reached(_: Any) -> None:
            now.reached = True
        any_tensor = False
        for tensor in tensors_in(output, OUTPUTS):
            any_tensor = True
            if tensor.requires_grad and tensor.grad_fn is not None:
                tensor.register_hook(reached)
        now.reached = not any_tensor  # an output that cannot be looked into may well be trained on
        self._window.append(now)
        if len(self._window) > WINDOW_LIMIT:
            self._close([self._window.pop(0)])

    def on_loss(self, run: LossRun) -> None:
        """A loss without gradient scores the forward before it; any loss scores the one whose output it is given."""
        scored = _get(self._outputs, run.input) if isinstance(run.input, Tensor) else None
        if scored is None and not getattr(run.output, "requires_grad", True):
            scored = self._last
        if scored is None or scored.scored:
            return
        scored.scored = True
        if not scored.grad and scored.group is not None:  # counted already
            scored.group.seen = changed(scored.group.seen, scored=scored.group.seen.scored + 1)

    # -- the end of a step ------------------------------------------------------------------------------------------

    def on_optimizer(self, optimizer: torch.optim.Optimizer, id: int, site: Site | None) -> None:
        for group in optimizer.param_groups:
            self._optimizer_of.update((self.session.ids.of(p), id) for p in group["params"])

    def on_tick(self, step: int) -> None:
        self._end_window(step)
        if self.session.detailed:
            self._say_all()

    def at_end(self) -> None:
        self._end_window(self.session.step)
        self._say_all()

    def _end_window(self, step: int) -> None:
        window, self._window, self._last = self._window, [], None
        self._recent.append(window)
        self._take(window, step)

    def on_wake(self, missed: int, events: Mapping[Event, int]) -> None:
        """The windows that were let alone count as those of a period before, which they were like."""
        period = min(self.session.routine.period, len(self._recent))
        for place, window in enumerate(list(self._recent)[-period:] if period else []):
            times = len(range(place, missed, period))
            if times and len(window) <= LONGEST_REPEATED:
                self._take(window, self.session.step - missed + place + (times - 1) * period, times, again=True)

    def _take(self, window: list[_Forward], step: int, times: int = 1, again: bool = False) -> None:
        self._close(window, step if again else None, times)
        for root in {now.root for now in window}:
            self._note_stretch(root, [now for now in window if now.root is root and now.reached], step, times)

    def _close(self, window: list[_Forward], again: int | None = None, times: int = 1) -> None:
        """Counts the forwards of a window that is over; ``again``: of others like it, ``times``, the last at this step."""
        idle: dict[_Group, int] = {}
        for now in window:
            if now.grad or again is not None:
                self._count(now, again, times)
            if now.fed_on and now.group is not None:
                now.group.seen = changed(now.group.seen, fed_on=now.group.seen.fed_on + times)
            if now.reached and not now.chained:
                now.root.unfed += times
            if not now.reached and now.group is not None:
                idle[now.group] = again or now.step
        for group, step in idle.items():
            group.seen = changed(group.seen, idle_windows=group.seen.idle_windows + times, last_idle_step=step)

    def _count(self, now: _Forward, again: int | None = None, times: int = 1) -> None:
        group = now.group
        if group is None:
            return
        seen, idle, step = group.seen, not now.reached, again or now.step
        scored = idle and now.scored and (now.grad or again is not None)  # without gradients, the loss has counted it
        group.seen = changed(
            seen, count=seen.count + times, backward=seen.backward + times * now.reached, idle=seen.idle + times * idle,
            last_step=step, steps=step - seen.first_step + 1, scored=seen.scored + times * scored,
            same_input=seen.same_input + times * now.same_input, train_input=seen.train_input + times * (idle and now.train_input))

    @staticmethod
    def _note_stretch(root: _Root, trained: list[_Forward], step: int, times: int) -> None:
        modes = {now.mode for now in trained}
        mode = "train" if "train" in modes else "eval" if modes == {"eval"} else ""
        if not mode:
            return
        root.dropout |= any(now.dropping + now.resting for now in trained)
        root.batchnorm |= any(now.batch_stats + now.running_stats for now in trained)
        last = root.stretches[-1] if root.stretches else None
        if last is not None and (last.mode == mode or len(root.stretches) >= STRETCHES):
            root.stretches[-1] = changed(last, steps=last.steps + times)
        else:
            root.stretches.append(Stretch(mode, step, times, trained[0].site, trained[0].switched_at))

    # -- groups and roots -------------------------------------------------------------------------------------------

    def _root(self, run: ForwardRun) -> _Root:
        root = self._roots.get(run.module)
        if root is None:
            root = self._roots[run.module] = _Root(self.session.ids.of(run.module), type(run.module).__name__)
            self._by_id[root.id] = root
        if root.looked != self.session.step and (self.session.detailed or not root.looked):
            root.looked = self.session.step
            recurrent = (m for m in run.module.modules() if isinstance(m, nn.RNNBase))
            root.recurrent = [weakref.ref(m) for m in recurrent if modules.drops(m)]
            parameters = [p for p in run.module.parameters() if not is_lazy(p)]
            root.parameters = frozenset(self.session.ids.of(p) for p in parameters)
            root.shapes, root.size = tuple(shape_of(p) for p in parameters), sum(p.numel() for p in parameters)
        return root

    def _group(self, now: _Forward, run: ForwardRun) -> _Group:
        switched = now.switched_at = modules.switched_at(run.module)
        at_work = now.dropping > 0, now.resting > 0, now.batch_stats > 0, now.running_stats > 0
        key = (now.root.id, id(now.site), now.training, now.grad, *at_work, id(switched) if not now.training else 0)
        group = self._groups.get(key)
        if group is None:
            first = next(tensors_in((run.args, run.kwargs)), None)
            group = self._groups[key] = _Group(ForwardPass(
                step=now.step, key=f"pass-{len(self._groups)}", model=now.root.id, class_name=now.root.class_name,
                site=now.site, training=now.training, grad=now.grad, dropping=now.dropping, resting=now.resting,
                batch_stats=now.batch_stats, running_stats=now.running_stats, first_step=now.step,
                switched_at=switched, input_shape=shape_of(first), discarded=_result_discarded(),
                asked_at=_asked_at(run.module)), now.root)
        return group

    def _say_all(self) -> None:
        for group in self._groups.values():
            if group.said is None or group.said != group.seen:
                group.said = group.seen
                self.session.emit(changed(group.seen, **self._facts_of(group)))
        for root in self._by_id.values():
            if root.stretches:
                self._say(TrainedInMode(
                    step=root.stretches[0].first_step, key=f"trained-{root.id}", model=root.id,
                    class_name=root.class_name, stretches=tuple(root.stretches), dropout=root.dropout,
                    batchnorm=root.batchnorm))
        for drop in self._drops.values():
            self._say(drop)

    def _say(self, observation: Any) -> None:
        if self._said.get(observation.key) != observation:
            self._said[observation.key] = observation
            self.session.emit(observation)

    def _facts_of(self, group: _Group) -> dict[str, Any]:
        root, others = group.root, [other for other in self._by_id.values() if other is not group.root]
        twins = [other.id for other in others if root.shapes and self._learns(other)
                 and (other.shapes, other.class_name) == (root.shapes, root.class_name)]
        judged = any(root.id in other.fed_by and other.unfed > 0 and self._learns(other) for other in others)
        return {"optimized": self._learns(root), "learning": self._learns(root, group.seen.first_step),
                "parameters": root.size, "twin_of": twins[0] if twins else 0, "judged": judged}

    def _learns(self, root: _Root, since: int = 0) -> bool:
        if self.session.optimizers == 0:
            return any(g.seen.backward and g.seen.last_step >= since for g in self._groups.values() if g.root is root)
        held = {self._optimizer_of[p] for p in root.parameters if p in self._optimizer_of}
        return any(self.session.stepped.get(optimizer, 0) >= since for optimizer in held)


def _get(marks: Marks, tensor: Tensor) -> Any:
    try:
        return marks.get(tensor)
    except Exception:
        return None  # batched, fake or sparse: no memory to mark


def _put(marks: Marks, tensor: Tensor, fact: Any) -> None:
    try:
        marks.put(tensor, fact)
    except Exception:
        pass  # likewise


def _rate(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
    attention = name == "scaled_dot_product_attention"
    at, key = (ATTENTION_RATE_AT, "dropout_p") if attention else (RATE_AT, "p")
    rate = args[at] if len(args) > at else kwargs.get(key, 0.0 if attention else 0.5)
    return float(rate) if isinstance(rate, (int, float)) else 0.0


def _active(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    if name == "scaled_dot_product_attention":
        return True
    given = args[ACTIVE_AT] if len(args) > ACTIVE_AT else kwargs.get("training", kwargs.get("train"))
    return name in ACTIVE_BY_DEFAULT if given is None else bool(given)


def _functional_owner(frame: FrameType | None) -> nn.Module | None:
    """The module whose code called a functional dropout; None for the dropout modules of torch themselves."""
    while frame is not None and frame.f_code.co_filename != _MODULES_FILE:
        if frame.f_code.co_filename == _DROPOUT_FILE:
            return None
        if frame.f_code.co_argcount:
            first = frame.f_locals.get(frame.f_code.co_varnames[0])
            if isinstance(first, nn.Module):
                return first
        frame = frame.f_back
    return None


def _result_discarded() -> bool:
    """Whether the code that called the root module throws its result away: the next instruction pops it."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not (frame.f_code.co_filename == _MODULES_FILE and frame.f_code.co_name == "__call__"):
        frame = frame.f_back
    caller = frame.f_back if frame is not None else None
    if caller is None:
        return False
    following = next((i for i in dis.get_instructions(caller.f_code) if i.offset > caller.f_lasti), None)
    return following is not None and following.opname == "POP_TOP"


def _asked_at(running: nn.Module) -> Site | None:
    """The user's line that called a method of the module around ``running``, which was called alone there."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None and not sites.is_user(frame.f_code.co_filename):
        frame = frame.f_back
    inside = False
    while frame is not None and isinstance(owner := frame.f_locals.get("self"), nn.Module) and owner is not running:
        inside, frame = True, frame.f_back
        while frame is not None and frame.f_code.co_filename == _CONTEXT_FILE:  # @torch.no_grad() on the method
            frame = frame.f_back
    if not inside or frame is None or not sites.is_user(frame.f_code.co_filename):
        return None
    return sites.of_frame(frame, frame.f_code.co_filename)
