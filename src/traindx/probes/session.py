"""One watched run: the clock, the dispatch to probes, the schedule, and the rule that nothing of ours reaches the user's script."""
from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from torch._C import DisableTorchFunction

from traindx.core.observed import MAX_STEPS, Ended, Observation, ProbeFailed, Site
from traindx.core.observed.program import Event
from traindx.probes import sites
from traindx.probes.budget import Budget
from traindx.probes.calls import BackwardRun, ClipRun, ForwardRun, Given, LossRun, ReadRun, ScalerRun, StepRun
from traindx.probes.ids import Ids
from traindx.probes.probe import HOOKS, Hooks, Probe
from traindx.probes.recorder import Recorder
from traindx.probes.routine import Routine, detailed_step
from traindx.probes.tensors import number
from traindx.probes.windows import Pattern, Windows

if TYPE_CHECKING:
    from torch import Tensor

    from traindx.probes.losses import Origins

__all__ = ["LONGEST_ACCUMULATION", "TRACED_STEPS", "BackwardRun", "Budget", "ClipRun", "ForwardRun", "Given", "LossRun", "Probe", "ReadRun",
           "ScalerRun", "Session", "StepRun"]  # all that a probe needs

FIRST_STEPS = 8  # all of them are looked at closely
PHASE_STEPS = 6  # those after the first of a new optimizer, too
TRACED_STEPS = frozenset((1, 2, 3, 8, 32))  # whole op traces: few, they are the costly ones
_clock = time.perf_counter
LONGEST_ACCUMULATION = 512  # backwards without an optimizer step after which backwards count as steps


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
        self.phases = 0  # that began after the first steps: an optimizer stepped for the first time
        self.new_until = 0  # the last step that is looked at closely because of it
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
        self._usual: list[Pattern | None] = []
        self._cycle: list[list[Event]] = []
        self._expected: list[Event] = []  # of the window that is let alone; so many have come
        self._at = 0
        self.windows = Windows(self.emit)
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
        event = self.windows.append(what, site, who, detail)
        if event is not None:
            self.call("on_event", event)

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
            self.windows.append(event.what, event.site, event.who, event.detail)
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
        self._usual = [self.windows.pattern(events, self.step) for events in latest]
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
        windows = self.routine.gap(self.step) if self.step > self.new_until else 0
        if windows > 1 and all(probe.rests() for probe in self.probes):
            self._coast(windows)
        self._ours = 0.0

    def phase(self) -> None:
        """An optimizer has stepped for the first time: a second training is seen as closely as the first, as often as there are doublings."""
        if self.step > FIRST_STEPS and self.phases < self.step.bit_length() - FIRST_STEPS.bit_length() + 1:
            self.phases += 1
            self.new_until = self.step + PHASE_STEPS

    def looks_at(self, step: int) -> bool:
        """Whether probes may spend milliseconds on this step."""
        return step <= self.new_until or detailed_step(step)

    def is_early(self, last: int) -> bool:
        """In the steps 2 to ``last`` of the run, or in the first ones of a new phase."""
        return 2 <= self.step <= last or self.step <= self.new_until

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
        self.detailed = self.looks_at(self.step)
        if self.detailed:
            self.windows.say_all()
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
        events = self.windows.close()
        pattern = self.windows.pattern(events, self.step)
        self.routine.note(events)
        if pattern is not None:
            self.windows.count(pattern, self.step)

    def end(self, how: str, error: str | None = None, problem: BaseException | None = None) -> None:
        """The program is over: last words of every probe. Only once, and only in the process that began.

        ``problem`` is the exception that ended it, for those who look at where it was raised.
        """
        if self._ended or not self.active or os.getpid() != self._pid:
            return
        self._ended = True
        self.problem = problem
        self.wake()
        if self.windows.events:
            self._close_window()
        self.windows.say_all()
        self.call("at_end")
        self.recorder.metrics(self.step, self.values)
        steps = self.step - 1
        self.problem = None
        self.recorder.flush()
        self.emit(Ended(step=steps, how=how, steps=steps, seconds=time.perf_counter() - self.began, error=error, site=sites.raised_at(problem)))
        self.active = False

    def close(self) -> None:
        """Takes every patch off again."""
        self.active = False
        self.stack.close()
        self.recorder.close()
        if Session.current is self:
            Session.current = None
