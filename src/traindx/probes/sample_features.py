"""What a row of numbers looks like: an image, a wave, tokens, a table; a few numbers of it for comparing rows. NumPy only."""
from __future__ import annotations

import numpy as np

from traindx.probes import rows
from traindx.probes.rows import Array

FEATURES = 256


def features_of(numbers: Array, known: str = "") -> tuple[str, Array | None]:
    """What a row looks like, and at most :data:`FEATURES` numbers of each row for comparing rows: images averaged over
    cells of a grid, token ids counted by hash, else elements at fixed places.
    """
    count = len(numbers)
    kind = known or kind_of(numbers)
    if kind == "text":
        return kind, _bags(numbers.reshape(count, -1))
    if kind == "image":
        grey = numbers if numbers.ndim == 3 else numbers.mean(axis=-1 if numbers.shape[-1] in (1, 3, 4) and numbers.shape[1] > 4 else 1)
        return kind, _pooled(grey.astype(np.float32))
    flat = numbers.reshape(count, -1).astype(np.float32)
    return kind, flat[:, rows.positions(flat.shape[1], FEATURES)] if flat.shape[1] else None


def kind_of(numbers: Array) -> str:
    """``image``, ``wave``, ``text``, ``table``, ``matrix`` or ``numbers``, by shape, dtype and smoothness of the rows [B, ...].

    An image: [C, H, W], [H, W, C] with 1, 3 or 4 channels, or [H, W] whose neighbours are alike. A wave: [T] or
    [up to 8, T] with T >= 64 whose neighbours are alike.
    """
    shape = numbers.shape[1:]
    if len(shape) == 1 and numbers.dtype.kind in "iu" and shape[0] > 1:
        return "text"
    if len(shape) == 3 and (shape[0] in (1, 3, 4) or shape[2] in (1, 3, 4)):
        return "image"
    if len(shape) == 2 and min(shape) >= 8 and numbers.dtype.kind != "b":
        return "image" if _smooth(numbers, -1) > 0.5 and _smooth(numbers, -2) > 0.5 else "matrix"
    if len(shape) in (1, 2) and shape[-1] >= 64 and (len(shape) == 1 or shape[0] <= 8):
        return "wave" if _smooth(numbers, -1) > 0.6 else "table" if len(shape) == 1 else "matrix"
    return "table" if len(shape) <= 1 else "matrix" if len(shape) == 2 else "numbers"


def _smooth(numbers: Array, axis: int) -> float:
    """Correlation of neighbours along an axis."""
    values = numbers[:16].astype(np.float64)
    along = np.moveaxis(values, axis, -1)
    a, b = along[..., :-1].ravel(), along[..., 1:].ravel()
    if len(a) < 8 or a.std() < 1e-12 or b.std() < 1e-12 or not np.isfinite(a).all() or not np.isfinite(b).all():
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])


def _pooled(grey: Array, side: int = 16) -> Array:
    """Images [B, H, W] averaged over a grid of at most ``side`` x ``side`` cells, flat."""
    for axis in (1, 2):
        size = grey.shape[axis]
        cells = min(side, size)
        edges = np.linspace(0, size, cells + 1).astype(int)
        grey = np.add.reduceat(grey, edges[:-1], axis=axis) / np.diff(edges).reshape([-1 if a == axis else 1 for a in range(3)])
    return grey.reshape(len(grey), -1)


def _bags(ids: Array) -> Array:
    """How often each token is in each row [B, T], by its id modulo the number of features; the commonest (padding) left out."""
    padding = np.bincount(np.abs(ids).ravel() % (1 << 20)).argmax() if ids.size else 0
    bags: Array = np.zeros((len(ids), FEATURES), np.float32)
    for place in range(ids.shape[1]):
        column = ids[:, place].astype(np.int64)
        bags[np.arange(len(ids)), column % FEATURES] += column != padding
    return bags


def by_feature(numbers: Array) -> Array | None:
    """Values by feature: channels of images, columns of tables and sequences [B, T, d]. None for token ids."""
    shape = numbers.shape[1:]
    if numbers.dtype.kind in "iu" and len(shape) == 1 and numbers.dtype != np.uint8:
        return None
    values = numbers.astype(np.float64)
    if len(shape) == 3 and shape[0] in (1, 3, 4):
        return np.moveaxis(values, 1, -1).reshape(-1, shape[0])
    if not shape:
        return values.reshape(-1, 1)
    return values.reshape(-1, shape[-1]) if shape[-1] <= 1024 else None
