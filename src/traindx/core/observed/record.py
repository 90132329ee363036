"""What a run's record keeps so that it can be repeated: process, seeds, settings, data, imported files, torch's switches."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from traindx.core.observed import Observation, Site


@dataclass(frozen=True, kw_only=True)
class Began(Observation):
    """The watched process. ``born`` is when the system started it, in its own units: it tells a pid from a later one's."""

    pid: int
    host: str
    born: str = ""


@dataclass(frozen=True, kw_only=True)
class SeedCall(Observation):
    """A line that seeds a random generator, or makes one. ``value`` is None where no seed was given. ``key`` is ``seed-<n>``."""

    function: str
    value: str | None
    site: Site | None
    calls: int = 1


@dataclass(frozen=True, kw_only=True)
class ConfigSeen(Observation):
    """Settings of the program: ``source`` is argparse, dataclass, omegaconf, namespace, or constants (literals that the main
    script assigns once). ``values`` are plain and masked. ``key`` is ``config-<n>``."""

    source: str
    name: str
    values: dict[str, Any]
    site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class FilesImported(Observation):
    """Files of the user's own modules that were imported so far, absolute. ``key`` is ``imports``."""

    files: tuple[str, ...]
    main: str | None = None


@dataclass(frozen=True, kw_only=True)
class DataSeen(Observation):
    """What a DataLoader read from. ``key`` is ``data-<loader>``.

    ``content`` is a digest of the arrays, tensors and lists that the dataset holds, ``coverage`` says of how much of them:
    whole, sampled, or none (nothing that can be read without running the user's code). ``indices`` is the digest of a Subset's.
    ``transforms`` maps an attribute to its text and the digest of its code; ``code`` is that of the dataset class's own methods.
    """

    loader: int
    dataset_class: str
    size: int | None
    content: str | None
    coverage: str
    indices: str | None = None
    subset: int | None = None
    transforms: dict[str, str] = field(default_factory=dict)
    code: str | None = None
    generator_seed: str | None = None
    site: Site | None = None


@dataclass(frozen=True, kw_only=True)
class FirstInputs(Observation):
    """Digest of what the first ``forwards`` training forwards were given, in order. ``key`` is ``first-inputs``."""

    digest: str
    forwards: int
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TorchSeen(Observation):
    """torch's version and build, its switches after the first step, devices in use. ``key`` is ``torch``."""

    facts: dict[str, Any]
    settings: dict[str, str]
    devices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Resources(Observation):
    """What the process has used. ``key`` is ``resources``; bytes and seconds."""

    peak_rss: int
    cpu_seconds: float
    device_peak: int | None = None
