"""Which initialisation a weight looks like, by its standard deviation and its fans."""
from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

SURE = 0.12  # 4 standard errors of the std must be below this, else too few weights to tell schemes apart
ORTHOGONAL = 1e-3
LARGEST = 4096  # rows of a matrix that is tested for orthogonality


def described(module: nn.Module) -> dict[str, Any] | None:
    """``std``, ``mean``, ``fan_in``, ``fan_out``, ``ratios`` (std beside each scheme's) and ``looks_like`` (the schemes within four
    standard errors; several where they agree at these fans, none where there are too few weights). None without a weight matrix."""
    weight = _weight(module)
    if weight is None:
        return None
    values = weight.detach().cpu().double()
    std = float(values.std(correction=0))
    fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(weight)
    schemes = _schemes(module, fan_in, fan_out)
    ratios = {name: std / expected for name, expected in schemes.items()}
    return {"std": std, "mean": float(values.mean()), "fan_in": fan_in, "fan_out": fan_out, "ratios": ratios,
            "looks_like": _alike(weight, std, ratios)}


def _weight(module: nn.Module) -> Tensor | None:
    for name in ("weight", "weight_hh_l0", "in_proj_weight"):
        weight = getattr(module, name, None)
        if isinstance(weight, nn.Parameter) and not isinstance(weight, nn.UninitializedParameter) and weight.dim() >= 2:
            return weight
    return None


def _schemes(module: nn.Module, fan_in: int, fan_out: int) -> dict[str, float]:
    """Standard deviations. He: He et al. 2015; Glorot: Glorot and Bengio 2010; LeCun: LeCun et al. 1998; torch: its layers'
    reset_parameters."""
    if isinstance(module, nn.Embedding):
        return {"torch": 1.0, "normal 0.02": 0.02}
    default = 1 / math.sqrt(3 * (module.hidden_size if isinstance(module, nn.RNNBase) else fan_in))
    glorot = math.sqrt(2 / (fan_in + fan_out))
    if isinstance(module, nn.MultiheadAttention):
        default = glorot
    return {"he": math.sqrt(2 / fan_in), "he fan_out": math.sqrt(2 / fan_out), "glorot": glorot,
            "lecun": 1 / math.sqrt(fan_in), "torch": default, "normal 0.02": 0.02}


def _alike(weight: Tensor, std: float, ratios: dict[str, float]) -> list[str]:
    if std == 0:
        return ["zeros" if not bool(weight.detach().any()) else "constant"]
    if _orthogonal(weight):
        return ["orthogonal"]
    error = 4 / math.sqrt(2 * weight.numel())
    return [name for name, ratio in ratios.items() if abs(ratio - 1) < error] if error < SURE else []


def _orthogonal(weight: Tensor) -> bool:
    """Rows (or columns, where there are fewer) of one length, at right angles."""
    matrix = weight.detach().cpu().double().flatten(1)
    matrix = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    if not 2 <= matrix.shape[0] <= LARGEST:
        return False
    product = matrix @ matrix.T
    length = product.diagonal().mean()
    return bool((product / length - torch.eye(len(product), dtype=product.dtype)).abs().max() < ORTHOGONAL)
