"""Where a training stands at its beginning and after each checkpoint: what a resumed run must find again. And how it is resumed."""
from __future__ import annotations

import argparse
import hashlib
import random
import sys
import weakref
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler

from traindx.gauges import Watcher
from traindx.gauges.tools.saving import on_load, on_save
from traindx.gauges.tools.steps import scaler_classes
from traindx.interventions.tools import generators
from traindx.interventions.tools.rows import digest
from traindx.probes import patching

POINTS = 24  # that are described
OPTIONS = 200
PLACE = ("last_epoch", "best", "num_bad_epochs", "cooldown_counter", "_last_lr")  # of a scheduler: where it stands
SEEDING = (("torch", "manual_seed"), ("random", "seed"), ("numpy.random", "seed"))
PUTTING_BACK = {"torch": "set_rng_state", "torch.random": "set_rng_state", "torch.cuda": "set_rng_state", "random": "setstate",
                "numpy.random": "set_state"}
NAMES = {"random": "python", "numpy.random": "numpy", "torch.random": "torch", "torch.cuda": "cuda"}


class Measurement(Watcher):
    """Value: ``points``, each {step (done before it), models: {class: digest of parameters and buffers}, optimizers: [{class,
    moments (digest, or None where there are none yet), lr}], schedulers: [{class, name: value}], scaler, rng: {torch, numpy,
    python: digest}, generators (of the program's own), batch (which of its loader's epoch, from 1)}; ``reads``: files that
    ``torch.load`` read before the first step; ``put_back``: generators whose state was set before it; ``reseeds``: whether global
    generators are seeded after it;
    ``options``: those of the program's argparse parsers, {names, takes: flag | value | truth, dest}.
    """

    def begin(self, stack: ExitStack) -> None:
        self._step = 0
        self._open: dict[str, Any] | None = {"step": 0}
        self._points: list[dict[str, Any]] = []
        self._reads: list[str] = []
        self._options: list[dict[str, Any]] = []
        self._reseeds = False
        self._put_back: set[str] = set()
        self._schedulers: list[weakref.ref[Any]] = []
        self._scaler: weakref.ref[Any] | None = None
        self._iterator: weakref.ref[Any] | None = None
        self._batch = 0
        on_save(stack, lambda *_: self._saved())
        on_load(stack, self._read)
        patching.replace(stack, argparse.ArgumentParser, "parse_known_args", self._noting_options)
        for kind in (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau):
            patching.replace(stack, kind, "__init__", self._noting_scheduler)
        for kind in scaler_classes():
            patching.replace(stack, kind, "scale", self._noting_scaler)
        for owner, name in SEEDING:
            if owner in sys.modules:
                patching.replace(stack, sys.modules[owner], name, self._noting_seed)
        for owner, name in PUTTING_BACK.items():
            if owner in sys.modules:
                patching.replace(stack, sys.modules[owner], name, partial(self._noting_put_back, NAMES.get(owner, owner)))

    # -- what the program tells by itself ---------------------------------------------------------------------------------

    def _saved(self) -> None:
        if self._open is None and len(self._points) < POINTS:
            self._open = {"step": self._step}

    def _read(self, path: str | None) -> None:
        if not self._step and not self.resting():
            self._reads.append(path or "")

    def _noting_options(self, original: Any) -> Any:
        def parse_known_args(parser: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                self._options += [option for action in parser._actions if (option := _option(action))]
                del self._options[OPTIONS:]
            except Exception:
                pass  # somebody's own kind of parser
            return original(parser, *args, **kwargs)
        return patching.dressed(parse_known_args, original)

    def _noting_scheduler(self, original: Any) -> Any:
        def __init__(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            original(scheduler, *args, **kwargs)
            if all(ref() is not scheduler for ref in self._schedulers):
                self._schedulers.append(weakref.ref(scheduler))
        return patching.dressed(__init__, original)

    def _noting_scaler(self, original: Any) -> Any:
        def scale(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            self._scaler = weakref.ref(scaler)
            return original(scaler, *args, **kwargs)
        return patching.dressed(scale, original)

    def _noting_seed(self, original: Any) -> Any:
        def seed(*args: Any, **kwargs: Any) -> Any:
            self._reseeds |= self._step > 0 and not self.resting()
            return original(*args, **kwargs)
        return patching.dressed(seed, original)

    def _noting_put_back(self, name: str, original: Any) -> Any:
        def put_back(*args: Any, **kwargs: Any) -> Any:
            if not self._step and not self.resting():
                self._put_back.add(name)
            return original(*args, **kwargs)
        return patching.dressed(put_back, original)

    # -- points -----------------------------------------------------------------------------------------------------------

    def on_batch(self, loader: Any, iterator: Any) -> None:
        if not torch.is_grad_enabled():
            return
        if self._iterator is None or self._iterator() is not iterator:
            self._iterator, self._batch = weakref.ref(iterator), 0
        self._batch += 1

    def before_forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        point = self._begun()
        name = type(module).__name__
        if point is not None and name not in point["models"]:
            point["models"][name] = _digest(module.state_dict())

    def on_backward(self, root: Tensor) -> None:
        self._begun()

    def _begun(self) -> dict[str, Any] | None:
        """The open point, with what must be known before anything of the step is done."""
        if self._open is not None and "rng" not in self._open:
            self._open |= {"models": {}, "rng": _shared(), "generators": sorted(_own()), "batch": self._batch}
        return self._open

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        point = self._begun()
        if point is not None:
            point.setdefault("optimizers", []).append(_optimizer(optimizer))
            point["schedulers"] = [_scheduler(known) for ref in self._schedulers if (known := ref()) is not None]
            scaler = self._scaler() if self._scaler is not None else None
            point["scaler"] = _scaler(scaler) if scaler is not None and scaler.is_enabled() else None

    def after_step(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        self._step = step
        if self._open is not None and self._open["step"] < step:
            self._points.append(self._open)
            self._open = None
            self._say()

    def at_end(self) -> None:
        self._say()

    def _say(self) -> None:
        self.send({"points": self._points, "reads": self._reads, "reseeds": self._reseeds, "put_back": sorted(self._put_back),
                   "options": self._options})


def _digest(values: Any) -> str:
    """Of nested tensors and plain values, in their order."""
    words = hashlib.blake2b(digest_size=8)

    def take(value: Any) -> None:
        if isinstance(value, Tensor):
            words.update(digest(value).encode())
        elif isinstance(value, dict):
            for name, item in value.items():
                words.update(str(name).encode())
                take(item)
        elif isinstance(value, (list, tuple)):
            for item in value:
                take(item)
        else:
            words.update(repr(value).encode() if isinstance(value, (int, float, str, bool, type(None))) else type(value).__name__.encode())
    take(values)
    return words.hexdigest()


def _optimizer(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """By the order of its parameters: their state has no names."""
    states = [optimizer.state.get(p) or {} for group in optimizer.param_groups for p in group["params"]]
    filled = any(value is not None for state in states for value in state.values())  # SGD keeps None without momentum
    return {"class": type(optimizer).__name__, "moments": _digest(states) if filled else None,
            "lr": [float(group["lr"]) for group in optimizer.param_groups if group.get("lr") is not None]}


def _scheduler(scheduler: Any) -> dict[str, Any]:
    state = vars(scheduler)
    return {"class": type(scheduler).__name__} | {name: _plain(state[name]) for name in PLACE if name in state}


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return float(value) if isinstance(value, Tensor) else value


def _scaler(scaler: Any) -> dict[str, Any]:
    return {"scale": float(scaler.get_scale()), "growth_tracker": int(scaler._get_growth_tracker())}


def _shared() -> dict[str, str]:
    names = {id(random): "python", id(torch): "torch", id(torch.cuda): "cuda"}
    return {names.get(id(where), "numpy"): _digest(state if not isinstance(state, tuple) else [_arrays(item) for item in state])
            for where, state in generators.shared()}


def _own() -> list[str]:
    shared = len(generators.shared())
    return [_digest(_arrays(state)) for _, state in generators.snapshot()[shared:]]


def _arrays(value: Any) -> Any:
    """numpy's as lists."""
    if isinstance(value, dict):
        return {name: _arrays(item) for name, item in value.items()}
    return value.tolist() if hasattr(value, "tolist") and not isinstance(value, Tensor) else value


def _option(action: Any) -> dict[str, Any] | None:
    if not action.option_strings:
        return None
    kind = getattr(action.type, "__name__", "")
    takes = "flag" if action.nargs == 0 else "truth" if "bool" in kind.lower() else "value" if action.type is not int else "number"
    return {"names": list(action.option_strings), "dest": str(action.dest), "takes": takes}
