"""The op trace of a few chosen steps: a small graph of tensor operations, with the user's lines."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True)
class Input:
    """An operand. ``op`` is the index of the op that made it in the same trace, -1 where it came from outside (data, parameters).

    ``parameter`` is the id of a leaf that requires grad; ``origin`` says what the tensor is to the program: ``input`` (argument of the root
    module), ``target`` (of a torch loss), ``parameter``, ``buffer`` or ``""``.
    """

    shape: tuple[int, ...]
    dtype: str
    op: int = -1
    requires_grad: bool = False
    origin: str = ""
    parameter: int = 0


@dataclass(frozen=True)
class Op:
    """One call. ``module`` is the dotted path of the innermost module that was running ("" in the root, None outside any module);
    ``scalars`` are the plain arguments by position (``"1"``) or keyword (``"dim"``), as text.
    ``low``/``high`` are over a float output's finite elements (sampled when large); ``nonfinite`` counts the others.
    ``node`` is the class of the autograd node of the output and ``number`` its place in the order of making (-1: none).
    """

    index: int
    name: str
    site: Site | None
    inputs: tuple[Input, ...]
    shape: tuple[int, ...]
    dtype: str
    requires_grad: bool = False
    module: str | None = None
    module_class: str = ""
    module_training: bool | None = None
    scalars: dict[str, str] | None = None
    low: float | None = None
    high: float | None = None
    nonfinite: int = 0
    value: float | None = None
    in_place: bool = False
    node: str = ""
    number: int = -1


@dataclass(frozen=True, kw_only=True)
class OpTrace(Observation):
    """Ops from the end of one step (of the first: from its first forward) to the end of the next (``phase`` "train"), or of the
    start of an evaluation pass ("eval").

    ``batch`` is the size of dim 0 of the root module's first tensor argument, ``targets`` the shapes of loss targets;
    ``root`` is the index of the op whose output was the backward root (-1 unknown). ``losses`` are indices of torch loss calls.
    """

    phase: str
    ops: tuple[Op, ...]
    batch: int | None = None
    model: int = 0
    root: int = -1
    losses: tuple[int, ...] = ()
    targets: tuple[tuple[int, ...], ...] = ()
    cut: bool = False
