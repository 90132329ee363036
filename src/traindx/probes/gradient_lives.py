"""What is known of gradients: backwards that left them, parameters that hold them, optimizers that use them."""
from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from traindx.core.observed import Site
from traindx.core.observed.gradients import Gathered, GradientUse, PassUse
from traindx.probes.tensors import readable, sample

FOLLOWED = 8  # parameters of each optimizer that are looked at on every step


@dataclass(eq=False, slots=True)
class Source:
    """Backwards of one line, with the same losses and forwards before them."""

    number: int
    site: Site | None
    count: int = 0
    reached: set[int] = field(default_factory=set)
    used: int = 0
    lost: int = 0
    excused: int = 0
    first_lost: int = 0
    wiped_at: Site | None = None
    owner: Owner | None = None

    def said(self) -> PassUse:
        return PassUse(
            key=f"passes-{self.number}", site=self.site, count=self.count, reached=tuple(sorted(self.reached)),
            used=self.used, lost=self.lost, excused=self.excused, first_lost=self.first_lost, wiped_at=self.wiped_at,
            step_site=self.owner.step_site if self.owner else None)


@dataclass(eq=False, slots=True)
class Pass:
    """One backward. ``open`` counts the parameters in which what it left lies unused."""

    source: Source
    step: int
    finite: bool
    weight: float | None
    scale: float
    open: int = 0
    used: bool = False
    excused: bool = False

    def use(self) -> None:
        if not self.used:
            self.used = True
            self.source.used += 1

    def close(self, wiped_at: Site | None) -> None:
        """One parameter fewer holds it; with the last, a pass that no step used is lost."""
        self.open -= 1
        if self.open or self.used:
            return
        source = self.source
        if self.excused or not self.finite:
            source.excused += 1
            return
        source.lost += 1
        source.first_lost = source.first_lost or self.step
        source.wiped_at = wiped_at or source.wiped_at


@dataclass(eq=False, slots=True)
class Life:
    """What is known of one parameter's gradient since it was last looked at."""

    ref: weakref.ref[Tensor]
    owner: Owner
    version: int = -1  # of the gradient, -1 where there is none
    grad: int = 0  # identity of the gradient
    empty: bool = True  # no gradient, or zeros
    passes: list[Pass] = field(default_factory=list)  # whose gradients it holds, unused
    used: bool = False  # a step has used what it holds
    stale: bool = False  # a backward has added to what a step had used
    edited: bool = False  # the program itself has written into it
    born_zero: bool = False  # the backward itself gave zeros: a loss that depends on nothing
    lost: int = 0  # passes cleared unused since the last step
    weight_version: int = 0
    values: float | None = None
    followed: bool = False

    def look(self) -> Tensor | None:
        """The gradient, its identity and version noted."""
        parameter = self.ref()
        grad = parameter.grad if parameter is not None else None
        self.version, self.grad = (-1, 0) if grad is None else (grad._version, id(grad))
        return grad

    def forget(self) -> None:
        """Nobody looked for some steps: whatever it holds is of unknown origin."""
        for each in self.passes:
            each.excused = True
            each.close(None)
        self.passes.clear()
        self.used = self.stale = self.edited = False
        self.lost = 0
        self.empty = self.look() is None


@dataclass(eq=False, slots=True)
class Owner:
    """One optimizer, or all parameters that have none. One rebuilt at its line for its parameters is the same."""

    id: int
    class_name: str
    made_at: Site | None
    ref: weakref.ref[Optimizer] | None = None
    lives: list[Life] = field(default_factory=list)
    few: list[Life] = field(default_factory=list)
    groups: tuple[int, ...] = ()
    passes: int = 0
    last: Pass | None = None
    steps: int = 0  # that were followed
    taken: int = 0  # all of them
    moves: int = 0
    stale_steps: int = 0
    clean_steps: int = 0
    stale: int = 0
    fresh: int = 0
    stale_first: int = 0
    starved_steps: int = 0
    starved_first: int = 0
    first_step: int = 0
    last_step: int = 0
    empty_steps: int = 0
    edited_steps: int = 0
    step_site: Site | None = None
    wiped_at: Site | None = None
    gathered: dict[tuple[int, int], list[Any]] = field(default_factory=dict)
    unscaled: bool = False
    through_scaler: bool = False
    newest: int = 0
    built_at: int = 0  # its steps taken when it was last built anew
    trainable: int = 0  # parameters that required a gradient when it was built
    resting: int = -1  # version of its first parameter after its last step
    dataset: int = 0

    def own(self, lives: list[Life]) -> None:
        self.lives = lives
        count = len(lives)
        chosen = {i * (count - 1) // (FOLLOWED - 1) for i in range(FOLLOWED)} if count > FOLLOWED else set(range(count))
        self.few = [life for i, life in enumerate(lives) if i in chosen]
        for life in lives:
            life.owner = self
        for life in self.few:
            life.followed = True

    def moved(self) -> bool | None:
        if self.moves:
            return True
        return False if all(life.values is not None for life in self.few if life.passes or life.used) else None

    def said(self, step: int, in_program: int) -> GradientUse:
        gathered = tuple(Gathered(count, times, total / times if known == times else None, site)
                         for (count, _), (times, total, known, site) in self.gathered.items())
        counts = {name: getattr(self, name) for name in _COUNTS}
        return GradientUse(
            step=step, key=f"gradients-{self.id}", optimizer=self.id, parameters=len(self.lives), gathered=gathered,
            backward_site=self.last.source.site if self.last else None, backwards_in_program=in_program,
            moved=None if self.steps else self.moved(), **counts)


_COUNTS = ("class_name", "made_at", "step_site", "passes", "steps", "first_step", "last_step", "stale_steps",
           "clean_steps", "stale", "fresh", "stale_first", "starved_steps", "starved_first", "wiped_at", "empty_steps",
           "edited_steps")
# unequal weights, since the elements of a bias may move with sum 0
_WAVE = torch.arange(64, dtype=torch.float64).mul(0.7548776662).frac().add(0.1)


def is_zero(grad: Tensor, trusted: bool = False) -> bool | None:
    """Whether a gradient is all zero; None where that cannot be known cheaply. ``trusted``: a sample will do."""
    if not readable(grad):
        return None
    if bool(sample(grad, 256).any()):
        return False
    if trusted or grad.numel() <= 256:
        return True
    return not bool(grad.any()) if grad.numel() <= 1_000_000 else None


def fingerprint(parameter: Tensor) -> float | None:
    """One number that changes when the values do."""
    if not readable(parameter) or parameter.is_complex():
        return None
    some = sample(parameter, 31).double()
    return float(torch.dot(some, _WAVE[:some.numel()]))
