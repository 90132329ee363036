"""Every operation of a stretch of the program, with the module and the user's line that asked for it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from traindx.core.observed import Site
from traindx.probes import sites
from traindx.probes.ops import NOT_OPS
from traindx.probes.tensors import tensors_in

# (name, site, the tensors that went in, those that came out)
Seen = Callable[[str, Site | None, list[Tensor], list[Tensor]], None]


def seen_by_modes() -> Any:
    """A context in which function modes see what runs, also where a tracer has them pass over its own work."""
    return torch._C._EnableTorchFunction()


class Ops(TorchFunctionMode):  # type: ignore[misc]  # torch does not type its base
    """Calls ``seen`` after every operation while ``on``."""

    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self.seen, self.on = seen, True

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if not self.on or name in NOT_OPS or torch.compiler.is_compiling():
            return func(*args, **kwargs)
        given = list(tensors_in((args, list(kwargs.values())), 12))
        output = func(*args, **kwargs)
        try:
            made = list(tensors_in(output, 6))
            if made:
                self.seen(name, sites.here(2), given, made)
        except Exception:
            pass  # an operation that cannot be looked at; the program goes on
        return output
