"""Whether numbers fit their format: loss scale over time, gradients that flush to zero, steps that overflow, clipping."""
from __future__ import annotations

import statistics
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from traindx.core.codec import encode
from traindx.core.observed import Site
from traindx.gauges import Watcher
from traindx.gauges.tools.steps import ScaleSeen, gradients, leaves_of, scaler_classes
from traindx.probes import patching, sites
from traindx.probes.tensors import tensors_in

FACTORS = tuple(2.0 ** k for k in (14, 10, 6, 3))
FLUSHED_FP16 = 2.0 ** -25  # half of the least positive fp16 number, 5.96e-8: what is not above it is rounded to 0
CHANGES = 200  # of the scale that are kept


@dataclass
class _Clip:
    """One line that clips."""

    function: str
    site: Site | None
    asked: float
    norms: list[float] = field(default_factory=list)
    acted: int = 0
    scaled: int = 0


class Measurement(Watcher):
    """Value: ``scaler``: null or {first, last, lowest, highest, changes [[step, scale]], steps, overflows}, where a step that overflowed
    was skipped; ``clip``: one entry a line {function, site, asked, calls, acted, seen (median norm before clipping), seen_max, scaled
    (calls on gradients that still carried the scale)}; ``flush``: one entry a step of the setting ``steps`` {step, half (fp16 in use),
    elements (that are not 0 in truth), flushed (share of them that came out as 0, known from the same backward ``factor``
    times larger), would_flush (share that fp16 would round to 0 without a scale), scale}.
    """

    settings: ClassVar[dict[str, Any]] = {"steps": [1, 10, 50]}

    def begin(self, stack: ExitStack) -> None:
        self._scale = ScaleSeen(stack)
        self._step = 1
        self._half = False
        self._clips: dict[tuple[str, int], _Clip] = {}
        self._flush: list[dict[str, Any]] = []
        self._scaler: dict[str, Any] | None = None
        self._stepped = self._carries = False
        for kind in scaler_classes():
            patching.replace(stack, kind, "step", self._noting_step)
            patching.replace(stack, kind, "unscale_", self._noting_unscale)
            patching.replace(stack, kind, "update", self._noting_update)
        for owner in (torch.nn.utils, torch.nn.utils.clip_grad):
            patching.replace(stack, owner, "clip_grad_norm_", self._noting_norm)
            patching.replace(stack, owner, "clip_grad_value_", self._noting_value)

    # -- the scaler --------------------------------------------------------------------------------------------------------

    def _noting_step(self, original: Any) -> Any:
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            self._stepped = False
            result = original(scaler, optimizer, *args, **kwargs)
            if scaler.is_enabled():
                self._note_scaled_step()
            return result
        return patching.dressed(step, original)

    def _note_scaled_step(self) -> None:
        told = self._scaler = self._scaler or {"first": None, "changes": [], "steps": 0, "overflows": 0}
        told["steps"] += 1
        told["overflows"] += not self._stepped
        self._carries = False

    def _noting_unscale(self, original: Any) -> Any:
        def unscale_(scaler: Any, optimizer: Any) -> Any:
            self._carries = False
            return original(scaler, optimizer)
        return patching.dressed(unscale_, original)

    def _noting_update(self, original: Any) -> Any:
        def update(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            before = float(scaler.get_scale())
            result = original(scaler, *args, **kwargs)
            if scaler.is_enabled() and self._scaler is not None:
                self._note_scale(before, float(scaler.get_scale()))
            return result
        return patching.dressed(update, original)

    def _note_scale(self, before: float, after: float) -> None:
        told = self._scaler
        if told is None:
            return
        if told["first"] is None:
            told |= {"first": before, "lowest": before, "highest": before}
        if after != before and len(told["changes"]) < CHANGES:
            told["changes"].append([told["steps"], after])
        told |= {"last": after, "lowest": min(told["lowest"], after), "highest": max(told["highest"], after)}

    # -- clipping ----------------------------------------------------------------------------------------------------------

    def _noting_norm(self, original: Any) -> Any:
        def clip_grad_norm_(parameters: Any, max_norm: Any, *args: Any, **kwargs: Any) -> Any:
            norm = original(parameters, max_norm, *args, **kwargs)
            self._note_clip("clip_grad_norm_", sites.here(2), float(max_norm), float(norm))
            return norm
        return patching.dressed(clip_grad_norm_, original)

    def _noting_value(self, original: Any) -> Any:
        def clip_grad_value_(parameters: Any, clip_value: Any, *args: Any, **kwargs: Any) -> Any:
            held = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            largest = max((float(p.grad.detach().abs().max()) for p in held if p.grad is not None and p.grad.numel()), default=0.0)
            result = original(held, clip_value, *args, **kwargs)
            self._note_clip("clip_grad_value_", sites.here(2), float(clip_value), largest)
            return result
        return patching.dressed(clip_grad_value_, original)

    def _note_clip(self, function: str, site: Site | None, asked: float, seen: float) -> None:
        clip = self._clips.setdefault((function, id(site)), _Clip(function, site, asked))
        clip.asked = asked
        clip.norms.append(seen)
        clip.acted += not seen <= asked  # NaN: it spreads
        clip.scaled += self._carries

    # -- gradients ---------------------------------------------------------------------------------------------------------

    def on_forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        self._half = self._half or any(t.dtype is torch.float16 for t in tensors_in(output))

    def on_loss(self, function: str, input: Tensor, target: Any, value: Tensor, kwargs: dict[str, Any], site: Site | None) -> None:
        self._half = self._half or input.dtype is torch.float16

    def on_backward(self, root: Tensor) -> None:
        scale = self._scale.take()
        self._carries = self._carries or scale != 1.0
        if self._step in self.asked["steps"] and all(told["step"] != self._step for told in self._flush):
            leaves = leaves_of(root)
            self._half = self._half or any(leaf.dtype is torch.float16 for leaf in leaves)
            found = flushed(root, leaves, scale) if leaves else None
            if found is not None:
                self._flush.append({"step": self._step, "half": self._half or found["flushed"] > 0, "scale": scale, **found})

    def before_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._stepped = True

    def after_step(self, optimizer: torch.optim.Optimizer, step: int) -> None:
        self._step = step + 1
        if step & (step - 1) == 0:
            self._report()

    def at_end(self) -> None:
        self._report()

    def _report(self) -> None:
        self.send({"scaler": self._scaler, "clip": [_told(clip) for clip in self._clips.values()], "flush": self._flush})


def _told(clip: _Clip) -> dict[str, Any]:
    return {"function": clip.function, "site": encode(clip.site), "asked": clip.asked, "calls": len(clip.norms), "acted": clip.acted,
            "seen": statistics.median(clip.norms), "seen_max": max(clip.norms), "scaled": clip.scaled}


def flushed(root: Tensor, leaves: list[Tensor], scale: float) -> dict[str, Any] | None:
    """Elements of the gradient that are 0, but not so when the same backward starts from a larger number. None where no larger
    one stays finite."""
    base = _flat(gradients(root, leaves))
    for factor in FACTORS:
        larger = _flat(gradients(root, leaves, factor=factor))
        if bool(torch.isfinite(larger).all()):
            true = larger != 0
            count = int(true.sum())
            tiny = (larger[true] / (factor * scale)).abs() <= FLUSHED_FP16
            return {"factor": factor, "elements": count, "flushed": float((base[true] == 0).sum()) / count if count else 0.0,
                    "would_flush": float(tiny.sum()) / count if count else 0.0}
    return None


def _flat(found: list[Tensor | None]) -> Tensor:
    return torch.cat([g.detach().cpu().double().flatten() for g in found if g is not None])
