"""Another precision: ``to`` = ``fp32`` (no autocast, no half weights, no scaler), ``bf16`` (instead of fp16, no scaler) or
``no_autocast`` (only that).
"""
from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from traindx.core.text import Text
from traindx.interventions.tools.base import Intervention
from traindx.interventions.tools.stage import Stage
from traindx.probes import patching

To = Literal["fp32", "bf16", "no_autocast"]
CHOICES: tuple[To, ...] = ("fp32", "bf16", "no_autocast")
HALVES = (torch.float16, torch.bfloat16)


class Precision(Intervention):
    """Conversions are met where they are asked for: ``half()``, ``bfloat16()``, ``to(...)``, ``type(...)``, the default
    dtype. A tensor that is made in half precision from the start (``torch.zeros(..., dtype=...)``) stays.
    """

    NOTHING = Text("The program runs in this precision already.", "程序本来就是这个精度。")

    def __init__(self, stage: Stage, to: To) -> None:
        super().__init__(stage)
        if to not in CHOICES:
            raise ValueError(f"to: one of {', '.join(CHOICES)}")
        self.to = to
        self.instead = torch.bfloat16 if to == "bf16" else torch.float32

    def install(self) -> None:
        patching.replace(self.stack, torch.autocast, "__init__", self._autocast)
        if self.to != "no_autocast":
            patching.replace(self.stack, torch.amp.GradScaler, "__init__", self._scaler)
            self._conversions()

    def _autocast(self, original: Any) -> Any:
        def __init__(cast: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None) -> None:
            default = dtype or torch.get_autocast_dtype(device_type)
            if self.to == "bf16":
                self.touched += enabled and default == torch.float16
                original(cast, device_type, torch.bfloat16 if enabled else dtype, enabled, cache_enabled)
            else:
                self.touched += enabled
                original(cast, device_type, dtype, False, cache_enabled)
        return patching.dressed(__init__, original)

    def _scaler(self, original: Any) -> Any:
        def __init__(scaler: Any, *args: Any, **kwargs: Any) -> None:
            original(scaler, *args, **kwargs)
            if scaler._enabled:
                self.touch()
                scaler._enabled = False
        return patching.dressed(__init__, original)

    def _conversions(self) -> None:
        for owner in (nn.Module, Tensor):
            for name in ("half", "bfloat16"):
                if self.to == "fp32" or name == "half":
                    patching.replace(self.stack, owner, name, self._renamed)
            for name in ("to", "type"):
                patching.replace(self.stack, owner, name, self._converted)
        patching.replace(self.stack, torch, "set_default_dtype", self._converted)

    def _asked(self, dtype: Any) -> bool:
        return isinstance(dtype, torch.dtype) and (dtype == torch.float16 if self.to == "bf16" else dtype in HALVES)

    def _renamed(self, original: Any) -> Any:
        def convert(thing: Any, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or self.stage.busy:
                return original(thing, *args, **kwargs)
            self.touch()
            return thing.to(self.instead)
        return patching.dressed(convert, original)

    def _converted(self, original: Any) -> Any:
        def convert(*args: Any, **kwargs: Any) -> Any:
            values = [*args, *kwargs.values()]
            if torch.compiler.is_compiling() or self.stage.busy or not any(self._asked(value) for value in values):
                return original(*args, **kwargs)
            self.touch()
            args = tuple(self.instead if self._asked(value) else value for value in args)
            return original(*args, **{key: self.instead if self._asked(value) else value for key, value in kwargs.items()})
        return patching.dressed(convert, original)
