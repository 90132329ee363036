"""Checkpointed parts that get nothing to send a gradient through: the re-entrant kind goes back only by way of its inputs."""
from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from torch import Tensor

from traindx.core.observed import Site
from traindx.core.observed.learning import CheckpointCut
from traindx.probes import patching, sites
from traindx.probes.importing import when_imported
from traindx.probes.session import Probe, Session

MODULE = "torch.utils.checkpoint"
LINES = 8


def install(session: Session) -> None:
    session.add(Recomputed)


class Recomputed(Probe):
    """Lines that checkpoint something none of whose inputs requires a gradient."""

    areas = ("loss",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._lines: dict[int, int] = {}
        when_imported(session.stack, MODULE, self.patch)

    def patch(self, module: ModuleType) -> None:
        """``check_backward_validity`` is what the re-entrant kind asks of its inputs, inside ``CheckpointFunction.forward``."""
        if self.session.active:
            patching.replace(self.session.stack, module, "check_backward_validity", self._observed)

    def _observed(self, original: Any) -> Any:
        def check_backward_validity(inputs: Iterable[Any]) -> Any:
            if self.session.watching:
                self.session.guard(self, self.met, inputs, sites.here(2))
            return original(inputs)
        return patching.dressed(check_backward_validity, original)

    def met(self, inputs: Iterable[Any], site: Site | None) -> None:
        if any(isinstance(each, Tensor) and each.requires_grad for each in inputs):
            return
        key = id(site)
        count = self._lines.get(key, 0) + 1
        if count > 1 or len(self._lines) < LINES:
            self._lines[key] = count
        if count & (count - 1) == 0 and key in self._lines:
            self.session.emit(CheckpointCut(step=self.session.step, key=f"checkpoint-{key}", site=site, count=count))
