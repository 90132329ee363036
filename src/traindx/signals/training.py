"""Whether the training got anywhere, in one number."""
from __future__ import annotations

import math
from dataclasses import dataclass

from traindx.core.judge import Absent, not_checked
from traindx.core.recording import Recording
from traindx.core.text import Text

STUCK = 0.7  # of the first loss, rule of thumb: above it the training has got hardly anywhere
SHORTEST = 20  # steps
NO_LOSS = Text("too few backward losses were seen", "看到的 backward 损失太少")


@dataclass(frozen=True)
class Progress:
    """Means of the backward loss over the first and the last tenth of the run."""

    first: float
    last: float

    @classmethod
    def of(cls, recording: Recording) -> Progress | Absent:
        losses = [value for _, value in recording.series.get("loss", ())]
        if len(losses) < SHORTEST:
            return not_checked(NO_LOSS)
        tenth = max(1, len(losses) // 10)
        return cls(sum(losses[:tenth]) / tenth, sum(losses[-tenth:]) / tenth)

    @property
    def is_stuck(self) -> bool:
        """The loss is positive and has hardly fallen; or it is no number at all."""
        return not math.isfinite(self.last) or (self.first > 0 and self.last > STUCK * self.first)
