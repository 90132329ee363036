"""The program as it would run on this CPU: what it asks of a GPU, of other processes and of the compiler is done without."""
from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.data import DataLoader

from traindx.probes import patching

_QUIET = ("synchronize", "empty_cache", "reset_peak_memory_stats", "reset_max_memory_allocated", "manual_seed", "manual_seed_all",
          "set_device", "memory_summary", "ipc_collect")
_ZERO = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "current_device")


class OnCpu(TorchFunctionMode):  # type: ignore[misc]
    """Every device that is asked for is the CPU. ``asked`` tells whether another was."""

    asked = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if "device" in kwargs:
            kwargs["device"] = self.here(kwargs["device"])
        if func in (Tensor.cuda, Tensor.xpu):
            self.asked = True
            return args[0]
        if func is Tensor.to:
            args = (args[0], *(self.here(a) for a in args[1:]))
        return func(*args, **kwargs)

    def here(self, device: Any) -> Any:
        """``device``, or the CPU for another one; what is no device comes back as it is."""
        name = str(device) if isinstance(device, (str, torch.device)) else ""
        away = name.split(":")[0] in ("cuda", "xpu", "mps") or (isinstance(device, int) and not isinstance(device, bool))
        self.asked = self.asked or away
        return torch.device("cpu") if away else device


def install(stack: ExitStack) -> OnCpu:
    """Puts it all on; the mode tells afterwards whether the program asked for another device."""
    mode = OnCpu()
    if not torch.cuda.is_available():
        _devices(stack, mode)
    _compiling(stack)
    _loaders(stack)
    _saving(stack)
    return mode


def _devices(stack: ExitStack, mode: OnCpu) -> None:
    def stay(original: Any) -> Any:
        def cuda(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
            mode.asked = True
            return module
        return patching.dressed(cuda, original)

    def moved(original: Any) -> Any:
        def to(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
            if "device" in kwargs:
                kwargs["device"] = mode.here(kwargs["device"])
            return original(module, *map(mode.here, args), **kwargs)  # type: ignore[no-any-return]
        return patching.dressed(to, original)

    def autocast(original: Any) -> Any:
        def __init__(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
            away = device_type != "cpu"
            if away and not args and kwargs.get("dtype") is None:
                kwargs["dtype"] = torch.float16
            original(self, "cpu" if away else device_type, *args, **kwargs)
        return patching.dressed(__init__, original)
    patching.replace(stack, nn.Module, "cuda", stay)
    patching.replace(stack, nn.Module, "to", moved)
    patching.replace(stack, torch.autocast, "__init__", autocast)
    for name in _QUIET:
        patching.replace(stack, torch.cuda, name, lambda original: lambda *args, **kwargs: None)
    for name in _ZERO:
        patching.replace(stack, torch.cuda, name, lambda original: lambda *args, **kwargs: 0)
    stack.enter_context(mode)


def _compiling(stack: ExitStack) -> None:
    """Compiled code plans its own memory; what is counted is the program as written."""
    def plain(original: Any) -> Any:
        return lambda model=None, **kwargs: (lambda function: function) if model is None else model
    patching.replace(stack, torch, "compile", plain)
    patching.replace(stack, nn.Module, "compile", lambda original: lambda module, *args, **kwargs: None)


def _loaders(stack: ExitStack) -> None:
    """Batches are made in this process."""
    def alone(original: Any) -> Any:
        def __init__(loader: Any, *args: Any, **kwargs: Any) -> None:
            args = (*args[:5], 0, *args[6:]) if len(args) > 5 else args
            for name in ("prefetch_factor", "multiprocessing_context", "timeout"):
                kwargs.pop(name, None)
            original(loader, *args, **{**kwargs, **({} if len(args) > 5 else {"num_workers": 0}), "persistent_workers": False})
        return patching.dressed(__init__, original)
    patching.replace(stack, DataLoader, "__init__", alone)


def _saving(stack: ExitStack) -> None:
    """Weights without data are not written."""
    patching.replace(stack, torch, "save", lambda original: lambda *args, **kwargs: None)
