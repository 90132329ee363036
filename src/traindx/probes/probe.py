"""The base of all probes."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from traindx.core.observed import Site
from traindx.core.observed.program import Event
from traindx.probes.calls import BackwardRun, ClipRun, ForwardRun, LossRun, ReadRun, ScalerRun, StepRun

if TYPE_CHECKING:
    import torch
    from torch import nn

    from traindx.probes.session import Session


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
