"""The shapes of a training step: modules that ran, variables that held tensors, and the same step with fewer samples."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site
from traindx.core.observed.ops import OpTrace

Shape = tuple[int, ...]


@dataclass(frozen=True)
class ModuleCall:
    """One forward of a module. ``op`` is the number of operations of the trace that were done when it returned.

    ``library``: its forward is not the user's code; ``leaf``: no other module ran in it.
    """

    path: str
    class_name: str
    site: Site | None
    inputs: tuple[Shape, ...]
    outputs: tuple[Shape, ...]
    dtype: str
    op: int
    library: bool
    leaf: bool


@dataclass(frozen=True)
class Variable:
    """A variable of the user's code that held a tensor (``"x"``) while ``line`` of a function ran."""

    file: str
    function: str
    line: int
    name: str
    shape: Shape
    dtype: str


@dataclass(frozen=True, kw_only=True)
class StepShapes(Observation):
    """What else is known of the step whose OpTrace has the same ``step``. ``start`` is the operation before which the
    batch arrived. ``key`` is ``shapes-<step>``.
    """

    calls: tuple[ModuleCall, ...]
    variables: tuple[Variable, ...]
    start: int = 0


@dataclass(frozen=True, kw_only=True)
class OtherBatch(Observation):
    """A step of the same program with ``samples`` instead of ``full`` samples in its batch, run in a child.

    ``how`` tells what was made smaller: ``loader`` (the batch that a DataLoader gave), ``rows`` (rows picked from a
    larger tensor, and the model's arguments). ``why``: it could not be done. ``error`` is what the program raised,
    at ``error_site``; the unchanged batch passed there.
    """

    samples: int
    full: int
    how: str = ""
    why: str = ""
    error: str = ""
    error_site: Site | None = None
    trace: OpTrace | None = None
    shapes: StepShapes | None = None
