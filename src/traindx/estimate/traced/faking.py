"""Which operations run without data: all that touch a parameter. The program's data stay real, and so do decisions made on them."""
from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from traindx.core.observed import Site
from traindx.estimate.traced.workspaces import CannotFake
from traindx.probes import patching, sites

LARGE = 1 << 26  # bytes of a tensor made from nothing, above which it gets no data either
_MADE = ("empty", "zeros", "ones", "full", "rand", "randn", "randint", "empty_strided", "normal", "uniform")
_JUDGING = ("eq", "ne", "lt", "le", "gt", "ge", "abs", "mul", "logical_not", "logical_and", "logical_or", "bitwise_and", "bitwise_or",
            "bitwise_not", "any", "all", "isnan", "isinf", "_to_copy", "detach", "alias", "clone")


class Faker:
    """Runs an operation for real where all it touches is real, else on shapes alone.

    A value that the program reads off a tensor without data (``loss.item()``) is a stand-in: 1.0, 0, or what a comparison says of those.
    ``reads`` are the lines that did.
    """

    def __init__(self, for_cpu: bool = True) -> None:
        self.for_cpu = for_cpu
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.reads: dict[Site | None, int] = {}
        self._stand_ins: dict[int, tuple[weakref.ref[Any], Any]] = {}

    def install(self, stack: ExitStack) -> None:
        """Parameters and buffers lose their data as they are made."""
        patching.replace(stack, nn.Parameter, "__new__", self._parameter)
        patching.replace(stack, nn.Module, "register_buffer", self._buffer)
        patching.replace(stack, nn.Module, "_apply", self._apply)
        patching.replace(stack, torch.Tensor, "numpy", self._numpy)
        patching.replace(stack, torch.Tensor, "__format__", _formatted)
        if self.for_cpu:
            patching.replace(stack, nn.LSTM, "forward", _with_workspace)

    def run(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = func.overloadpacket.__name__
        fakes = [value for value in _values(args, kwargs) if isinstance(value, FakeTensor)]
        if name == "_local_scalar_dense" and fakes:
            return self._read(fakes[0])
        if not fakes and not _large(func, name, args, kwargs):
            return func(*args, **kwargs)
        with self.mode:
            out = func(*args, **kwargs)
        if name in _JUDGING and isinstance(out, Tensor):
            self._judge(func, args, out)
        return out

    # -- values that are not there ------------------------------------------------------------------------------------

    def _read(self, tensor: Tensor) -> Any:
        site = sites.here(3)
        self.reads[site] = self.reads.get(site, 0) + 1
        value = self.stand_in(tensor)
        return bool(value) if tensor.dtype is torch.bool else float(value) if tensor.dtype.is_floating_point else int(value)

    def stand_in(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        if not isinstance(value, FakeTensor):
            return value.reshape(-1)[0].item() if value.numel() else 1
        entry = self._stand_ins.get(id(value))
        if entry is not None and entry[0]() is value:
            return entry[1]
        return 1.0 if value.dtype.is_floating_point else 0

    def _judge(self, func: Any, args: Any, out: Tensor) -> None:
        """The same operation on the stand-ins: ``isnan(loss).any()`` must not say yes."""
        scalars = [torch.tensor(self.stand_in(a), dtype=a.dtype) if isinstance(a, Tensor) else a for a in args[:2]]
        operation = getattr(torch, func.overloadpacket.__name__, None)
        try:
            value = operation(*[s for s in scalars if isinstance(s, (Tensor, int, float))]).item() if operation else scalars[0].item()
        except Exception:
            return
        key = id(out)
        self._stand_ins[key] = (weakref.ref(out, lambda _: self._stand_ins.pop(key, None)), value)

    # -- what loses its data ------------------------------------------------------------------------------------------

    def without_data(self, tensor: Any) -> Any:
        if isinstance(tensor, Tensor) and type(tensor) in (Tensor, nn.Parameter) and tensor.device.type == "cpu" and not tensor.is_sparse:
            return self.mode.from_tensor(tensor)
        return tensor

    def _parameter(self, original: Any) -> Any:
        new = original.__func__ if isinstance(original, staticmethod) else original

        def __new__(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
            return new(cls, torch.empty(0) if data is None else self.without_data(data), requires_grad)
        return staticmethod(__new__)

    def _buffer(self, original: Any) -> Any:
        def register_buffer(module: nn.Module, name: str, tensor: Any, *args: Any, **kwargs: Any) -> None:
            original(module, name, self.without_data(tensor), *args, **kwargs)
        return patching.dressed(register_buffer, original)

    def _apply(self, original: Any) -> Any:
        """``to``, ``half``, ``float``: parameters stay the same objects, which torch's own way for tensors without data does not manage."""
        def _apply(module: nn.Module, fn: Callable[[Any], Any], recurse: bool = True) -> nn.Module:
            if not any(isinstance(p, FakeTensor) for p in module._parameters.values()):
                return original(module, fn, recurse)  # type: ignore[no-any-return]
            for child in module.children() if recurse else ():
                child._apply(fn)
            for tensor in (*module._parameters.values(), *(p.grad for p in module._parameters.values() if p is not None)):
                if tensor is not None:
                    with torch.no_grad():
                        tensor.data = fn(tensor)
            for name, tensor in module._buffers.items():
                module._buffers[name] = None if tensor is None else fn(tensor)
            return module
        return patching.dressed(_apply, original)

    def _numpy(self, original: Callable[..., Any]) -> Any:
        def numpy(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            if not isinstance(tensor, FakeTensor):
                return original(tensor, *args, **kwargs)
            site = sites.here(2)
            self.reads[site] = self.reads.get(site, 0) + 1
            dtype = torch.float32 if tensor.dtype is torch.bfloat16 else tensor.dtype
            with torch._C._DisableTorchDispatch():
                return original(torch.full(tuple(tensor.shape), self.stand_in(tensor), dtype=dtype))
        return numpy


def _formatted(original: Any) -> Any:
    def __format__(tensor: Tensor, specification: str) -> str:
        if isinstance(tensor, FakeTensor) and tensor.dim() == 0:
            return format(tensor.item(), specification)
        return str(original(tensor, specification))
    return patching.dressed(__format__, original)


def _with_workspace(original: Any) -> Any:
    def forward(module: nn.LSTM, *args: Any, **kwargs: Any) -> Any:
        raise CannotFake("the CPU's LSTM kernel keeps a workspace for backward whose size only the kernel knows")
    return patching.dressed(forward, original)


def _values(args: Any, kwargs: Any) -> Any:
    for value in (*args, *kwargs.values()):
        if isinstance(value, (tuple, list)):
            yield from value
        else:
            yield value


def _large(func: Any, name: str, args: Any, kwargs: Any) -> bool:
    """Whether a tensor made from nothing is too large to hold."""
    if name not in _MADE:
        return False
    size = next((a for a in (*args, kwargs.get("size")) if isinstance(a, (tuple, list)) and a), ())
    if not all(isinstance(n, int) for n in size):
        return False
    dtype = kwargs.get("dtype")
    return math.prod(size) * (dtype.itemsize if isinstance(dtype, torch.dtype) else 4) > LARGE
