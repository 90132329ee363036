"""Which optimizers use gradients twice, and which do not meanwhile."""
from __future__ import annotations

from traindx.core.observed.gradients import GradientUse

SLIPS = 3  # steps asked for before anything is said: one may be a slip at the start
SHARE = 0.9  # of the parameters with gradients: all of them, but for a few that got none at the last step


def stale(use: GradientUse) -> bool:
    return use.stale_steps >= SLIPS


def wholly_stale(use: GradientUse) -> bool:
    """None of its parameters is cleared."""
    return stale(use) and use.stale >= SHARE * use.fresh


def cleared_meanwhile(other: GradientUse, use: GradientUse) -> bool:
    """Another optimizer, at work during the same steps, whose gradients are cleared."""
    return (other is not use and other.stale_steps == 0 and other.clean_steps >= SLIPS
            and other.first_step <= use.last_step and use.first_step <= other.last_step)
