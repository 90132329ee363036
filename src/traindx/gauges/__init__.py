"""What is measured inside a trial besides its curves: one file a gauge, each with a class ``Measurement``.

A trial is a throw-away run of the user's program, so a gauge may do forwards and backwards of its own; it puts back
modes, buffers and random numbers, so that the curves of the trial stay what they would have been. Two things do change
them, in the last digits: ``torch.compile`` is passed over in a trial that has gauges, and under ``sharpness`` attention takes
its unfused kernel.

The tracer of a trial calls the hooks of one :class:`Watchers`; what a gauge found goes out as the message
``{"fact": [gauge, value]}``, again and again where it grows: the last one counts. Where a precondition is missing the
value is ``{"not_measured": {"en": ..., "zh": ...}}``.
"""
from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

from traindx.core.codec import encode
from traindx.core.observed import Site
from traindx.core.text import Text
from traindx.core.trials import Gauge
from traindx.errors import UsageError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

Send = Callable[[dict[str, Any]], None]

UNKNOWN = Text("There is no gauge “{name}”. Known: {known}.", "没有叫 {name} 的测量。可用的有：{known}。")
NO_SETTING = Text("The gauge “{name}” has no setting “{setting}”. Known: {known}.",
                  "测量 {name} 没有 {setting} 这个设置。可用的有：{known}。")
BROKE = Text("The measurement failed: {error}", "测量出错：{error}")


class Watcher:
    """Base of all gauges: override the hooks you need. ``settings`` are the defaults, overridden by the gauge asked for."""

    settings: ClassVar[dict[str, Any]] = {}

    def __init__(self, gauge: Gauge, send: Send) -> None:
        unknown = sorted(set(gauge.settings) - set(self.settings))
        if unknown:
            raise UsageError(NO_SETTING.fill(name=gauge.name, setting=unknown[0], known=", ".join(self.settings) or "-"))
        self.name = gauge.name
        self.asked: dict[str, Any] = {**self.settings, **gauge.settings}
        self.done = False
        self.resting: Callable[[], bool] = lambda: False  # whether gauges are at work, and not the program
        self._send = send

    def send(self, value: dict[str, Any]) -> None:
        """Reports a value, in JSON terms; a later one takes its place."""
        self._send({"fact": [self.name, encode(value)]})

    def not_measured(self, why: Text) -> None:
        """Reports that a precondition is missing, and that it is no use to go on."""
        self.done = True
        self.send({"not_measured": {"en": why.en, "zh": why.zh}})

    def begin(self, stack: ExitStack) -> None:
        """Before the program starts: patches of its own go on ``stack``."""

    def on_batch(self, loader: Any, iterator: Any) -> None:
        """A DataLoader has handed out a batch, for training or not."""

    def before_forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A root module is about to be called with gradients on; never a loss module, never a module inside another."""

    def on_forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """That call has returned ``output``, the user's own: its graph is alive."""

    def on_loss(self, function: str, input: Tensor, target: Any, value: Tensor, kwargs: dict[str, Any], site: Site | None) -> None:
        """A torch loss function has returned ``value`` with gradients on. ``kwargs`` are all its other arguments, by name."""

    def on_backward(self, root: Tensor) -> None:
        """A backward that fills ``.grad`` is about to start from ``root``, as the user has it: scaled, divided."""

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to step."""

    def after_step(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        """It has stepped; ``step`` is the number of this step, from 1."""

    def at_end(self) -> None:
        """The trial is over."""


class FromStep(Watcher):
    """A gauge with the setting ``at``: the step from which it looks, as where a batch is held from the third step on."""

    settings: ClassVar[dict[str, Any]] = {"at": 1}
    step = 1

    @property
    def waiting(self) -> bool:
        return self.step < int(self.asked["at"])

    def after_step(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        self.step = step + 1


class Watchers:
    """All gauges of a trial. ``tell`` runs one hook of each: what they call of torch is not watched, what they raise is kept
    from the program and reported as not measured."""

    def __init__(self, gauges: Iterable[Gauge], send: Send) -> None:
        self.watchers = [build(gauge, send) for gauge in gauges]
        self.busy = False
        for watcher in self.watchers:
            watcher.resting = lambda: self.busy

    def tell(self, hook: str, *args: Any) -> None:
        """``tell("on_backward", root)``; nothing while a hook is running."""
        if self.busy:
            return
        self.busy = True
        if hook == "begin" and self.watchers:
            from traindx.gauges.tools.eager import uncompiled
            uncompiled(*args)
        try:
            for watcher in self.watchers:
                if not watcher.done:
                    _run(watcher, hook, args)
        finally:
            self.busy = False


def _run(watcher: Watcher, hook: str, args: tuple[Any, ...]) -> None:
    try:
        getattr(watcher, hook)(*args)
    except Exception as problem:
        watcher.not_measured(BROKE.fill(error=f"{type(problem).__name__}: {problem}"[:300].replace("\n", " ")))


def names() -> list[str]:
    """All gauges, without importing torch."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg)


def build(gauge: Gauge, send: Send) -> Watcher:
    """The gauge of that name. Raises UsageError where there is none, or where a setting is unknown."""
    if gauge.name not in names():
        raise UsageError(UNKNOWN.fill(name=gauge.name, known=", ".join(names())))
    made: Watcher = importlib.import_module(f"{__name__}.{gauge.name}").Measurement(gauge, send)
    return made
