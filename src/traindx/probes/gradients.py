"""The life of gradients: whether what a backward leaves reaches a step, reaches two of them, or is cleared unused.

Nothing is hooked to parameters. Their ``.grad`` is looked at right before and after each backward and each step: its
identity and its version counter tell what happened in between, whoever did it (``zero_grad``, ``p.grad = None``, a
framework). Only where these cannot tell (``p.grad.data.zero_()`` leaves no trace) are values read. On ordinary steps
eight parameters of each optimizer are followed, on detailed steps all of them.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch.optim import Optimizer

from traindx.core.observed import Observation, Site, changed
from traindx.core.observed.gradients import ClipUse, ScalerUse
from traindx.core.observed.program import Event
from traindx.probes.gradient_clips import noted, scale_of, stepped
from traindx.probes.gradient_lives import Life, Owner, Pass, Source, fingerprint, is_zero
from traindx.probes.gradient_owners import Owners
from traindx.probes.roots import batch_mean_weight, carries
from traindx.probes.session import BackwardRun, ClipRun, ForwardRun, LossRun, Probe, ScalerRun, Session, StepRun
from traindx.probes.writes import Writes

SOURCES = 64
LONGEST = 600  # backwards remembered of one window
WRITES_SOUGHT = 3  # windows in which the line of a hand-written update is looked for


def install(session: Session) -> None:
    session.add(Ledger)


class Ledger(Probe):
    """Follows gradients from backward to step; clips and GradScalers on their way."""

    areas = ("optim", "numeric")
    always = ("on_batch",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._owners = Owners(session, lambda owner: self._emit(owner.said(session.step, self._passes)))
        self._sources: dict[tuple[int, ...], Source] = {}
        self._stepping: Owner | None = None
        self._pass: Pass | None = None
        self._last: Pass | None = None
        self._passes = 0
        self._zeroed_at: Site | None = None
        self._lines: list[int] = []  # of the losses and forwards since the last backward
        self._clips: dict[int, ClipUse] = {}
        self._scalers: dict[int, ScalerUse] = {}
        self._scale = 0.0  # of a scaler's scale() since the last backward
        self._writes: Writes | None = None
        self._written_at: Site | None = None
        self._sought = 0
        self._said: dict[str, Observation] = {}
        self._blind = 0  # windows that are not judged: what came before them was not looked at

    # -- who is followed --------------------------------------------------------------------------------------------

    def on_optimizer(self, optimizer: Optimizer, id: int, site: Site | None) -> None:
        self._owners.adopt(optimizer, id, site)

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        dataset = getattr(loader, "dataset", None)
        try:
            self._owners.dataset = self.session.ids.of(dataset) if dataset is not None else 0
        except TypeError:
            self._owners.dataset = 0  # a list of samples cannot be weakly held

    def on_wake(self, missed: int, events: Mapping[Event, int]) -> None:
        """What gradients hold now is unknown; a step of each optimizer later it is known again."""
        for event, times in events.items():
            if event.what == "step" and (owner := self._owners.by_optimizer.get(event.who)) is not None:
                owner.taken += times
                owner.resting = -1
        self._blind = self.session.routine.period
        self._pass = self._stepping = None
        self._lines, self._scale = [], 0.0
        for owner in self._owners.each():
            owner.unscaled = owner.through_scaler = False
            for life in owner.lives:
                life.forget()

    def on_tick(self, step: int) -> None:
        if self._blind:
            self._blind -= 1
            self._lines, self._zeroed_at = [], None
        soon = self.session.looks_at(step + 1)
        self._owners.follow(soon or self.session.looks_at(step + 2))
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
        key = id(site)
        if len(self._lines) < 12 and (not self._lines or self._lines[-1] != key):
            self._lines.append(key)

    def before_backward(self, run: BackwardRun) -> None:
        if not run.accumulate or self._blind:
            return
        self._end_search()
        if self.session.step <= 3 or (self.session.optimizers == 0 and self.session.detailed):
            self._owners.discover(run)
        idle = self._updates_by_hand()
        for life in self._owners.followed():
            self._refresh(life)
        if idle and all(life.empty for life in idle) and any(life.lost for life in idle):
            self._starved(idle[0].owner, None)
        self._pass = self._begin(run)

    def _begin(self, run: BackwardRun) -> Pass:
        key = (id(run.site), *self._lines)
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
        for life in self._owners.followed():
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
        grad = parameter.grad if self._owners.full and (parameter := life.ref()) is not None else None
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
            suspect = life.used or (self._owners.full and bool(life.passes))
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
        for life in self._owners.followed():
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
        owner = self._owners.of_step(run)
        if owner is None:
            return
        self._owners.note_instance(owner, run)
        owner.step_site = run.site
        if self._blind:
            return
        self._stepping = owner
        for life in self._owners.lives_of(owner):
            self._refresh(life)
            if not life.empty:
                for each in life.passes:
                    each.use()
        self._check_scale(owner, run.site)

    def after_step(self, run: StepRun) -> None:
        if self._blind:
            self._after_unseen(run)
            return
        owner, self._stepping = self._stepping, None
        if owner is None:
            return
        lives = self._owners.lives_of(owner)
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
        owner = self._owners.by_optimizer.get(run.id)
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
        for life in self._owners.lives_of(owner):
            life.lost = 0

    def _consume(self, owner: Owner, lives: list[Life]) -> None:
        """A step has used what these parameters hold."""
        owner.first_step, owner.last_step = owner.first_step or self.session.step, self.session.step
        fresh = [life for life in lives if life.passes]
        stale = sum(life.stale for life in fresh)
        if stale:
            owner.stale_steps += 1
            if self._owners.full or not owner.stale:
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
        if self._blind:
            return
        known = [life for p in run.parameters if (life := self._owners.known(p)) is not None]
        lives = [life for life in known if self._owners.full or life.followed]
        if not lives:
            return
        for life in lives:
            self._clipped(life)
        if run.limit is None or run.limit == float("inf"):
            return  # only the norm was wanted
        timely = [life for life in lives if life.passes and not (self._is_by_hand(life) and self._moved(life))]
        key = id(run.site)
        use = self._clips.get(key) or ClipUse(
            key=f"clip-{len(self._clips)}", site=run.site, function=run.function, first=self.session.step)
        self._clips[key] = noted(changed(use, calls=use.calls + 1, limit=run.limit), run, lives, timely)

    def _clipped(self, life: Life) -> None:
        """The clip wrote into the gradient, which may have been cleared before."""
        parameter = life.ref()
        if self._zeroed_at is not None or parameter is None or parameter.grad is None:
            self._refresh(life, edits=False)
        else:
            life.look()

    def on_scaler(self, run: ScalerRun) -> None:
        if self._blind:
            return
        use = self._scalers.get(run.id) or ScalerUse(key=f"scaler-{run.id}", id=run.id, first=self.session.step)
        owner = self._owners.by_optimizer.get(self.session.ids.of(run.optimizer)) if run.optimizer is not None else None
        if run.what == "scale":
            self._scale = scale_of(run.scaler)
            use = changed(use, scales=use.scales + 1, scale=self._scale, scale_site=run.site)
        elif run.what == "unscale" and owner is not None:
            owner.unscaled = True
        elif run.what == "scaler-step":
            use = changed(use, steps=use.steps + 1, step_site=run.site)
            use = stepped(use, owner) if owner is not None else use
        elif run.what == "scaler-update":
            use = changed(use, updates=use.updates + 1)
            for each in self._owners.by_optimizer.values():
                each.unscaled = each.through_scaler = False
        self._scalers[run.id] = use

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
        held = (life.ref() for life in self._owners.followed() if new in life.passes[-1:] and self._is_by_hand(life))
        self._written_at = None
        self._writes = Writes(self.session, [p for p in held if p is not None], self._note_write)
        self._writes.on()

    def _note_write(self, site: Site | None, name: str) -> None:
        self._written_at = self._written_at or site

    def _end_search(self) -> None:
        writes, self._writes = self._writes, None
        if writes is None:
            return
        writes.off()
        if self._written_at is not None:
            for owner in self._owners.each():
                if owner.steps == 0 and owner.passes:
                    owner.step_site = self._written_at

    # -- words ------------------------------------------------------------------------------------------------------

    def _say(self) -> None:
        for owner in {id(owner): owner for owner in self._owners.each()}.values():
            if owner.passes or owner.steps:
                self._emit(owner.said(self.session.step, self._passes))
        for source in self._sources.values():
            self._emit(source.said())
        for each in (*self._clips.values(), *self._scalers.values(), *self._owners.rebuilt.values()):
            self._emit(each)

    def _emit(self, observation: Observation) -> None:
        if self._said.get(observation.key) != observation:
            self._said[observation.key] = observation
            self.session.emit(observation)

    def at_end(self) -> None:
        self._end_search()
        self._say()
