"""Token targets of a loss: their padded tails, and how they lie against the model's inputs."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class TokenTargets(Observation):
    """Class-id targets of a loss that form ``rows`` sequences of ``length`` steps. ``key`` is ``tokens-<call>``.

    ``tail_token`` ends most rows again and again: its runs of two and more at the ends hold ``tail_share`` of all
    targets that count, and ``tail_loss_share`` of the loss; ``tail_varies`` tells that runs differ in length,
    ``input_tail_share`` which share of the model's input is such runs as well (the largest over its inputs).
    ``tail_gradient`` is the gradient on those entries against the others' (0: masked later), where nothing was reduced.

    ``equal`` tells for an offset k the share of targets that equal the model's input k steps later (the best over its
    integer inputs). ``causal`` is what a replay showed: whether no output depends on later inputs. ``sees_next``, likewise:
    whether outputs depend on the very input that they are to foretell, ``sees_at`` the first operation that lets it through.
    """

    function: str
    site: Site | None
    made_at: Site | None
    grad: bool
    rows: int
    length: int
    tail_token: int | None = None
    tail_share: float = 0.0
    tail_loss_share: float | None = None
    tail_varies: bool = False
    tail_gradient: float | None = None
    input_tail_share: float = 0.0
    reduction: str = "mean"
    compared: int = 0
    equal: dict[int, float] | None = None
    causal: bool | None = None
    sees_next: bool | None = None
    sees_at: Site | None = None
