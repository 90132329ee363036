"""One watched run: the clock, the dispatch to probes, the schedule, and the rule that nothing of ours reaches the user's script."""
from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from torch._C import DisableTorchFunction

from traindx.core.observed import MAX_STEPS, Ended, Observation, ProbeFailed, Site
from traindx.core.observed.program import Event, Window
from traindx.probes.recorder import Recorder
from traindx.probes.routine import Routine, detailed_step
from traindx.probes.tensors import number

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from traindx.probes.losses import Origins

TRACED_STEPS = frozenset((1, 2, 3, 8, 32))  # whole op traces: few, they are the costly ones
WINDOW_LIMIT = 200  # events kept of one window
MOST_PATTERNS = 500  # of windows
_clock = time.perf_counter
SHORT = 10.0  # seconds of a run in which every Budget has its full share
TOGETHER = 0.012  # share of the time of all Budgets together later on
LONGEST_ACCUMULATION = 512  # backwards without an optimizer step after which backwards count as steps


@dataclass
class BackwardRun:
    """One pass through the autograd engine. ``roots`` are weakly the user's tensors: never keep them."""

    roots: tuple[Any, ...]
    site: Site | None
    accumulate: bool
    create_graph: bool
    keep_graph: bool
    inputs: tuple[Any, ...] = ()
    value: float | None = None
    gradients: tuple[Any, ...] = ()  # what ``autograd.grad`` returned

    @property
    def by_hand(self) -> bool:
        """``autograd.grad`` with respect to leaves, no graph asked for: the gradients of an update by hand."""
        return not self.accumulate and not self.create_graph and bool(self.inputs) and all(t.is_leaf for t in self.inputs)


@dataclass
class ForwardRun:
    """One forward of a root module."""

    model: int
    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    site: Site | None
    training: bool
    grad: bool
    output: Any = None
    failed: bool = False


class Given(NamedTuple):
    """What a forward of a step that is let alone was given: its first tensor, weakly."""

    model: int
    site: Site | None
    grad: bool
    input: weakref.ref[Tensor]


@dataclass
class LossRun:
    """One call of a torch loss function, outermost only."""

    function: str
    input: Tensor
    target: Any
    output: Any
    arguments: dict[str, Any]
    site: Site | None
    made_at: Site | None
    grad: bool
    read: tuple[float | None] | None = None

    @property
    def value(self) -> float | None:
        """The loss as a number, read once for all who ask; None where it is none or on a device."""
        if self.read is None:  # functools' cached property takes a lock
            self.read = (number(self.output),)
        return self.read[0]


@dataclass
class StepRun:
    """One outermost optimizer step."""

    optimizer: torch.optim.Optimizer
    id: int
    site: Site | None
    rate: float | None  # the largest learning rate of its groups


@dataclass
class ClipRun:
    """One call of ``clip_grad_norm_`` or ``clip_grad_value_``, just done. ``norm`` is None where it is not a CPU number."""

    function: str
    parameters: list[Any]
    limit: float | None
    norm: float | None
    site: Site | None


@dataclass
class ScalerRun:
    """A call of a GradScaler that is about to be made: ``scale``, ``unscale``, ``scaler-step`` or ``scaler-update``."""

    what: str
    scaler: Any
    id: int
    optimizer: torch.optim.Optimizer | None
    site: Site | None


@dataclass
class ReadRun:
    """A value that was just read out of a tensor, and how long that took."""

    tensor: Tensor
    value: Any
    site: Site | None
    seconds: float


class Probe:
    """Base of all probes: override the hooks you need. A hook that raises switches its probe off, never the script."""

    areas: tuple[str, ...] = ()
    always: tuple[str, ...] = ()  # hooks that are called on steps that are let alone, too (see routine.py): they must be quick

    def __init__(self, session: Session) -> None:
        self.session = session

    def before_forward(self, run: ForwardRun) -> None: ...
    def after_forward(self, run: ForwardRun) -> None: ...
    def after_module(self, module: nn.Module, path: str, args: tuple[Any, ...], output: Any) -> None:
        """After every inner module's forward, on detailed steps only."""
    def on_loss(self, run: LossRun) -> None: ...
    def before_backward(self, run: BackwardRun) -> None: ...
    def after_backward(self, run: BackwardRun) -> None: ...
    def on_optimizer(self, optimizer: torch.optim.Optimizer, id: int, site: Site | None) -> None: ...
    def before_step(self, run: StepRun) -> None: ...
    def after_step(self, run: StepRun) -> None: ...
    def on_clip(self, run: ClipRun) -> None: ...
    def on_scaler(self, run: ScalerRun) -> None: ...
    def on_read(self, run: ReadRun) -> None:
        """On detailed steps, and while an evaluation is being scored."""
    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None: ...
    def on_event(self, event: Event) -> None: ...
    def on_tick(self, step: int) -> None:
        """A step is over (an optimizer stepped, or a backward ended where there is no optimizer)."""
    def on_wake(self, missed: int, events: Mapping[Event, int]) -> None:
        """``missed`` windows like those before them were let alone: what was known of the last step is old by now.

        ``events`` are how often each event came in them, those of the window that has begun included.
        """
    def at_end(self) -> None: ...

    def rests(self) -> bool:
        """Whether nothing is under way that needs the next step in full."""
        return True

    def attends(self) -> tuple[str, ...]:
        """The hooks that are to be called on the next steps, which are let alone: those of ``always`` that are of use now."""
        return self.always


HOOKS = tuple(name for name in vars(Probe) if name.startswith(("before_", "after_", "on_", "at_")))
Hooks: TypeAlias = "dict[str, list[tuple[Probe, Callable[..., None]]]]"


@dataclass
class _Pattern:
    number: int
    events: tuple[Event, ...]
    first: int
    last: int
    count: int = 0
    said: int = 0


class _Thread(threading.local):
    """``foreign`` threads are not watched: the gradients of a thread that trains cannot be read safely from another."""

    def __init__(self, owner: int) -> None:
        self.foreign = self.busy = threading.get_ident() != owner
        self.depth = 0
        self.modules: list[Any] = []  # those whose forward is running, where somebody asks
        self.alone = False  # inside a root's forward of whose inner modules nobody asks


class Session:
    """State of one run. ``step`` is the optimizer step being computed, from 1."""

    current: Session | None = None

    def __init__(self, recorder: Recorder, max_steps: int | None = None, looks: Mapping[str, Any] | None = None) -> None:
        self.recorder = recorder
        self.max_steps = max_steps
        self.looks = looks or {}  # what only some commands look at, each with its settings
        self.active = True
        self.problem: BaseException | None = None  # that ended the program
        self.step = 1
        self.began = time.perf_counter()
        self.stack = ExitStack()
        self.thread = _Thread(threading.get_ident())
        self.given: list[Given] = []  # the forwards of a window that is let alone
        self._read: tuple[weakref.ref[Any], int, float | None] | None = None  # the latest loss, its version, its value
        self.trained = False  # a backward was seen
        self.ids = Ids()
        self.optimizers = 0  # made so far
        self.announced: set[int] = set()  # their numbers
        self.stepped: dict[int, int] = {}  # the last step of each optimizer
        self._backwards = 0  # since the last step
        self.detailed = True
        self.scoring = False  # an evaluation is under way: what is read may be its metric
        self.compiled = False
        self.tracing = False  # op by op, now
        self.in_backward = 0
        self.stopped = False  # by --max-steps
        self.origins: Origins = None  # type: ignore[assignment]  # set by losses.install
        self.values: dict[str, float] = {}
        self.budgets: list[Budget] = []
        self.shares = 0.0  # of all of them
        self.probes: list[Probe] = []
        self._hooks: Hooks = {name: [] for name in HOOKS}
        self._now = self._hooks
        self.coasting = False
        self.routine = Routine()
        self._ours = 0.0  # seconds of this step that were spent in hooks
        self._ticked = self.began  # the latest step that was watched in full was over
        self._left = self._missed = 0  # windows to be let alone, and how many have been
        self._usual: list[_Pattern | None] = []
        self._cycle: list[list[Event]] = []
        self._expected: list[Event] = []  # of the window that is let alone; so many have come
        self._at = 0
        self._events: list[Event] = []
        self._made_events: dict[tuple[Any, ...], Event] = {}  # those of the next step are the same: made once
        self._patterns: dict[tuple[Any, ...], _Pattern] = {}
        self._failed: set[tuple[str, type[BaseException]]] = set()  # said once
        self._pid = os.getpid()
        self._ended = False

    # -- probes -----------------------------------------------------------------------------------------------------

    def add(self, kind: type[Probe]) -> None:
        try:
            probe = kind(self)
        except Exception as problem:
            self.failed(kind.__name__, problem)
            return
        self.probes.append(probe)
        for name in HOOKS:
            if getattr(kind, name) is not getattr(Probe, name):
                self._hooks[name].append((probe, getattr(probe, name)))

    def call(self, hook: str, *args: Any) -> None:
        """Runs a hook of every probe that has it, as ours: not traced, not observed, never raising."""
        hooks, thread = self._now[hook], self.thread
        if not hooks or thread.busy:
            return
        few = self.coasting
        began = 0.0 if few else _clock()
        thread.busy = True
        try:
            with DisableTorchFunction():  # tensors of the user's own kind are not asked, modes not told
                for probe, function in hooks:  # a probe that is dropped leaves in a new list
                    try:
                        function(*args)
                    except Exception as problem:
                        self.drop(probe, problem)
                if few and not self.coasting:  # one of them has seen something new: the others are asked, too
                    self._run([entry for entry in self._hooks[hook] if entry not in hooks], args)
        finally:
            thread.busy = False
            if not few:
                self._ours += _clock() - began

    def _run(self, hooks: list[tuple[Probe, Callable[..., None]]], args: tuple[Any, ...]) -> None:
        for probe, function in hooks:
            try:
                function(*args)
            except Exception as problem:
                self.drop(probe, problem)

    def guard(self, probe: Probe, function: Callable[..., Any], *args: Any) -> None:
        """Runs a function that a probe called from a patch of its own, the way hooks run."""
        if self.thread.busy:
            return
        self.thread.busy = True
        try:
            with DisableTorchFunction():
                function(*args)
        except Exception as problem:
            self.drop(probe, problem)
        finally:
            self.thread.busy = False

    def has(self, hook: str) -> bool:
        return bool(self._hooks[hook])

    def drop(self, probe: Probe, problem: BaseException) -> None:
        for every in (self._hooks, self._now):
            for name, hooks in every.items():
                every[name] = [entry for entry in hooks if entry[0] is not probe]
        self.failed(type(probe).__name__, problem)

    def tell(self, function: Callable[..., Any], *args: Any) -> None:
        """Our part of a patch: what goes wrong there does not reach the program."""
        try:
            function(*args)
        except Exception as problem:
            self.failed(getattr(function, "__qualname__", "patch"), problem)

    def failed(self, name: str, problem: BaseException) -> None:
        if (name, type(problem)) in self._failed:
            return
        self._failed.add((name, type(problem)))
        if os.environ.get("TRAINDX_DEBUG"):
            import traceback
            traceback.print_exception(problem)
        self.emit(ProbeFailed(step=self.step, probe=name, error=f"{type(problem).__name__}: {problem}"[:300]))

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Our own torch calls in here are neither traced nor observed."""
        before, self.thread.busy = self.thread.busy, True
        try:
            yield
        finally:
            self.thread.busy = before

    def claim(self) -> bool:
        """Asked by a backward that is not watched: the first thread that trains is the one to watch, where the main one does not."""
        thread = self.thread
        if self.trained or not thread.foreign or not self.active:
            return False
        self.trained, thread.foreign, thread.busy = True, False, False
        return True

    @property
    def watching(self) -> bool:
        return self.active and not self.thread.busy

    # -- facts ------------------------------------------------------------------------------------------------------

    def has_read(self, tensor: Tensor, value: float | None) -> None:
        """A loss was read: it need not be read again where it is the root of the backward."""
        self._read = (weakref.ref(tensor), tensor._version, value)

    def is_loss(self, tensor: Tensor | None) -> bool:
        """Whether this very tensor is what the latest loss function returned, unchanged."""
        loss = self._read[0]() if self._read is not None else None
        return self._read is not None and loss is not None and loss._version == self._read[1] and loss is tensor

    def number(self, tensor: Tensor | None) -> float | None:
        """A one-element CPU tensor as a float, see :func:`traindx.probes.tensors.number`."""
        return self._read[2] if self._read is not None and self.is_loss(tensor) else number(tensor)

    def emit(self, observation: Observation) -> None:
        if self.active:
            self.recorder.observe(observation)

    def metric(self, name: str, value: float) -> None:
        """A scalar of the current step, written when the step is over."""
        self.values[name] = value

    def event(self, what: str, site: Site | None, who: int = 0, detail: str = "") -> None:
        """Appends to the current window; an event like the last one is counted there."""
        if self.coasting:
            expected = self._expected[self._at] if self._at < len(self._expected) else None
            if expected is not None and expected.what == what and expected.site is site and expected.who == who and expected.detail == detail:
                self._at += 1
                return
            self.wake()
        event = self._append(what, site, who, detail)
        if event is not None:
            self.call("on_event", event)

    def _append(self, what: str, site: Site | None, who: int, detail: str) -> Event | None:
        """The event where it is another than the last."""
        events = self._events
        if events:
            last = events[-1]
            if last.what == what and last.site is site and last.who == who and last.detail == detail:
                events[-1] = Event(what, site, who, detail, last.count + 1)
                return None
        if len(events) >= WINDOW_LIMIT:
            return None
        key = (what, id(site), who, detail)
        event = self._made_events.get(key)
        if event is None:
            event = Event(what, site, who, detail)
            if len(self._made_events) < 1000:
                self._made_events[key] = event
        events.append(event)
        return event

    def expects(self, what: str, site: Site | None) -> bool:
        """Whether an event of this kind and place is the next of a window that is let alone."""
        expected = self._expected[self._at] if self._at < len(self._expected) else None
        return expected is not None and expected.what == what and expected.site is site

    # -- a run that repeats -----------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Back to watching in full: something new has come, or it is time."""
        if not self.coasting:
            return
        self.coasting, self._now = False, self._hooks
        for event in self._expected[:self._at]:  # what has happened in this window
            self._append(event.what, event.site, event.who, event.detail)
        events, missed = self._let_alone(), self._missed
        self._missed = 0
        with self.quiet(), DisableTorchFunction():
            self._run(self._hooks["on_wake"], (missed, events))
        self.given = []

    def _let_alone(self) -> Counter[Event]:
        """Counts the windows that were let alone, and the time they took; how often each event came in them."""
        now, events = _clock(), Counter(self._expected[:self._at])
        self.routine.let_alone(self._missed, now - self._ticked)
        self._ticked = now
        period = len(self._cycle)
        for place, (window, pattern) in enumerate(zip(self._cycle, self._usual)):
            times = len(range(place, self._missed, period))
            for event in window:
                events[event] += times
            if pattern is not None and times:
                pattern.count += times
                pattern.last = self.step - self._missed + place + (times - 1) * period
        return events

    def _coast(self, windows: int) -> None:
        latest = self.routine.cycle()
        self._usual = [self._pattern(events) for events in latest]
        self._cycle = [[event for event in events for _ in range(event.count)] for events in latest]
        self._left, self._missed, self._at = windows, 0, 0
        self._expected = self._cycle[0]
        attending = {probe: probe.attends() for probe in self.probes if probe.always}
        self._now = {name: [entry for entry in hooks if name in attending.get(entry[0], ())] for name, hooks in self._hooks.items()}
        self.coasting = True

    def _pace(self) -> None:
        """Whether the next window is watched in full."""
        if self.coasting:
            if self._missed >= self._left:
                self.wake()
            return
        now = _clock()
        seconds, self._ticked = now - self._ticked, now
        if not self.detailed:
            self.routine.took(seconds, self._ours)
        windows = self.routine.gap(self.step)
        if windows > 1 and all(probe.rests() for probe in self.probes):
            self._coast(windows)
        self._ours = 0.0

    # -- the clock --------------------------------------------------------------------------------------------------

    def backwards_are_the_clock(self) -> bool:
        """Asked after each backward: true where no optimizer was made, or none has stepped for very long."""
        self._backwards += 1
        return self.optimizers == 0 or self._backwards > LONGEST_ACCUMULATION

    def tick(self) -> None:
        """The step is over."""
        step = self.step
        if self.coasting and self._at < len(self._expected):
            self.wake()  # something that always happened did not
        self._close_window()
        self._backwards = 0
        self.call("on_tick", step)
        self.recorder.metrics(step, self.values)
        self.values = {}
        self.step = step + 1
        self._pace()
        self.detailed = detailed_step(self.step)
        if self.detailed:
            self._say_windows()
        if self.looks and self.max_steps is not None and self.step > self.max_steps:
            self._leave()

    def _leave(self) -> None:
        """A look has seen enough. The program does not go on to save what it has hardly trained."""
        self.stopped = True
        self.end(MAX_STEPS)
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(0)

    def _close_window(self) -> None:
        if self.coasting:
            self._missed += 1
            self._expected, self._at = self._cycle[self._missed % len(self._cycle)], 0
            self.given = []
            return
        events, self._events = self._events, []
        pattern = self._pattern(events)
        self.routine.note(events)
        if pattern is None:
            return
        pattern.count += 1
        pattern.last = self.step
        if pattern.said == 0:
            self._say(pattern)

    def _pattern(self, events: Sequence[Event]) -> _Pattern | None:
        """Windows that are alike; None where there are too many kinds."""
        events = fold_loops(events)
        # sites are interned, so their ids are their identity; counts of repeats do not make another pattern
        key = tuple((e.what, id(e.site), e.who, e.detail, e.count > 1) for e in events)
        pattern = self._patterns.get(key)
        if pattern is None and len(self._patterns) < MOST_PATTERNS:
            pattern = self._patterns[key] = _Pattern(len(self._patterns), tuple(events), self.step, self.step)
        return pattern

    def _say_windows(self) -> None:
        for pattern in self._patterns.values():
            if pattern.said != pattern.count:
                self._say(pattern)

    def _say(self, pattern: _Pattern) -> None:
        pattern.said = pattern.count
        self.emit(Window(step=pattern.first, key=f"window-{pattern.number}", events=pattern.events,
                         count=pattern.count, last_step=pattern.last))

    def end(self, how: str, error: str | None = None, problem: BaseException | None = None) -> None:
        """The program is over: last words of every probe. Only once, and only in the process that began.

        ``problem`` is the exception that ended it, for those who look at where it was raised.
        """
        if self._ended or not self.active or os.getpid() != self._pid:
            return
        self._ended = True
        self.problem = problem
        self.wake()
        if self._events:
            self._close_window()
        self._say_windows()
        self.call("at_end")
        self.recorder.metrics(self.step, self.values)
        steps = self.step - 1
        self.problem = None
        self.recorder.flush()
        self.emit(Ended(step=steps, how=how, steps=steps, seconds=time.perf_counter() - self.began, error=error))
        self.active = False

    def close(self) -> None:
        """Takes every patch off again."""
        self.active = False
        self.stack.close()
        self.recorder.close()
        if Session.current is self:
            Session.current = None


def fold_loops(events: Sequence[Event]) -> Sequence[Event]:
    """A loop inside a window (forward, loss, forward, loss ...) once, its events counted."""
    if len(events) < 8:
        return events
    folded: list[Event] = []
    for event in events:
        folded.append(event)
        for period in range(1, min(8, len(folded) // 2) + 1):
            if all(_alike(a, b) for a, b in zip(folded[-period:], folded[-2 * period:-period])):
                for i, repeat in enumerate(folded[-period:]):
                    old = folded[-2 * period + i]
                    folded[-2 * period + i] = Event(old.what, old.site, old.who, old.detail, old.count + repeat.count)
                del folded[-period:]
                break
    return folded


def _alike(a: Event, b: Event) -> bool:
    return a.what == b.what and a.site is b.site and a.who == b.who and a.detail == b.detail


class Ids:
    """Small numbers for objects, given once and never reused; keeps nothing alive."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._next = 1

    def of(self, thing: Any) -> int:
        entry = self._known.get(id(thing))
        if entry is not None and entry[0]() is thing:
            return entry[1]
        number, self._next = self._next, self._next + 1
        key = id(thing)
        self._known[key] = (weakref.ref(thing, lambda ref, key=key: self._forget(key, ref)), number)  # type: ignore[misc]
        return number

    def known(self, thing: Any) -> bool:
        entry = self._known.get(id(thing))
        return entry is not None and entry[0]() is thing

    def _forget(self, key: int, ref: weakref.ref[Any]) -> None:
        entry = self._known.get(key)
        if entry is not None and entry[0] is ref:
            del self._known[key]


@dataclass
class Budget:
    """Optional work is done while it has cost less than its ``share`` of the time; the first ``free`` steps always, uncounted.

    After the first :data:`SHORT` seconds of a run, all budgets together share :data:`TOGETHER` of the time, each by its ``share``.
    """

    session: Session
    share: float = 0.02
    free: int = 64
    spent: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.session.budgets.append(self)
        self.session.shares += self.share

    def allows(self) -> bool:
        return self.session.step <= self.free or self.spent < self.allowance(time.perf_counter() - self.session.began)

    def allowance(self, elapsed: float) -> float:
        """Seconds that may have been spent after ``elapsed`` seconds of the run."""
        if elapsed <= SHORT:
            return self.share * elapsed
        return self.share * (SHORT + min(1.0, TOGETHER / self.session.shares) * (elapsed - SHORT))

    @contextmanager
    def paying(self) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            if self.session.step > self.free:
                self.spent += time.perf_counter() - began
