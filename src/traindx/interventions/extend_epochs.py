"""The epoch in which the program trains does not end: its loader begins anew instead, so that training steps follow each other as long as
they are measured. Schedulers stand still, for some of them refuse more steps than they were told of.
"""
from __future__ import annotations

import weakref
from typing import Any

from traindx.interventions.tools.stage import Stage
from traindx.interventions.tools.switched import Fetching


class ExtendEpochs(Fetching):
    """Only of the loader that is trained from; validation passes end as they do."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._instead: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def fetch(self, loader: Any, iterator: Any, original: Any) -> Any:
        try:
            return next(self._instead[iterator]) if iterator in self._instead else original()
        except StopIteration:
            if loader is None:
                raise
            self.touch()
            anew = iter(loader)
            if anew is iterator:  # persistent workers: it was reset
                return original()
            self._instead[iterator] = anew
            return next(anew)

    def let_schedule(self, scheduler: Any) -> bool:
        return False
