"""What stays alive of past steps."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True)
class Census:
    """At ``step``: how many of the results ``made`` in earlier steps are alive, estimated from those that are watched.

    ``graphs`` still have their autograd node, ``whole`` of them were never run backward (so all activations behind them are
    held), made in ``steps`` different steps. ``outputs`` still have their memory, ``bytes`` of it, made in ``output_steps``.
    ``resident`` is the process's memory in bytes (allocated memory, on a GPU).
    """

    step: int
    made: int
    graphs: int
    whole: int
    steps: int
    outputs: int
    output_steps: int
    bytes: int
    resident: int


@dataclass(frozen=True, kw_only=True)
class ResultsAlive(Observation):
    """Results of one line (``what``: loss, output or root of a backward), some of which are watched, weakly.

    ``kept_at`` is the statement that keeps them, as the source reads. ``key`` names the line.
    """

    what: str
    site: Site | None
    kept_at: Site | None
    training: bool
    made: int
    censuses: tuple[Census, ...]


@dataclass(frozen=True, kw_only=True)
class GraphReach(Observation):
    """A backward with retain_graph whose graph goes ``back`` steps into the past; ``nodes`` of it were counted (cut at a limit).

    ``carried_at`` is the latest forward that was given a tensor of an earlier step with its graph.
    """

    site: Site | None
    carried_at: Site | None
    nodes: int
    back: int


@dataclass(frozen=True, kw_only=True)
class OutOfMemory(Observation):
    """The program ended because memory ran out. Bytes; None where it is not known.

    ``asked`` is what could not be had; ``resident`` what the process had (allocated memory, on a GPU), ``reserved`` what the GPU's
    allocator held of ``capacity``. ``phase`` is forward, backward or step. ``inputs`` are the shapes that the model was given last.
    """

    site: Site | None
    device: str
    phase: str
    asked: int | None
    parameters: int
    gradients: int
    optimizer: int
    resident: int
    reserved: int | None = None
    capacity: int | None = None
    inputs: tuple[tuple[int, ...], ...] = ()
    usual_inputs: tuple[tuple[int, ...], ...] = ()
