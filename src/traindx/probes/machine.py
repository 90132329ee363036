"""What torch says about itself: versions, builds, settings that change results. Asks no device and starts none."""
from __future__ import annotations

import os
import re
from typing import Any

import torch


def torch_facts() -> dict[str, Any]:
    """Fields of :class:`traindx.env.facts.TorchFacts` that can be known without touching a device."""
    return {"version": torch.__version__, "cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None),
            "xpu": getattr(torch.version, "xpu", None), "mps_built": bool(torch.backends.mps.is_built()),
            "cudnn": _cudnn(), "blas": _blas(), "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(), "file": os.path.dirname(torch.__file__)}


def _cudnn() -> str | None:
    if torch.version.cuda is None or not torch.backends.cudnn.is_available():
        return None
    return str(torch.backends.cudnn.version())


def _blas() -> str | None:
    found = re.search(r"BLAS_INFO=(\w+)", torch.__config__.show())
    return found[1].lower() if found else None


def settings() -> dict[str, str]:
    """Switches of torch that change results or speed, as they stand now."""
    backends = torch.backends
    return {"deterministic": str(torch.are_deterministic_algorithms_enabled()),
            "cudnn.benchmark": str(backends.cudnn.benchmark), "cudnn.deterministic": str(backends.cudnn.deterministic),
            "matmul_precision": torch.get_float32_matmul_precision(), "threads": str(torch.get_num_threads()),
            "default_dtype": str(torch.get_default_dtype()).removeprefix("torch.")}
