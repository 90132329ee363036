"""The program's clipping with the GradScaler's factor taken off first: its limit is meant for gradients as they are."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Clip, Stage
from traindx.probes import patching


class UnscaleBeforeClip(Intervention):
    """Clips at the limit times the scale, which is the same as clipping unscaled gradients at the limit."""

    NOTHING = Text("No scaled gradient was clipped.", "没有裁剪过带缩放的梯度。")

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._scale: float | None = None  # of the gradients as they are now

    def install(self) -> None:
        patching.replace(self.stack, torch.amp.GradScaler, "scale", self._scaled)
        for name in ("unscale_", "update"):
            patching.replace(self.stack, torch.amp.GradScaler, name, self._unscaled)

    def _scaled(self, original: Any) -> Any:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            self._scale = float(scaler.get_scale()) if scaler.is_enabled() else None
            return result
        return patching.dressed(scale, original)

    def _unscaled(self, original: Any) -> Any:
        def method(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            self._scale = None
            return original(scaler, *args, **kwargs)
        return patching.dressed(method, original)

    def on_clip(self, clip: Clip) -> Any:
        if not self._scale or not isinstance(clip.limit, (int, float)):
            return None
        self.touch()
        result = clip(clip.limit * self._scale)
        return result / self._scale if isinstance(result, Tensor) else result
