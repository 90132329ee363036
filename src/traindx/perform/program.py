"""What kind of program this is, as far as its steps told: the fact ``program``."""
from __future__ import annotations

import sys
import weakref
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.optim import Optimizer

from traindx.interventions.tools import generators
from traindx.interventions.tools.stage import Backward, Clip, LossCall, Part, RootCall, Stage
from traindx.perform.randomness import Reseeded
from traindx.perform.tracer import Tracer

FRAMEWORKS = ("lightning", "pytorch_lightning", "transformers", "accelerate", "fastai", "ignite")
WATCHED = 12  # steps over which the making of batches is watched
NOISE_WATCHED = 3  # steps
SAID_AT = (1, 3, WATCHED)


class ProgramSeen(Part):
    """Collects while the steps go by. The fact is sent after steps 1, 3 and 12, and at the end."""

    def __init__(self, stage: Stage, tracer: Tracer, seeds: Reseeded) -> None:
        self.stage, self.tracer, self.seeds = stage, tracer, seeds
        self._roots: weakref.WeakKeyDictionary[nn.Module, int] = weakref.WeakKeyDictionary()
        self._root_names: dict[str, int] = {}
        self._optimizers: dict[int, tuple[weakref.ref[Optimizer], dict[str, Any]]] = {}
        self._losses: dict[tuple[str, str], int] = {}
        self._flags = {"dropout": False, "batchnorm": False, "scaler": False, "loader": False, "scheduler": False,
                       "noise": False}  # drawn between the first forward of a step and its backward
        self._autocast: str | None = None
        self._clip: dict[str, Any] | None = None
        self._hashes: set[tuple[str, str]] = set()
        self._drawing: list[set[str]] = []  # what was drawn from before the first forward of each step
        self._state: list[tuple[Any, Any]] | None = None
        self._inside: list[tuple[Any, Any]] | None = None
        self._backwards: list[int] = []
        self._count = 0
        self._batches = 0

    def on_root_call(self, call: RootCall) -> None:
        if self._state is not None and call.grad:
            self._drawing.append(generators.moved(self._state, generators.snapshot()))
            self._state = None
        if call.grad and self._inside is None and self.stage.steps < NOISE_WATCHED:
            self._inside = generators.snapshot()
        if not call.has_parameters or call.module in self._roots:
            return
        size = sum(p.numel() for p in call.module.parameters() if not isinstance(p, nn.UninitializedParameter))
        self._roots[call.module] = size
        self._root_names[type(call.module).__name__] = size
        for module in call.module.modules():
            self._flags["dropout"] |= isinstance(module, _DropoutNd) and module.p > 0
            self._flags["batchnorm"] |= isinstance(module, _BatchNorm)

    def on_loss_call(self, call: LossCall) -> None:
        if call.grad and (len(self._losses) < 32 or (call.function, _where(call)) in self._losses):
            key = (call.function, _where(call))
            self._losses[key] = self._losses.get(key, 0) + 1

    def before_backward(self, run: Backward) -> None:
        self._flags["scaler"] |= self.stage.scale is not None
        if self._inside is not None:
            self._flags["noise"] |= bool(generators.moved(self._inside, generators.snapshot()))
            self._inside = None

    def on_root_return(self, call: RootCall) -> None:
        if self._autocast is None and call.grad:
            for device in ("cpu", "cuda"):
                if torch.is_autocast_enabled(device):
                    self._autocast = str(torch.get_autocast_dtype(device)).removeprefix("torch.")

    def after_backward(self, run: Backward) -> None:
        self._count += run.trains

    def before_step(self, optimizer: Optimizer) -> None:
        if id(optimizer) not in self._optimizers:
            self._optimizers[id(optimizer)] = weakref.ref(optimizer), _described(optimizer)

    def on_batch(self, loader: Any, iterator: Any, batch: Any) -> Any:
        self._flags["loader"] |= torch.is_grad_enabled()
        return batch

    def on_clip(self, clip: Clip) -> None:
        if self._clip is None:
            self._clip = {"function": clip.function, "limit": clip.limit if isinstance(clip.limit, (int, float)) else None,
                          "where": clip.site.short if clip.site else ""}

    def let_schedule(self, scheduler: Any) -> bool:
        self._flags["scheduler"] = True
        return True

    def on_tick(self, step: int) -> None:
        if step <= WATCHED:
            self._backwards.append(self._count)
            self._state = generators.snapshot()
        self._count = 0
        if step in SAID_AT:
            self._say()

    def at_end(self) -> None:
        self._say()

    def _say(self) -> None:
        self.stage.send({"fact": ["program", self.fact()]})

    def fact(self) -> dict[str, Any]:
        """JSON values only."""
        largest = max(self._root_names, key=lambda name: self._root_names[name], default=None)
        return {
            "root": largest, "parameters": self._root_names[largest] if largest else None, "roots": self._root_names,
            "optimizers": [described for _, described in self._optimizers.values()],
            "losses": [{"function": name, "where": where, "calls": calls} for (name, where), calls in self._losses.items()],
            "batch": self._batch(), "draws": sorted(set().union(*self._drawing)) if self._drawing else [],
            "backwards_per_step": max(self._backwards, default=None), "seeded": sorted(self.seeds.where),
            "frameworks": [name for name in FRAMEWORKS if _used(name)],
            "autocast": self._autocast, "clipping": self._clip, **self._flags,
            "steps_per_validation": self.stage.steps // self.tracer.validations if self.tracer.validations else None}

    def _batch(self) -> str:
        """``constant``, ``loader``, ``draws`` (anew in each step), ``permutation`` (once an epoch), ``stream``, ``unknown``."""
        if len(self.tracer.batches) == 1 and self.stage.steps > 2:
            return "constant"
        if self._flags["loader"]:
            return "loader"
        drawn = [bool(names) for names in self._drawing]
        if len(drawn) < 2:
            return "unknown"
        return "draws" if all(drawn) else "permutation" if any(drawn) else "stream"


def _where(call: LossCall) -> str:
    return call.site.short if call.site else ""


def _described(optimizer: Optimizer) -> dict[str, Any]:
    group = optimizer.param_groups[0]
    momentum = group.get("momentum", (group.get("betas") or [None])[0])
    return {"class": type(optimizer).__name__, "groups": len(optimizer.param_groups), "lr": _float(group.get("lr")),
            "weight_decay": _float(group.get("weight_decay")), "momentum": _float(momentum)}


def _float(value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        return None


def _used(name: str) -> bool:
    """Imported by the program itself, not only by the server before it."""
    main = sys.modules.get("__main__")
    owners = {str(getattr(value, "__module__", None) or getattr(value, "__name__", "")).split(".")[0]
              for value in list(vars(main).values())} if main else set()
    bases = {base.__module__.split(".")[0] for value in list(vars(main).values()) if isinstance(value, type)
             for base in value.__mro__} if main else set()
    return name in owners | bases
