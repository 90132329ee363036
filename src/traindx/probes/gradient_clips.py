"""What clips and GradScalers met: their observations, one call further."""
from __future__ import annotations

from typing import Any

from traindx.core.observed import changed
from traindx.core.observed.gradients import ClipUse, ScalerUse
from traindx.probes.gradient_lives import Life, Owner
from traindx.probes.session import ClipRun
from traindx.probes.tensors import number


def noted(use: ClipUse, run: ClipRun, lives: list[Life], timely: list[Life]) -> ClipUse:
    """A clip, with the parameters that are followed and those of them that hold something unused."""
    owner = lives[0].owner
    norm = run.norm if run.norm is not None and run.norm < float("inf") else None
    bites = norm is not None and run.limit is not None and norm > run.limit
    use = changed(use, step_site=owner.step_site, backward_site=owner.last.source.site if owner.last else None,
                  measured=use.measured + (norm is not None), bites=use.bites + bites)
    if timely:
        return _timely(use, timely, norm)
    use = changed(use, useless_bites=use.useless_bites + bites, useless_norm=larger(use.useless_norm, norm))
    if any(life.used for life in lives) or any(life.passes for life in lives):
        return changed(use, after_step=use.after_step + 1)
    return changed(use, before_backward=use.before_backward + 1)


def _timely(use: ClipUse, timely: list[Life], norm: float | None) -> ClipUse:
    scale = max((each.scale for life in timely[:1] for each in life.passes), default=0.0)
    for life in timely:
        for each in life.passes:
            each.excused = True  # cleared after a clip, it is skipped on purpose
    use = changed(use, in_time=use.in_time + 1, norm=larger(use.norm, norm))
    if scale and not timely[0].owner.unscaled:
        use = changed(use, scaled=use.scaled + 1, scale=scale, scaled_norm=larger(use.scaled_norm, norm))
    return use


def stepped(use: ScalerUse, owner: Owner) -> ScalerUse:
    """A step that goes through a GradScaler."""
    owner.through_scaler = True
    passes = [each for life in owner.few for each in life.passes]
    for each in passes:
        each.use()  # a step that the scaler skips is not the program's loss
    unscaled = [each for each in passes if not each.scale]
    if unscaled and len(unscaled) == len(passes):
        use = changed(use, unscaled_steps=use.unscaled_steps + 1, backward_site=unscaled[-1].source.site)
    elif unscaled:
        use = changed(use, mixed_steps=use.mixed_steps + 1, mixed_site=unscaled[-1].source.site)
    return use


def scale_of(scaler: Any) -> float:
    """Without waiting for a device: there, the scale it began with."""
    return number(getattr(scaler, "_scale", None)) or float(getattr(scaler, "_init_scale", 1.0))


def larger(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else max(a, b)
