"""What the program's checkpoints hold, and what it would need besides to go on as if it had never stopped."""
from __future__ import annotations

import os
import random
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler

from traindx.core.codec import encode
from traindx.core.text import Text
from traindx.gauges import Watcher
from traindx.gauges.tools.steps import scaler_classes
from traindx.probes import patching, sites

DEPTH = 4
SAVES = 20  # that are described
COUNTERS = ("epoch", "step", "iter")
NO_SAVE = Text("The program wrote no checkpoint with torch.save in the steps that ran.", "在运行的这些步里，程序没有用 torch.save 写检查点。")


class Measurement(Watcher):
    """Value: ``saves``, each {step, file, site, holds: [{what, at, ...}]} with ``what`` one of module {class, complete, live (the
    weights as they are now, not those of an average or of an earlier step)}, optimizer {groups, moments}, scheduler, scaler, rng
    {of}, counter; and, for all files written at the last step that wrote one, ``missing``: which of module, optimizer, scheduler,
    scaler, rng, counter the program uses and did not write. Files of other writers (safetensors) are not seen.
    """

    def begin(self, stack: ExitStack) -> None:
        self._step = 0
        self._modules: list[weakref.ref[nn.Module]] = []
        self._uses = {"module", "rng", "counter"}
        self._saves: list[dict[str, Any]] = []
        patching.replace(stack, torch, "save", self._noting_save)
        for kind in (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau):
            patching.replace(stack, kind, "__init__", lambda original: self._noting_use(original, "scheduler"))
        for kind in scaler_classes():
            patching.replace(stack, kind, "step", lambda original: self._noting_use(original, "scaler"))

    def _noting_use(self, original: Any, what: str) -> Any:
        def used(thing: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(thing, *args, **kwargs)
            if what != "scaler" or thing.is_enabled():
                self._uses.add(what)
            return result
        return patching.dressed(used, original)

    def _noting_save(self, original: Any) -> Any:
        def save(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(obj, f, *args, **kwargs)
            try:
                self._note(obj, f)
            except Exception as problem:
                self.not_measured(Text(f"{type(problem).__name__}: {problem}", f"{type(problem).__name__}: {problem}"))
            return result
        return patching.dressed(save, original)

    def _note(self, saved: Any, file: Any) -> None:
        if self.done or len(self._saves) >= SAVES:
            return
        modules = [module for ref in self._modules if (module := ref()) is not None]
        name = os.path.basename(os.fspath(file)) if isinstance(file, (str, os.PathLike)) else str(getattr(file, "name", ""))
        self._saves.append({"step": self._step, "file": os.path.basename(name), "site": encode(sites.here(2)),
                            "holds": list(found_in(saved, modules))})
        self.send({"saves": self._saves, "missing": self._missing()})

    def _missing(self) -> list[str]:
        last = self._saves[-1]["step"]
        held = {part["what"] for save in self._saves if save["step"] == last for part in save["holds"]}
        return sorted(self._uses - held)

    def before_forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if len(self._modules) < 16 and all(ref() is not module for ref in self._modules):
            self._modules.append(weakref.ref(module))

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._uses.add("optimizer")

    def after_step(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        self._step = step

    def at_end(self) -> None:
        if not self._saves:
            self.not_measured(NO_SAVE)


def found_in(saved: Any, modules: list[nn.Module], at: str = "", depth: int = 0) -> Iterator[dict[str, Any]]:
    """What is recognised in a saved object, with its path in it ("" for the whole)."""
    known = recognised(saved, modules, at.rsplit(".", 1)[-1])
    if known is not None:
        yield {**known, "at": at}
    elif depth < DEPTH and isinstance(saved, (dict, list, tuple)):
        items: Any = saved.items() if isinstance(saved, dict) else enumerate(saved)
        for key, value in items:
            yield from found_in(value, modules, f"{at}.{key}".lstrip("."), depth + 1)


def recognised(saved: Any, modules: list[nn.Module], name: str) -> dict[str, Any] | None:
    if isinstance(saved, nn.Module):
        return {"what": "module", "class": type(saved).__name__, "complete": True, "live": True}
    if isinstance(saved, torch.optim.Optimizer):
        return {"what": "optimizer", "groups": len(saved.param_groups), "moments": bool(saved.state)}
    if isinstance(saved, dict):
        return _of_dict(saved, modules)
    if isinstance(saved, int) and not isinstance(saved, bool) and any(word in name.lower() for word in COUNTERS):
        return {"what": "counter", "value": saved}
    of = _rng(saved)
    return {"what": "rng", "of": of} if of else None


def _of_dict(saved: dict[Any, Any], modules: list[nn.Module]) -> dict[str, Any] | None:
    if {"state", "param_groups"} <= set(saved):
        return {"what": "optimizer", "groups": len(saved["param_groups"]), "moments": bool(saved["state"])}
    if {"scale", "growth_factor", "_growth_tracker"} <= set(saved):
        return {"what": "scaler"}
    if "last_epoch" in saved and ("_step_count" in saved or "best" in saved):
        return {"what": "scheduler"}
    if "bit_generator" in saved:
        return {"what": "rng", "of": "numpy"}
    if saved and all(isinstance(value, Tensor) for value in saved.values()):
        return _weights(saved, modules)
    return None


def _weights(saved: dict[Any, Tensor], modules: list[nn.Module]) -> dict[str, Any] | None:
    """Tensors under the names of a module that ran; a part of it, or it as a part (``module.`` before every name), counts, too."""
    best: dict[str, Any] | None = None
    for root in modules:
        for path, module in root.named_modules():
            own = module.state_dict()
            names = {str(key).removeprefix("module.").removeprefix("_orig_mod."): value for key, value in saved.items()}
            shared = [key for key, value in names.items() if key in own and own[key].shape == value.shape]
            if len(shared) == len(names) and (best is None or not best["complete"]):
                live = all(torch.equal(names[key].to(own[key]), own[key]) for key in shared)
                best = {"what": "module", "class": type(module).__name__, "part": path or None,
                        "complete": not path and len(shared) == len(own), "live": live}
    return best


def _rng(saved: Any) -> str:
    """Which generator's state this is, by its form."""
    if isinstance(saved, Tensor):
        return "torch" if saved.dtype is torch.uint8 and saved.numel() == torch.get_rng_state().numel() else ""
    if not isinstance(saved, tuple) or not saved:
        return ""
    if saved[0] == random.getstate()[0] and len(saved) == 3 and isinstance(saved[1], tuple) and len(saved[1]) > 600:
        return "python"
    return "numpy" if saved[0] == "MT19937" else ""
