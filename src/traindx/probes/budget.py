"""How much time optional work may take."""
from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traindx.probes.session import Session

SHORT = 10.0  # seconds of a run in which every Budget has its full share
TOGETHER = 0.012  # share of the time of all Budgets together later on


@dataclass
class Budget:
    """Optional work is done while it has cost less than its ``share`` of the time; the first ``free`` steps always, uncounted.

    After the first :data:`SHORT` seconds of a run, all budgets together share :data:`TOGETHER` of the time, each by its ``share``.
    """

    session: Session
    share: float = 0.02
    free: int = 64
    spent: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.session.budgets.append(self)
        self.session.shares += self.share

    def allows(self) -> bool:
        return self.session.step <= self.free or self.spent < self.allowance(time.perf_counter() - self.session.began)

    def allowance(self, elapsed: float) -> float:
        """Seconds that may have been spent after ``elapsed`` seconds of the run."""
        if elapsed <= SHORT:
            return self.share * elapsed
        return self.share * (SHORT + min(1.0, TOGETHER / self.session.shares) * (elapsed - SHORT))

    @contextmanager
    def paying(self) -> Iterator[None]:
        began = time.perf_counter()
        try:
            yield
        finally:
            if self.session.step > self.free:
                self.spent += time.perf_counter() - began
