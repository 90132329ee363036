"""What was found on a machine: plain facts, as JSON in a run's ``environment.json``. Judged elsewhere."""
from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class TorchFacts:
    """The torch that is installed. ``cuda``, ``hip``, ``xpu`` are what it was built for (None: not built for it).

    ``why_no_device`` is the error that the runtime gave when it was asked for a device; ``error`` that of ``import torch``.
    ``architectures`` are those that its kernels were built for: ``sm_80``, ``compute_90``, ``gfx90a``.
    """

    version: str | None = None
    cuda: str | None = None
    hip: str | None = None
    xpu: str | None = None
    mps_built: bool = False
    available: tuple[str, ...] = ()
    architectures: tuple[str, ...] = ()
    cudnn: str | None = None
    blas: str | None = None
    threads: int | None = None
    interop_threads: int | None = None
    file: str | None = None
    why_no_device: str | None = None
    error: str | None = None


@dataclass(frozen=True)
class Proof:
    """Forward, backward and one step on a device. ``how`` is ``done``, ``raised``, ``crashed`` or ``hung``."""

    softmax_sums: bool = False
    step: bool = False
    how: str = "done"
    error: str | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class Device:
    """``kind`` is cpu, cuda, rocm, mps or xpu; ``capability`` is ``8.0`` (CUDA) or ``gfx90a`` (ROCm)."""

    kind: str
    index: int = 0
    name: str = ""
    memory_bytes: int | None = None
    capability: str | None = None
    proof: Proof | None = None


@dataclass(frozen=True)
class Driver:
    """A graphics driver, asked without torch. ``vendor`` is nvidia, amd or intel; ``gpus`` are names."""

    vendor: str
    version: str | None = None
    gpus: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Drift:
    """A package that is not installed as locked. ``installed`` is None where it is absent."""

    package: str
    locked: str
    installed: str | None


@dataclass(frozen=True)
class Lock:
    """A lock file against what is installed. ``checked`` packages were compared, ``unpinned`` are named without a version."""

    file: str
    drift: tuple[Drift, ...] = ()
    missing: tuple[Drift, ...] = ()
    checked: int = 0
    unpinned: int = 0
    error: str | None = None


@dataclass(frozen=True)
class Facts:
    """Everything about one machine and one Python."""

    python: str = ""
    executable: str = ""
    virtual: bool = True
    system: str = ""
    release: str = ""
    machine: str = ""
    cores: int = 1
    memory_bytes: int | None = None
    shared_memory_bytes: int | None = None
    translated: bool = False
    torch: TorchFacts = field(default_factory=TorchFacts)
    drivers: tuple[Driver, ...] = ()
    devices: tuple[Device, ...] = ()
    variables: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)
    lock: Lock | None = None
