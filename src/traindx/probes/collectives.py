"""What the program itself sends between ranks: the first calls with their arguments, and how much it reduces between two steps.

Wrappers send on their own, below Python: that is not seen here, and need not be.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from traindx.core.observed import Site
from traindx.core.observed.ranks import Collective
from traindx.probes import patching, ranks, sites
from traindx.probes.session import Probe, Session
from traindx.probes.tensors import dtype_of

CALLS = 64  # written down one by one: the same ones on every rank
# every rank calls these alike; those on the right with tensors whose sizes may differ between ranks
ALIKE = ("all_reduce", "broadcast", "reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "all_gather")
OTHERS = ("barrier", "gather", "scatter", "all_to_all", "all_to_all_single", "all_gather_object", "broadcast_object_list",
          "gather_object", "scatter_object_list", "reduce_scatter")
REDUCES = ("all_reduce", "broadcast", "reduce")


def install(session: Session) -> None:
    if torch.distributed.is_available():
        session.add(Collectives)


class Collectives(Probe):
    """Outermost calls only: one collective may be made of others."""

    areas = ("rank",)
    instance: Collectives | None = None

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._inside = False
        self._calls = 0
        self._reduced = 0
        Collectives.instance = self
        for name in (*ALIKE, *OTHERS):
            for owner in (torch.distributed, torch.distributed.distributed_c10d):
                patching.replace(session.stack, owner, name, partial(self._observed, name))

    def take(self) -> int:
        """How many elements were reduced or broadcast since this was last asked, between forwards and backwards."""
        count, self._reduced = self._reduced, 0
        return count

    def _observed(self, name: str, original: Callable[..., Any]) -> Any:
        is_compiling, session = torch.compiler.is_compiling, self.session

        def collective(*args: Any, **kwargs: Any) -> Any:
            if is_compiling() or self._inside or not session.watching:
                return original(*args, **kwargs)
            session.guard(self, self._called, name, args, kwargs, sites.here(2))
            self._inside = True
            try:
                return original(*args, **kwargs)
            finally:
                self._inside = False
        return patching.dressed(collective, original)

    def _called(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], site: Site | None) -> None:
        tensor = next((value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)), None)
        outside = not self.session.in_backward and self.session.thread.depth == 0
        if outside and name in REDUCES and tensor is not None and tensor.is_floating_point():
            self._reduced += tensor.numel()
        if self._calls >= CALLS or site is None or not _over_all(args, kwargs):
            return
        self._calls += 1
        alike = name in ALIKE and tensor is not None
        operation = next((value for value in (*args, *kwargs.values()) if type(value).__name__ in ("ReduceOp", "RedOpType")), "SUM")
        self.session.emit(Collective(
            step=self.session.step, key=f"collective-{self._calls}", number=self._calls, name=name,
            numel=tensor.numel() if alike and tensor is not None else -1, dtype=dtype_of(tensor) if alike else "",
            reduction=str(operation).rpartition(".")[2] if "reduce" in name else "", site=site))


def _over_all(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the call is for every rank: a group of some of them is called by those only."""
    groups = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.distributed.ProcessGroup)]
    return all(group.size() == ranks.world() for group in groups)
