"""The life of gradients: whether what a backward leaves reaches a step, reaches two of them, or is cleared unused.

Nothing is hooked to parameters. Their ``.grad`` is looked at right before and after each backward and each step: its
identity and its version counter tell what happened in between, whoever did it (``zero_grad``, ``p.grad = None``, a
framework). Only where these cannot tell (``p.grad.data.zero_()`` leaves no trace) are values read. On ordinary steps
eight parameters of each optimizer are followed, on detailed steps all of them.
"""
from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from traindx.core.observed import Observation, Site, changed
from traindx.core.observed.gradients import ClipUse, Gathered, GradientUse, HalfPrecision, PassUse, Rebuilt, ScalerUse
from traindx.core.observed.program import Event
from traindx.probes import ops, sites
from traindx.probes.learning import leaves_of
from traindx.probes.roots import batch_mean_weight, carries
from traindx.probes.routine import detailed_step
from traindx.probes.session import (
    BackwardRun,
    ClipRun,
    ForwardRun,
    LossRun,
    Probe,
    ScalerRun,
    Session,
    StepRun,
)
from traindx.probes.tensors import number, plain, readable, sample

FOLLOWED = 8  # parameters of each optimizer that are looked at on every step
OWNERS = 64
SOURCES = 64
LEAVES = 2000
GRAPH_NODES = 3000
LONGEST = 600  # backwards remembered of one window
WRITES_SOUGHT = 3  # windows in which the line of a hand-written update is looked for


def install(session: Session) -> None:
    session.add(Ledger)
    session.add(Autocasts)


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


class Ledger(Probe):
    """Follows gradients from backward to step; clips and GradScalers on their way."""

    areas = ("optim", "numeric")
    always = ("on_batch",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._by_hand = Owner(0, "", None)
        self._owners: dict[int, Owner] = {}
        self._lives: dict[int, Life] = {}
        self._sources: dict[tuple[int, ...], Source] = {}
        self._watched: list[Life] | None = None
        self._full = True
        self._stepping: Owner | None = None
        self._pass: Pass | None = None
        self._last: Pass | None = None
        self._passes = 0
        self._zeroed_at: Site | None = None
        self._lines: list[int] = []  # of the losses and forwards since the last backward
        self._clips: dict[int, ClipUse] = {}
        self._scalers: dict[int, ScalerUse] = {}
        self._scale = 0.0  # of a scaler's scale() since the last backward
        self._rebuilt: dict[int, Rebuilt] = {}
        self._dataset = 0
        self._writes: _Writes | None = None
        self._sought = 0
        self._said: dict[str, Observation] = {}
        self._blind = 0  # windows that are not judged: what came before them was not looked at

    # -- who is followed --------------------------------------------------------------------------------------------

    def on_optimizer(self, optimizer: Optimizer, id: int, site: Site | None) -> None:
        self._adopt(optimizer, id, site)

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        dataset = getattr(loader, "dataset", None)
        try:
            self._dataset = self.session.ids.of(dataset) if dataset is not None else 0
        except TypeError:
            self._dataset = 0  # a list of samples cannot be weakly held

    def _known(self, parameter: Tensor) -> Life | None:
        life = self._lives.get(_key(parameter))
        return life if life is not None and life.ref() is parameter else None

    def _life(self, parameter: Tensor, owner: Owner) -> Life:
        life = self._known(parameter)
        if life is None:
            life = self._lives[id(parameter)] = Life(weakref.ref(parameter), owner)
            life.empty = life.look() is None
            self._watched = None
        return life

    def _adopt(self, optimizer: Optimizer, id: int, site: Site | None) -> Owner | None:
        parameters = [p for group in optimizer.param_groups for p in group["params"] if plain(p) and p.is_leaf]
        before = {life.owner for p in parameters[:64] if (life := self._known(p)) is not None}
        owner = next(iter(before)) if len(before) == 1 else None
        if owner is not None and owner.id and _built_again(owner, optimizer, site, len(parameters)):
            self._build_again(owner, optimizer, id, site, owner.trainable != sum(p.requires_grad for p in parameters))
        else:
            self._forget_the_dead()
            if len(self._owners) >= OWNERS:
                return None
            owner = Owner(id, type(optimizer).__name__, site, weakref.ref(optimizer), newest=id)
        owner.groups = tuple(len(group["params"]) for group in optimizer.param_groups)
        owner.trainable = sum(p.requires_grad for p in parameters)
        owner.own([self._life(p, owner) for p in parameters])
        self._owners[id] = owner
        self._watched = None
        return owner

    def _build_again(self, owner: Owner, optimizer: Optimizer, id: int, site: Site | None, other_phase: bool) -> None:
        key = _key(site)
        seen = self._rebuilt.get(key) or Rebuilt(
            step=self.session.step, key=f"rebuilt-{key}", site=site, class_name=owner.class_name, instances=1, steps=())
        first = owner.few[0].ref() if owner.few else None
        moved = other_phase or (first is not None and owner.resting not in (-1, first._version))
        self._rebuilt[key] = changed(
            seen, instances=seen.instances + 1, steps=(*seen.steps, owner.taken - owner.built_at)[:50],
            moved_between=seen.moved_between + moved, memory=_memory(optimizer), step_site=owner.step_site)
        self._owners.pop(owner.newest, None)
        owner.ref, owner.newest, owner.built_at = weakref.ref(optimizer), id, owner.taken

    def _forget_the_dead(self) -> None:
        for id, owner in list(self._owners.items()):
            if owner.ref is not None and owner.ref() is None and all(life.ref() is None for life in owner.few):
                self._emit(owner.said(self.session.step, self._passes))
                del self._owners[id]
        self._lives = {key: life for key, life in self._lives.items() if life.ref() is not None}

    def _owner(self, run: StepRun) -> Owner | None:
        owner = self._owners.get(run.id)
        groups = tuple(len(group["params"]) for group in run.optimizer.param_groups)
        if owner is None or owner.groups != groups:
            owner = self._adopt(run.optimizer, run.id, owner.made_at if owner else None)
        return owner

    def _followed(self) -> list[Life]:
        if self._watched is None:
            everyone = [self._by_hand, *self._owners.values()]
            lives = (life for owner in everyone for life in (owner.lives if self._full else owner.few))
            self._watched = list({id(life): life for life in lives}.values())
        return self._watched

    def _of(self, owner: Owner) -> list[Life]:
        return owner.lives if self._full else owner.few

    def on_wake(self, missed: int, events: Mapping[Event, int]) -> None:
        """What gradients hold now is unknown; a step of each optimizer later it is known again."""
        for event, times in events.items():
            if event.what == "step" and (owner := self._owners.get(event.who)) is not None:
                owner.taken += times
                owner.resting = -1
        self._blind = self.session.routine.period
        self._pass = self._stepping = None
        self._lines, self._scale = [], 0.0
        for owner in (self._by_hand, *self._owners.values()):
            owner.unscaled = owner.through_scaler = False
            for life in owner.lives:
                life.forget()

    def on_tick(self, step: int) -> None:
        if self._blind:
            self._blind -= 1
            self._lines, self._zeroed_at = [], None
        soon = detailed_step(step + 1)
        full = soon or detailed_step(step + 2)
        if full and not self._full:
            for owner in self._owners.values():
                for life in owner.lives:
                    if not life.followed:
                        life.forget()
        if full != self._full:
            self._full, self._watched = full, None
        if soon:
            self._say()

    # -- backward ---------------------------------------------------------------------------------------------------

    def before_forward(self, run: ForwardRun) -> None:
        self._end_search()
        if run.grad:
            self._line(run.site)

    def on_loss(self, run: LossRun) -> None:
        if run.grad:
            self._line(run.site)

    def on_event(self, event: Event) -> None:
        if event.what == "zero_grad":
            self._zeroed_at = event.site

    def _line(self, site: Site | None) -> None:
        key = _key(site)
        if len(self._lines) < 12 and (not self._lines or self._lines[-1] != key):
            self._lines.append(key)

    def before_backward(self, run: BackwardRun) -> None:
        if not run.accumulate or self._blind:
            return
        self._end_search()
        if self.session.step <= 3 or (self.session.optimizers == 0 and self.session.detailed):
            self._discover(run)
        idle = self._updates_by_hand()
        for life in self._followed():
            self._refresh(life)
        if idle and all(life.empty for life in idle) and any(life.lost for life in idle):
            self._starved(idle[0].owner, None)
        self._pass = self._begin(run)

    def _begin(self, run: BackwardRun) -> Pass:
        key = (_key(run.site), *self._lines)
        self._lines = []
        source = self._sources.get(key)
        if source is None:
            source = Source(len(self._sources), run.site)
            if len(self._sources) < SOURCES:
                self._sources[key] = source
        root = run.roots[0] if run.roots else None
        value = run.value
        scale = self._scale if self._scale and carries(root, self._scale) else 0.0
        weight = batch_mean_weight(root)
        self._scale = 0.0
        self._passes += 1
        source.count += 1
        finite = value is None or abs(value) < float("inf")
        return Pass(source, self.session.step, finite, weight / (scale or 1.0) if weight is not None else None, scale)

    def after_backward(self, run: BackwardRun) -> None:
        new, self._pass = self._pass, None
        if new is None:
            return
        reached = False
        for life in self._followed():
            version, grad = life.version, life.grad
            if life.look() is not None and (life.version, life.grad) != (version, grad):
                self._receive(life, new)
                reached = reached or self._is_by_hand(life)
        self._last, self._zeroed_at = new, None
        if reached and self._stepping is None:
            self._begin_search(new)

    def _receive(self, life: Life, new: Pass) -> None:
        owner = life.owner
        if life.used and not life.empty:
            life.stale = True
        life.empty = False
        grad = parameter.grad if self._full and (parameter := life.ref()) is not None else None
        life.born_zero = grad is not None and is_zero(grad) is True
        if len(life.passes) < LONGEST:
            life.passes.append(new)
            new.open += 1
        if owner.last is not new:
            owner.last = new
            owner.passes += 1
            new.source.reached.add(owner.id)
            new.source.owner = owner
        parameter = life.ref()
        if parameter is not None:
            life.weight_version = parameter._version
            life.values = fingerprint(parameter) if self._is_by_hand(life) or new.source.lost else None

    def _discover(self, run: BackwardRun) -> None:
        """Leaves of the graph that no optimizer holds."""
        owner = self._by_hand
        new = [leaf for leaf in leaves_of(run.roots, GRAPH_NODES) if self._known(leaf) is None and plain(leaf)]
        if not new or len(owner.lives) > LEAVES:
            return
        alive = [life for life in owner.lives if life.owner is owner and life.ref() is not None]
        owner.own([*alive, *(self._life(leaf, owner) for leaf in new)])
        self._watched = None

    # -- what was done to a gradient --------------------------------------------------------------------------------

    def _refresh(self, life: Life, edits: bool = True) -> None:
        """Takes in what happened to the gradient since it was last looked at: cleared, written into, or nothing.

        ``edits``: whether it is the program itself that has written into it.
        """
        version, identity = life.version, life.grad
        grad = life.look()
        if grad is None:
            if version >= 0:
                self._cleared(life)
            return
        if (life.version, life.grad) == (version, identity):
            suspect = life.used or (self._full and bool(life.passes))
            if suspect and not life.empty and not life.born_zero and is_zero(grad):
                self._cleared(life)
            return
        zero = is_zero(grad, trusted=self._zeroed_at is not None)
        if zero is not False:
            self._cleared(life, sure=bool(zero))
        elif edits and not life.owner.unscaled:
            life.edited, life.empty = True, False
            if life.used and not life.passes:
                life.used = life.stale = False

    def _cleared(self, life: Life, sure: bool = True) -> None:
        excused = not sure or life.ref() is None or (bool(life.passes) and self._moved(life))
        for each in life.passes:
            life.lost += not each.used and not excused
            each.excused = each.excused or excused
            each.close(self._zeroed_at)
        life.passes.clear()
        life.used = life.stale = life.edited = False
        life.empty = True

    def _is_by_hand(self, life: Life) -> bool:
        """Whether only its values tell that it was stepped: no optimizer does, or the step still runs (closures)."""
        return life.owner.steps == 0 or life.owner is self._stepping

    def _moved(self, life: Life) -> bool:
        parameter = life.ref()
        if parameter is None:
            return False
        if life.values is not None:
            return fingerprint(parameter) != life.values
        return parameter._version != life.weight_version

    def _updates_by_hand(self) -> list[Life]:
        """Values that changed since the last backward were stepped. Returns lives written to without change."""
        moved: dict[int, list[Life]] = {}
        idle = []
        for life in self._followed():
            if life.passes and self._is_by_hand(life):
                if self._moved(life):
                    moved.setdefault(life.owner.id, []).append(life)
                elif (parameter := life.ref()) is not None and parameter._version != life.weight_version:
                    idle.append(life)
        for lives in moved.values():
            owner = lives[0].owner
            if owner is self._stepping:
                self._use(lives)
            else:
                owner.moves += 1
                self._consume(owner, lives)
        return [] if moved else idle

    # -- steps ------------------------------------------------------------------------------------------------------

    def before_step(self, run: StepRun) -> None:
        self._end_search()
        owner = self._owner(run)
        if owner is None:
            return
        self._note_instance(owner, run)
        owner.step_site = run.site
        if self._blind:
            return
        self._stepping = owner
        for life in self._of(owner):
            self._refresh(life)
            if not life.empty:
                for each in life.passes:
                    each.use()
        self._check_scale(owner, run.site)

    def _note_instance(self, owner: Owner, run: StepRun) -> None:
        rebuilt = self._rebuilt.get(_key(owner.made_at))
        if run.id != owner.newest:
            self._rebuilt.pop(_key(owner.made_at), None)  # the older one goes on: nothing was lost
        elif rebuilt is not None and owner.taken == owner.built_at:
            self._rebuilt[_key(owner.made_at)] = changed(
                rebuilt, kept_state=rebuilt.kept_state + bool(run.optimizer.state),
                other_data=rebuilt.other_data + (owner.dataset != self._dataset))
        owner.dataset = self._dataset

    def after_step(self, run: StepRun) -> None:
        if self._blind:
            self._after_unseen(run)
            return
        owner, self._stepping = self._stepping, None
        if owner is None:
            return
        lives = self._of(owner)
        owner.steps += 1
        owner.taken += 1
        if all(life.empty for life in lives):
            if any(life.lost for life in lives):
                self._starved(owner, run.site)
            else:
                owner.empty_steps += 1
        self._consume(owner, lives)
        owner.unscaled = owner.through_scaler = False
        for life in lives:
            if life.look() is None:
                life.used, life.empty = False, True
        first = owner.few[0].ref() if owner.few else None
        owner.resting = first._version if first is not None else -1

    def _after_unseen(self, run: StepRun) -> None:
        """A step whose gradients were not followed: all that is known is that it has used what they hold."""
        owner = self._owners.get(run.id)
        if owner is None:
            return
        owner.taken += 1
        for life in owner.lives:
            life.empty = life.look() is None
            life.used = not life.empty
        first = owner.few[0].ref() if owner.few else None
        owner.resting = first._version if first is not None else -1

    def _starved(self, owner: Owner, site: Site | None) -> None:
        owner.starved_steps += 1
        owner.starved_first = owner.starved_first or self.session.step
        owner.wiped_at = self._zeroed_at or owner.wiped_at
        for life in self._of(owner):
            life.lost = 0

    def _consume(self, owner: Owner, lives: list[Life]) -> None:
        """A step has used what these parameters hold."""
        owner.first_step, owner.last_step = owner.first_step or self.session.step, self.session.step
        fresh = [life for life in lives if life.passes]
        stale = sum(life.stale for life in fresh)
        if stale:
            owner.stale_steps += 1
            if self._full or not owner.stale:
                owner.stale, owner.fresh = stale, len(fresh)
            owner.stale_first = owner.stale_first or self.session.step
        elif fresh:
            owner.clean_steps += 1
        if any(life.edited for life in lives):
            owner.edited_steps += 1
            for each in fresh[0].passes[-1:] if fresh else ():
                each.source.excused += 1
        elif fresh and not stale:
            self._gather(owner, fresh)
        self._use(lives)

    def _use(self, lives: Iterable[Life]) -> None:
        for life in lives:
            for each in life.passes:
                each.use()
                each.close(None)
            life.passes.clear()
            life.used = not life.empty
            life.stale = life.edited = False
            life.lost = 0

    def _gather(self, owner: Owner, fresh: list[Life]) -> None:
        """Windows of several backwards of the same kind, whole ones only: every parameter got something from each."""
        passes = fresh[0].passes
        source = passes[0].source
        if any(len(life.passes) != len(passes) for life in fresh) or any(each.source is not source for each in passes):
            return
        entry = owner.gathered.setdefault((len(passes), source.number), [0, 0.0, 0, source.site])
        weights = [each.weight for each in passes if each.weight is not None]
        entry[0] += 1
        entry[1] += sum(weights)
        entry[2] += len(weights) == len(passes)

    # -- clips and scalers ------------------------------------------------------------------------------------------

    def on_clip(self, run: ClipRun) -> None:
        if self._blind or run.limit is None or run.limit == float("inf"):
            return  # only the norm was wanted
        known = [life for p in run.parameters if (life := self._known(p)) is not None]
        lives = [life for life in known if self._full or life.followed]
        if not lives:
            return
        for life in lives:
            self._clipped(life)
        timely = [life for life in lives if life.passes and not (self._is_by_hand(life) and self._moved(life))]
        key = _key(run.site)
        use = self._clips.get(key) or ClipUse(
            key=f"clip-{len(self._clips)}", site=run.site, function=run.function, first=self.session.step)
        self._clips[key] = self._noted(changed(use, calls=use.calls + 1, limit=run.limit), run, lives, timely)

    def _clipped(self, life: Life) -> None:
        """The clip wrote into the gradient, which may have been cleared before."""
        parameter = life.ref()
        if self._zeroed_at is not None or parameter is None or parameter.grad is None:
            self._refresh(life, edits=False)
        else:
            life.look()

    def _noted(self, use: ClipUse, run: ClipRun, lives: list[Life], timely: list[Life]) -> ClipUse:
        owner = lives[0].owner
        norm = run.norm if run.norm is not None and run.norm < float("inf") else None
        bites = norm is not None and run.limit is not None and norm > run.limit
        use = changed(use, step_site=owner.step_site, backward_site=owner.last.source.site if owner.last else None,
                      measured=use.measured + (norm is not None), bites=use.bites + bites)
        if timely:
            return self._timely(use, timely, norm)
        use = changed(use, useless_bites=use.useless_bites + bites, useless_norm=_larger(use.useless_norm, norm))
        if any(life.used for life in lives) or any(life.passes for life in lives):
            return changed(use, after_step=use.after_step + 1)
        return changed(use, before_backward=use.before_backward + 1)

    def _timely(self, use: ClipUse, timely: list[Life], norm: float | None) -> ClipUse:
        scale = max((each.scale for life in timely[:1] for each in life.passes), default=0.0)
        for life in timely:
            for each in life.passes:
                each.excused = True  # cleared after a clip, it is skipped on purpose
        use = changed(use, in_time=use.in_time + 1, norm=_larger(use.norm, norm))
        if scale and not timely[0].owner.unscaled:
            use = changed(use, scaled=use.scaled + 1, scale=scale, scaled_norm=_larger(use.scaled_norm, norm))
        return use

    def on_scaler(self, run: ScalerRun) -> None:
        if self._blind:
            return
        use = self._scalers.get(run.id) or ScalerUse(key=f"scaler-{run.id}", id=run.id, first=self.session.step)
        owner = self._owners.get(self.session.ids.of(run.optimizer)) if run.optimizer is not None else None
        if run.what == "scale":
            self._scale = _scale_of(run.scaler)
            use = changed(use, scales=use.scales + 1, scale=self._scale, scale_site=run.site)
        elif run.what == "unscale" and owner is not None:
            owner.unscaled = True
        elif run.what == "scaler-step":
            use = changed(use, steps=use.steps + 1, step_site=run.site)
            use = self._scaler_steps(use, owner) if owner is not None else use
        elif run.what == "scaler-update":
            use = changed(use, updates=use.updates + 1)
            for each in self._owners.values():
                each.unscaled = each.through_scaler = False
        self._scalers[run.id] = use

    def _scaler_steps(self, use: ScalerUse, owner: Owner) -> ScalerUse:
        owner.through_scaler = True
        passes = [each for life in owner.few for each in life.passes]
        for each in passes:
            each.use()  # a step that the scaler skips is not the program's loss
        if passes and not any(each.scale for each in passes):
            use = changed(use, unscaled_steps=use.unscaled_steps + 1, backward_site=passes[-1].source.site)
        return use

    def _check_scale(self, owner: Owner, site: Site | None) -> None:
        """A step that goes around the scaler, on scaled gradients."""
        if owner.unscaled or owner.through_scaler or not self._scalers:
            return
        if any(each.scale for life in owner.few for each in life.passes):
            key, use = next(iter(self._scalers.items()))
            self._scalers[key] = changed(use, direct_steps=use.direct_steps + 1, direct_site=site)

    # -- the line of a hand-written update --------------------------------------------------------------------------

    def _begin_search(self, new: Pass) -> None:
        if self._sought >= WRITES_SOUGHT or self.session.compiled or self._writes is not None:
            return
        self._sought += 1
        held = (life.ref() for life in self._followed() if new in life.passes[-1:] and self._is_by_hand(life))
        self._writes = _Writes(self.session, [p for p in held if p is not None])
        self._writes.on()

    def _end_search(self) -> None:
        writes, self._writes = self._writes, None
        if writes is None:
            return
        writes.off()
        if writes.site is not None:
            for owner in (self._by_hand, *self._owners.values()):
                if owner.steps == 0 and owner.passes:
                    owner.step_site = writes.site

    # -- words ------------------------------------------------------------------------------------------------------

    def _say(self) -> None:
        for owner in {id(owner): owner for owner in (self._by_hand, *self._owners.values())}.values():
            if owner.passes or owner.steps:
                self._emit(owner.said(self.session.step, self._passes))
        for source in self._sources.values():
            self._emit(source.said())
        for each in (*self._clips.values(), *self._scalers.values(), *self._rebuilt.values()):
            self._emit(each)

    def _emit(self, observation: Observation) -> None:
        if self._said.get(observation.key) != observation:
            self._said[observation.key] = observation
            self.session.emit(observation)

    def at_end(self) -> None:
        self._end_search()
        self._say()


def _key(thing: Any) -> int:
    return id(thing)


def _larger(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else max(a, b)


def _built_again(owner: Owner, optimizer: Optimizer, site: Site | None, count: int) -> bool:
    return (owner.class_name == type(optimizer).__name__ and owner.made_at is site and len(owner.lives) == count
            and owner.taken > owner.built_at)


def _memory(optimizer: Optimizer) -> float:
    """Steps that the first moment looks back; 0 where there is no state to lose."""
    group = optimizer.param_groups[0]
    betas = group.get("betas")
    kept = float(betas[0] if betas else group.get("momentum") or group.get("alpha") or 0.0)
    return 1 / max(1 - kept, 1e-6) if kept else 0.0


def _scale_of(scaler: Any) -> float:
    """Without waiting for a device: there, the scale it began with."""
    return number(getattr(scaler, "_scale", None)) or float(getattr(scaler, "_init_scale", 1.0))


class _Writes(ops.StackMode):
    """Finds the first line that writes into one of some parameters."""

    def __init__(self, session: Session, parameters: list[Tensor]) -> None:
        super().__init__(session)
        self.site: Site | None = None
        self._memory = {p.data_ptr() for p in parameters if readable(p)}

    def handle(self, func: Any, args: Any, kwargs: Any) -> Any:
        if self.site is None and not self.session.thread.busy and self._writes(func, args):
            self.site = sites.here(2)
        return func(*args, **kwargs)

    def _writes(self, func: Any, args: Any) -> bool:
        name = getattr(func, "__name__", "")
        if name == "__set__":
            writes = getattr(getattr(func, "__self__", None), "__name__", "") == "data"
        else:
            writes = name.startswith("__i") if name.endswith("__") else name.endswith("_")
        if not writes or not args:
            return False
        with self.session.quiet():
            target = args[0][0] if isinstance(args[0], (list, tuple)) and args[0] else args[0]
            return readable(target) and target.data_ptr() in self._memory


class Autocasts(Probe):
    """Work under a float16 autocast, and the backwards that follow it."""

    areas = ("numeric",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._seen: HalfPrecision | None = None
        self._since = False  # the last backward

    def before_forward(self, run: ForwardRun) -> None:
        if run.grad:
            self._look(run.site)

    def on_loss(self, run: LossRun) -> None:
        if run.grad:
            self._look(run.site)

    def after_module(self, module: Any, path: str, args: tuple[Any, ...], output: Any) -> None:
        if not self._since and torch.is_grad_enabled():
            self._look(sites.here(3))

    def _look(self, site: Site | None) -> None:
        device = next((kind for kind in ("cuda", "cpu") if torch.is_autocast_enabled(kind)), None)
        if device is None or torch.get_autocast_dtype(device) is not torch.float16:
            return
        self._since = True
        if self._seen is None:
            self._seen = HalfPrecision(step=self.session.step, key="float16", device=device, site=site)

    def before_backward(self, run: BackwardRun) -> None:
        if not run.accumulate or not self._since or self._seen is None:
            return
        self._since = False
        weight = batch_mean_weight(run.roots[0]) if run.roots else None
        seen = self._seen
        self._seen = changed(seen, backwards=seen.backwards + 1, backward_site=seen.backward_site or run.site,
                             weight=_larger(seen.weight, weight))
        if self._seen.backwards <= 3:
            self.session.emit(self._seen)

    def at_end(self) -> None:
        if self._seen is not None:
            self.session.emit(self._seen)
