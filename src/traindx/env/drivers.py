"""Which NVIDIA driver serves which CUDA build of torch.

Source: NVIDIA, CUDA Compatibility, "Minor Version Compatibility", table 1
(https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html) and, for the driver that each
toolkit ships with, table 3 of the CUDA Toolkit Release Notes (https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/).
Read in November 2026. A driver at or above the minimum of its major release runs every minor release of it, with the
limits that the page names (kernels compiled on the spot from PTX need the toolkit's own driver or a newer one).
"""
from __future__ import annotations

import re

MINIMUM = {13: {"Linux": (580, 0), "Windows": (580, 0)},
           12: {"Linux": (525, 60), "Windows": (528, 33)},
           11: {"Linux": (450, 80), "Windows": (452, 39)}}
SHIPPED = {"13.0": 580, "12.9": 575, "12.8": 570, "12.7": 565, "12.6": 560, "12.5": 555, "12.4": 550, "12.3": 545,
           "12.2": 535, "12.1": 530, "12.0": 525, "11.8": 520, "11.7": 515, "11.6": 510}


def parts(version: str) -> tuple[int, ...]:
    """``550.54.14`` -> (550, 54, 14)."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def minimum_for(cuda: str, system: str) -> tuple[int, int] | None:
    """The oldest driver that runs this CUDA release; None for a release that the table does not hold."""
    major = parts(cuda)[:1]
    return MINIMUM.get(major[0], {}).get(system) if major else None


def newest_for(driver: str, system: str) -> str | None:
    """The newest major CUDA release that this driver runs, as ``12.x``."""
    served = [major for major, minimum in MINIMUM.items() if parts(driver) >= minimum.get(system, (10**6,))]
    return f"{max(served)}.x" if served else None


def ships_with(cuda: str) -> int | None:
    """The driver branch that the toolkit itself came with."""
    return SHIPPED.get(".".join(cuda.split(".")[:2]))


def runs_on(architectures: tuple[str, ...], capability: str) -> bool:
    """Whether kernels built for ``architectures`` run on a CUDA device of ``capability`` (``8.6``).

    A cubin (sm_xy) runs on its own major capability from its own minor on; PTX (compute_xy) on everything newer;
    ``sm_90a`` only on exactly that.
    """
    if not architectures:
        return True
    major, minor = (int(number) for number in capability.split(".")[:2])
    for name in architectures:
        found = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", name)
        if found is None:
            continue
        kind, high, low, only = found[1], int(found[2]), int(found[3]), found[4]
        if only == "a":
            runs = (high, low) == (major, minor)
        elif kind == "sm" or only == "f":
            runs = high == major and low <= minor
        else:
            runs = (high, low) <= (major, minor)
        if runs:
            return True
    return False
