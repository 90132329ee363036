"""Weights taken with ``state_dict()``, kept, saved to a file, read from one, and loaded: which of them are still the live ones."""
from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim import lr_scheduler as schedulers

from traindx.core.observed import Site
from traindx.core.observed.checkpoints import FileRead, FileSaved, Kept, SecondName, StateLoaded, WeightsLoaded
from traindx.probes import patching, sites, source
from traindx.probes.session import ForwardRun, Probe, Session, StepRun
from traindx.probes.tensors import readable, sample

SNAPSHOTS = 64  # of which the values are looked after
COMPARED = 8  # tensors of a snapshot whose values are compared
FILE_TENSORS = 4096
SHOWN_NAMES = 3


def install(session: Session) -> None:
    session.add(Checkpoints)
    probe = next((p for p in session.probes if isinstance(p, Checkpoints)), None)
    if probe is None:
        return
    patching.replace(session.stack, nn.Module, "state_dict", lambda original: _observed_take(original, session, probe))
    patching.replace(session.stack, nn.Module, "load_state_dict", lambda original: _observed_load(original, session, probe))
    for owner in (torch, torch.serialization):
        patching.replace(session.stack, owner, "save", lambda original: _observed_save(original, session, probe))
        patching.replace(session.stack, owner, "load", lambda original: _observed_read(original, session, probe))
    for kind, what in ((Optimizer, "optimizer"), (schedulers.LRScheduler, "scheduler"),
                       (schedulers.ReduceLROnPlateau, "scheduler"), (torch.amp.GradScaler, "scaler")):
        patching.replace(session.stack, kind, "load_state_dict", partial(_observed_state, session=session, probe=probe, what=what))


def _observed_take(original: Any, session: Session, probe: Checkpoints) -> Any:
    def state_dict(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        taken = original(self, *args, **kwargs)
        if session.watching and not args and kwargs.get("destination") is None:  # children are handed a destination
            session.guard(probe, probe.taken, self, taken, sites.here(2))
        return taken
    return patching.dressed(state_dict, original)


def _observed_load(original: Any, session: Session, probe: Checkpoints) -> Any:
    def load_state_dict(self: nn.Module, state_dict: Any, *args: Any, **kwargs: Any) -> Any:
        if not session.watching:
            return original(self, state_dict, *args, **kwargs)
        before = probe.before_load(self, state_dict)
        result = original(self, state_dict, *args, **kwargs)
        strict = bool(args[0] if args else kwargs.get("strict", True))
        session.guard(probe, probe.loaded, self, state_dict, strict, result, before, sites.here(2))
        return result
    return patching.dressed(load_state_dict, original)


def _observed_save(original: Any, session: Session, probe: Checkpoints) -> Any:
    def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        if session.watching:
            session.guard(probe, probe.saved, obj, f, sites.here(2))
        return original(obj, f, *args, **kwargs)
    return patching.dressed(save, original)


def _observed_read(original: Any, session: Session, probe: Checkpoints) -> Any:
    def load(f: Any, *args: Any, **kwargs: Any) -> Any:
        obj = original(f, *args, **kwargs)
        if session.watching:
            session.guard(probe, probe.read, obj, f, sites.here(2))
        return obj
    return patching.dressed(load, original)


def _observed_state(original: Any, session: Session, probe: Checkpoints, what: str) -> Any:
    def load_state_dict(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if session.watching:
            session.guard(probe, probe.state_loaded, what, self, sites.here(2))
        return result
    return patching.dressed(load_state_dict, original)


@dataclass
class _Snapshot:
    """One ``state_dict()`` of a module; the tensors are held weakly, the values of a few as a sum."""

    model: weakref.ref[nn.Module]
    site: Site | None
    step: int
    values: list[weakref.ref[Tensor]]
    pointers: frozenset[int]
    sums: list[tuple[weakref.ref[Tensor], float]]

    def changed(self) -> bool | None:
        """Whether values have changed since; None where none can be compared."""
        compared = [_sum_of(value) != was for ref, was in self.sums if (value := ref()) is not None]
        return any(compared) if compared else None


class Checkpoints(Probe):
    """What was taken, kept, saved and loaded."""

    areas = ("record", "repro")

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._snapshots: list[_Snapshot] = []
        self._from_file: dict[int, weakref.ref[Tensor]] = {}
        self._stepped: dict[int, weakref.ref[Optimizer]] = {}
        self._second_names: set[int] = set()

    def after_step(self, run: StepRun) -> None:
        if run.id not in self._stepped:
            self._stepped[run.id] = weakref.ref(run.optimizer)

    def before_forward(self, run: ForwardRun) -> None:
        if self.session.detailed and self._stepped:
            frame: FrameType | None = sys._getframe(3)
            while frame is not None:
                if sites.is_user(frame.f_code.co_filename):
                    self._look_for_second_names(frame)
                frame = frame.f_back

    def _look_for_second_names(self, frame: FrameType) -> None:
        """A best model that is the live one: the branch that keeps the best was taken, and both names are one module."""
        for best in source.best_names(frame.f_code.co_filename):
            module = _named(frame, best.name)
            if best.line not in self._second_names and isinstance(module, nn.Module) and self._is_trained(module):
                self._second_names.add(best.line)
                place, used = (sites.at(frame.f_code.co_filename, line) for line in (best.line, best.used))
                self.session.emit(SecondName(step=self.session.step, site=place, used_at=used, name=best.name, other=best.other,
                                             model=self.session.ids.of(module)))

    def _is_trained(self, module: nn.Module) -> bool:
        own = {id(p) for p in module.parameters()}
        return any(id(p) in own for ref in self._stepped.values() if (optimizer := ref()) is not None
                   for group in optimizer.param_groups for p in group["params"])

    def taken(self, module: nn.Module, taken: Any, site: Site | None) -> None:
        values = [v for v in taken.values() if isinstance(v, Tensor)] if isinstance(taken, Mapping) else []
        if not values:
            return
        compared = [v for v in values if readable(v) and v.is_floating_point() and v.numel()][:COMPARED]
        self._snapshots = [s for s in self._snapshots if any(ref() is not None for ref in s.values)][-SNAPSHOTS:]
        self._snapshots.append(_Snapshot(
            weakref.ref(module), site, self.session.step, [weakref.ref(v) for v in values],
            frozenset(_pointer(v) for v in values) - {0}, [(weakref.ref(v), _sum_of(v)) for v in compared]))

    def before_load(self, module: nn.Module, state: Any) -> tuple[Kept | None, int]:
        """Asked before the values go in: afterwards nothing could be compared."""
        found: list[tuple[Kept | None, int]] = []
        self.session.guard(self, lambda: found.append((self.kept(state) or self._kept_views(module, state), self._itself(module, state))))
        return found[0] if found else (None, 0)

    def kept(self, state: Any) -> Kept | None:
        """The earlier ``state_dict()`` whose live tensors ``state`` holds, if any."""
        given = list(_tensors(state))
        identities = {id(value) for value in given}
        pointers = {_pointer(value) for value in given} - {0}
        best: tuple[int, _Snapshot] | None = None
        for snapshot in self._snapshots:
            if snapshot.step >= self.session.step or not pointers & snapshot.pointers:
                continue
            same = sum((value := ref()) is not None and id(value) in identities for ref in snapshot.values)
            if same and (best is None or same >= best[0]):
                best = same, snapshot
        if best is None or (best[0] * 2 < len(given) and best[0] * 2 < len(best[1].values)):
            return None
        return Kept(best[1].site, best[1].step, best[0], best[1].changed(), self._trained(best[1]))

    def _kept_views(self, module: nn.Module, state: Any) -> Kept | None:
        """The latest ``state_dict()`` of this very module where ``state`` holds other names of its own memory (``v.detach()``).

        Loading them copies each weight onto itself, so they were meant to be older ones. A state that was taken in this
        step is a fresh one.
        """
        given = list(_tensors(state))
        own = {_pointer(p) for p in module.parameters()} - {0}
        shared = sum(_pointer(value) in own for value in given if not isinstance(value, nn.Parameter))
        latest = next((s for s in reversed(self._snapshots) if s.model() is module), None)
        if latest is None or latest.step >= self.session.step or shared < len(own) or not shared:
            return None
        return Kept(latest.site, latest.step, shared, None, self._trained(latest))

    def _trained(self, snapshot: _Snapshot) -> bool:
        model = snapshot.model()
        if self.session.optimizers == 0:
            return model is not None and any(p.requires_grad for p in model.parameters())
        for id_, ref in self._stepped.items():
            optimizer = ref()
            if optimizer is not None and self.session.stepped.get(id_, 0) >= snapshot.step:
                if any(_pointer(p) in snapshot.pointers for group in optimizer.param_groups for p in group["params"]):
                    return True
        return False

    def _itself(self, module: nn.Module, state: Any) -> int:
        own = {_pointer(p) for p in module.parameters()} - {0}
        snapshot = next((s for s in reversed(self._snapshots) if s.model() is module), None)
        if snapshot is None or snapshot.changed():  # written to since: a hand-made copy into the state
            return 0
        return sum(_pointer(value) in own for value in _tensors(state))

    def loaded(self, module: nn.Module, state: Any, strict: bool, result: Any, before: tuple[Kept | None, int], site: Site | None) -> None:
        missing, unexpected = list(getattr(result, "missing_keys", ())), list(getattr(result, "unexpected_keys", ()))
        given = len(state) if isinstance(state, Mapping) else 0
        matched = given - len(unexpected)
        id_ = self.session.ids.of(module)
        self.session.event("load", site, id_, "model")
        self.session.emit(WeightsLoaded(
            step=self.session.step, model=id_, site=site, strict=strict, given=given, own=matched + len(missing), matched=matched,
            unexpected=tuple(map(str, unexpected[:SHOWN_NAMES])), missing=tuple(map(str, missing[:SHOWN_NAMES])),
            kept=before[0], from_file=sum(self._is_from_file(value) for value in _tensors(state)), itself=before[1]))

    def _is_from_file(self, value: Tensor) -> bool:
        ref = self._from_file.get(id(value))
        return ref is not None and ref() is value

    def saved(self, obj: Any, file: Any, site: Site | None) -> None:
        self.session.emit(FileSaved(step=self.session.step, key=f"save-{_path(file)}-{site and site.short}", path=_path(file), site=site,
                                    holds=contents(obj), kept=self.kept(obj)))

    def read(self, obj: Any, file: Any, site: Site | None) -> None:
        tensors = list(_tensors(obj))
        self._from_file = {id(value): weakref.ref(value) for value in tensors}
        holds = contents(obj)
        state = next((obj[key] for key, what in holds.items() if what == "optimizer" and key in obj), None)
        self.session.emit(FileRead(
            step=self.session.step, path=_path(file), site=site, tensors=len(tensors), holds=holds,
            reads=tuple(sorted(source.keys_read(site.file) & set(holds))) if site else (),
            stateful=bool(state is not None and state["state"])))

    def state_loaded(self, what: str, thing: Any, site: Site | None) -> None:
        id_ = self.session.ids.of(thing)
        self.session.event("load", site, id_, what)
        self.session.emit(StateLoaded(step=self.session.step, what=what, id=id_, site=site))


def _named(frame: FrameType, name: str) -> Any:
    """What a name stands for in a frame; ``x.name`` is looked for in every object that the frame names."""
    owner, _, short = name.rpartition(".")
    if not owner:
        return frame.f_locals.get(short)
    for thing in list(frame.f_locals.values()):
        held = getattr(thing, "__dict__", None) if not isinstance(thing, type) else None
        if isinstance(held, dict):
            value = held.get(short, (held.get("_modules") or {}).get(short))
            if isinstance(value, nn.Module):
                return value
    return None


def contents(obj: Any) -> dict[str, str]:
    """What the top-level keys of a saved object hold; a bare state dict is under the key ``""``."""
    if not isinstance(obj, Mapping):
        return {"": "model"} if isinstance(obj, nn.Module) else {}
    if what := _kind(obj):
        return {"": what}
    return {key: what for key, value in obj.items() if isinstance(key, str) and (what := _kind(value))}


def _kind(value: Any) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "count"
    if isinstance(value, nn.Module):
        return "model"
    if not isinstance(value, Mapping):
        return ""
    if "param_groups" in value and "state" in value:
        return "optimizer"
    if "last_epoch" in value or "num_bad_epochs" in value:
        return "scheduler"
    if "growth_factor" in value and "scale" in value:
        return "scaler"
    return "model" if value and all(isinstance(v, Tensor) for v in value.values()) else ""


def _tensors(obj: Any) -> Iterable[Tensor]:
    """Tensors in nested dicts and lists, at most ``FILE_TENSORS``; none of an optimizer's moments."""
    stack, count = [obj], 0
    while stack and count < FILE_TENSORS:
        item = stack.pop()
        if isinstance(item, Tensor):
            count += 1
            yield item
        elif isinstance(item, Mapping):
            if "param_groups" not in item:
                stack.extend(item.values())
        elif isinstance(item, (list, tuple)):
            stack.extend(item[:FILE_TENSORS])


def _pointer(value: Tensor) -> int:
    try:
        return value.data_ptr()
    except RuntimeError:  # meta, fake and sparse tensors have no memory of the kind
        return 0


def _sum_of(value: Tensor) -> float:
    return float(sample(value, 64).double().sum())


def _path(file: Any) -> str:
    if isinstance(file, (str, os.PathLike)):
        return os.path.abspath(os.fspath(file))
    return f"<{type(file).__name__}>"
