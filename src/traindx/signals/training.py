"""Whether the training got anywhere, in one number."""
from __future__ import annotations

import math
from dataclasses import dataclass

from traindx.core.judge import Absent, not_checked
from traindx.core.recording import Recording
from traindx.core.text import Text
from traindx.signals.feeding import chance_of

STUCK = 0.7  # of the first loss, rule of thumb: above it the training has got hardly anywhere
NO_BETTER = 0.95  # of the loss of guessing
SHORTEST = 20  # steps
NO_LOSS = Text("too few backward losses were seen", "看到的训练损失（反向传播的起点）太少")


@dataclass(frozen=True)
class Progress:
    """Means of the backward loss over the first and the last tenth of the run; ``chance`` is what guessing would lose."""

    first: float
    last: float
    chance: float | None = None

    @classmethod
    def of(cls, recording: Recording) -> Progress | Absent:
        losses = [value for _, value in recording.series.get("loss", ())]
        if len(losses) < SHORTEST:
            return not_checked(NO_LOSS)
        tenth = max(1, len(losses) // 10)
        return cls(sum(losses[:tenth]) / tenth, sum(losses[-tenth:]) / tenth, chance_of(recording))

    @property
    def is_stuck(self) -> bool:
        """The loss is positive and has hardly fallen, or only down to what guessing loses; or it is no number at all."""
        fallen_to = STUCK * self.first if self.chance is None else min(STUCK * self.first, NO_BETTER * self.chance)
        return not math.isfinite(self.last) or (self.first > 0 and self.last > fallen_to)
