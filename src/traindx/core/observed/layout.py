"""How tensors are laid out: which dimension holds the samples, which the time, and whether modules read them so."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.observed import Observation, Site


@dataclass(frozen=True)
class Place:
    """A module of a root: activation, recurrent or attention. ``batch_first`` is None where it has none such."""

    path: str
    class_name: str
    made_at: Site | None
    batch_first: bool | None = None


@dataclass(frozen=True, kw_only=True)
class ModulePlaces(Observation):
    """Where a root's activations, recurrent and attention modules were made. ``key`` is ``places-<model>``."""

    model: int
    places: tuple[Place, ...]


@dataclass(frozen=True, kw_only=True)
class BatchMixing(Observation):
    """What a replay of a root module in eval mode showed: whether an output depends on other samples of its batch.

    ``mixes`` is None where it could not be told (``why``). ``evidence`` says how the samples' dimension ``dim`` of the
    input was known: ``loader``, ``gather`` (rows picked by index) or ``labels`` (one label for each). ``others`` is how
    many other samples' outputs changed with one sample's input. ``op`` is the first operation from which on samples are
    no longer apart: its name, place, shapes, its ``dim`` argument (``axis``), and the dimension of its input that holds
    the samples (``op_dim``). ``module_class``, ``made_at`` and ``batch_first`` are of the recurrent, attention or
    softmax module that it ran in. ``key`` is ``mixing-<model>``.
    """

    model: int
    class_name: str
    site: Site | None
    batch: int
    dim: int
    evidence: str
    mixes: bool | None
    why: str = ""
    others: int = 0
    op: str = ""
    op_site: Site | None = None
    op_input: tuple[int, ...] = ()
    op_output: tuple[int, ...] = ()
    op_dim: int | None = None
    axis: int | None = None
    module_class: str = ""
    made_at: Site | None = None
    batch_first: bool | None = None


@dataclass(frozen=True, kw_only=True)
class LeadSizes(Observation):
    """Sizes that dim 0 of a root's first input had on detailed steps, as first seen. ``key`` is ``sizes-<model>``."""

    model: int
    sizes: tuple[int, ...]
