"""Whose gradients are followed: the parameters of each optimizer, and those that no optimizer holds."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator

from torch import Tensor
from torch.optim import Optimizer

from traindx.core.observed import Site, changed
from traindx.core.observed.gradients import Rebuilt
from traindx.probes.gradient_lives import Life, Owner
from traindx.probes.learning import leaves_of
from traindx.probes.session import BackwardRun, Session, StepRun
from traindx.probes.tensors import plain

OWNERS = 64
LEAVES = 2000
GRAPH_NODES = 3000


class Owners:
    """Optimizers and their parameters. ``by_hand`` owns the leaves that no optimizer holds."""

    def __init__(self, session: Session, farewell: Callable[[Owner], None]) -> None:
        self.session = session
        self.farewell = farewell  # called before one is forgotten
        self.by_hand = Owner(0, "", None)
        self.by_optimizer: dict[int, Owner] = {}
        self.rebuilt: dict[int, Rebuilt] = {}
        self.full = True  # all parameters are followed, not a few of each
        self.dataset = 0
        self._lives: dict[int, Life] = {}
        self._followed: list[Life] | None = None

    def each(self) -> Iterator[Owner]:
        yield self.by_hand
        yield from self.by_optimizer.values()

    def known(self, parameter: Tensor) -> Life | None:
        life = self._lives.get(id(parameter))
        return life if life is not None and life.ref() is parameter else None

    def _life(self, parameter: Tensor, owner: Owner) -> Life:
        life = self.known(parameter)
        if life is None:
            life = self._lives[id(parameter)] = Life(weakref.ref(parameter), owner)
            life.empty = life.look() is None
            self._followed = None
        return life

    def adopt(self, optimizer: Optimizer, id: int, site: Site | None) -> Owner | None:
        """Follows an optimizer; one that was built again at its line goes on as the one before. None where there are too many."""
        parameters = [p for group in optimizer.param_groups for p in group["params"] if plain(p) and p.is_leaf]
        before = {life.owner for p in parameters[:64] if (life := self.known(p)) is not None}
        owner = next(iter(before)) if len(before) == 1 else None
        if owner is not None and owner.id and _built_again(owner, optimizer, site, len(parameters)):
            self._build_again(owner, optimizer, id, site, owner.trainable != sum(p.requires_grad for p in parameters))
        else:
            self._forget_the_dead()
            if len(self.by_optimizer) >= OWNERS:
                return None
            owner = Owner(id, type(optimizer).__name__, site, weakref.ref(optimizer), newest=id)
        owner.groups = tuple(len(group["params"]) for group in optimizer.param_groups)
        owner.trainable = sum(p.requires_grad for p in parameters)
        owner.own([self._life(p, owner) for p in parameters])
        self.by_optimizer[id] = owner
        self._followed = None
        return owner

    def _build_again(self, owner: Owner, optimizer: Optimizer, number: int, site: Site | None, other_phase: bool) -> None:
        key = id(site)
        seen = self.rebuilt.get(key) or Rebuilt(
            step=self.session.step, key=f"rebuilt-{key}", site=site, class_name=owner.class_name, instances=1, steps=())
        first = owner.few[0].ref() if owner.few else None
        moved = other_phase or (first is not None and owner.resting not in (-1, first._version))
        self.rebuilt[key] = changed(
            seen, instances=seen.instances + 1, steps=(*seen.steps, owner.taken - owner.built_at)[:50],
            moved_between=seen.moved_between + moved, memory=_memory(optimizer), step_site=owner.step_site)
        self.by_optimizer.pop(owner.newest, None)
        owner.ref, owner.newest, owner.built_at = weakref.ref(optimizer), number, owner.taken

    def _forget_the_dead(self) -> None:
        for id, owner in list(self.by_optimizer.items()):
            if owner.ref is not None and owner.ref() is None and all(life.ref() is None for life in owner.few):
                self.farewell(owner)
                del self.by_optimizer[id]
        self._lives = {key: life for key, life in self._lives.items() if life.ref() is not None}

    def of_step(self, run: StepRun) -> Owner | None:
        owner = self.by_optimizer.get(run.id)
        groups = tuple(len(group["params"]) for group in run.optimizer.param_groups)
        if owner is None or owner.groups != groups:
            owner = self.adopt(run.optimizer, run.id, owner.made_at if owner else None)
        return owner

    def note_instance(self, owner: Owner, run: StepRun) -> None:
        """What an optimizer that was built again has kept."""
        rebuilt = self.rebuilt.get(id(owner.made_at))
        if run.id != owner.newest:
            self.rebuilt.pop(id(owner.made_at), None)  # the older one goes on: nothing was lost
        elif rebuilt is not None and owner.taken == owner.built_at:
            self.rebuilt[id(owner.made_at)] = changed(
                rebuilt, kept_state=rebuilt.kept_state + bool(run.optimizer.state),
                other_data=rebuilt.other_data + (owner.dataset != self.dataset))
        owner.dataset = self.dataset

    def followed(self) -> list[Life]:
        if self._followed is None:
            lives = (life for owner in self.each() for life in (owner.lives if self.full else owner.few))
            self._followed = list({id(life): life for life in lives}.values())
        return self._followed

    def lives_of(self, owner: Owner) -> list[Life]:
        return owner.lives if self.full else owner.few

    def follow(self, full: bool) -> None:
        """All parameters from here on, or a few of each."""
        if full and not self.full:
            for owner in self.by_optimizer.values():
                for life in owner.lives:
                    if not life.followed:
                        life.forget()
        if full != self.full:
            self.full, self._followed = full, None

    def discover(self, run: BackwardRun) -> None:
        """Leaves of the graph that no optimizer holds."""
        owner = self.by_hand
        new = [leaf for leaf in leaves_of(run.roots, GRAPH_NODES) if self.known(leaf) is None and plain(leaf)]
        if not new or len(owner.lives) > LEAVES:
            return
        alive = [life for life in owner.lives if life.owner is owner and life.ref() is not None]
        owner.own([*alive, *(self._life(leaf, owner) for leaf in new)])
        self._followed = None


def _built_again(owner: Owner, optimizer: Optimizer, site: Site | None, count: int) -> bool:
    return (owner.class_name == type(optimizer).__name__ and owner.made_at is site and len(owner.lives) == count
            and owner.taken > owner.built_at)


def _memory(optimizer: Optimizer) -> float:
    """Steps that the first moment looks back; 0 where there is no state to lose."""
    group = optimizer.param_groups[0]
    betas = group.get("betas")
    kept = float(betas[0] if betas else group.get("momentum") or group.get("alpha") or 0.0)
    return 1 / max(1 - kept, 1e-6) if kept else 0.0
