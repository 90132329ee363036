"""Which forwards evaluate a model that is being trained: told by what follows them and by when they come."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.judge import Absent
from traindx.core.observed.mode import ForwardPass
from traindx.core.recording import Recording
from traindx.core.text import Text

RARE = 0.3  # rule of thumb: passes come at no more than this share of the steps, helpers of the step at most of them
REPEATED = 0.6  # of the forwards got the very input of the one before: Monte Carlo dropout

NO_PASS = Text("no model that is trained was run without a backward",
               "没有看到参与训练的模型只做前向、不做反向传播")


@dataclass(frozen=True)
class EvaluationPasses:
    """Groups of forwards that evaluate; ``of`` is absent where none was seen."""

    passes: tuple[ForwardPass, ...]

    @classmethod
    def of(cls, recording: Recording) -> EvaluationPasses | Absent:
        seen = recording.of(ForwardPass)
        if not any(each.idle for each in seen):
            return Absent(NO_PASS)
        return cls(tuple(each for each in seen if evaluates(each, recording.steps)))


def evaluates(each: ForwardPass, steps: int) -> bool:
    """No backward follows, training has begun, and the result is used; it is no part of a training step."""
    if not each.idle or each.last_idle_step <= 1 or each.discarded or each.judged:
        return False
    if not (each.optimized or each.twin_of) or each.same_input >= REPEATED * each.count:
        return False
    return is_rare(each, steps) or (each.scored >= each.idle / 2 and each.train_input < each.idle / 2)


def is_rare(each: ForwardPass, steps: int) -> bool:
    """Passes of their own come after an epoch or every so many steps, or when the training is over."""
    if each.idle_windows == 1:
        return each.last_idle_step > steps or each.idle > 1
    return each.idle_windows <= RARE * each.steps
