"""Lines that write into some tensors: an update by hand, an optimizer of the user's own."""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor

from traindx.core.observed import Site
from traindx.probes import ops, sites
from traindx.probes.session import Session
from traindx.probes.tensors import readable


class Writes(ops.StackMode):
    """Tells of each torch call that writes into the memory of these tensors: its line, its name."""

    def __init__(self, session: Session, tensors: Iterable[Tensor], found: Callable[[Site | None, str], None]) -> None:
        super().__init__(session)
        self.found = found
        self._memory = {tensor.untyped_storage().data_ptr() for tensor in tensors if readable(tensor)}

    def handle(self, func: Any, args: Any, kwargs: Any) -> Any:
        if not self.session.thread.busy and _is_write(func) and args and self._touches(args[0]):
            self.found(sites.here(2), getattr(func, "__name__", ""))
        return func(*args, **kwargs)

    def _touches(self, target: Any) -> bool:
        with self.session.quiet():
            first = target[0] if isinstance(target, (list, tuple)) and target else target
            return readable(first) and first.untyped_storage().data_ptr() in self._memory


def _is_write(func: Any) -> bool:
    """``x.add_()``, ``x += y``, ``x.data = y``, ``torch._foreach_add_([x], y)``."""
    name = getattr(func, "__name__", "")
    if name == "__set__":
        return getattr(getattr(func, "__self__", None), "__name__", "") == "data"
    return bool(name.startswith("__i") if name.endswith("__") else name.endswith("_"))
