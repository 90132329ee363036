"""Maps as targets (masks, depths, other images): does each fit its image as it lies, or only turned over? NumPy only."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
from torch import Tensor

from traindx.core.observed import Site
from traindx.core.observed.fed import MapsFed
from traindx.probes.fed_arrivals import Delivered
from traindx.probes.fed_batches import as_rows, is_data
from traindx.probes.rows import Array
from traindx.probes.session import LossRun

SIDE = 48  # pixels of a side that are compared
CLASSES = 32  # values of a map of whole numbers that are classes
FITTED = 0.25  # share of the image's variance within which a map fits as well turned as it lies
ENOUGH = 96  # maps that decide
LOOKED_AT = 1500  # after which maps that fit their images neither way are no longer looked at

LYING = "as it lies"
TURNS: Mapping[str, Callable[[Array], Array]] = {
    LYING: lambda maps: maps,
    "left-right": lambda maps: maps[:, :, ::-1],
    "up-down": lambda maps: maps[:, ::-1],
    "half turn": lambda maps: maps[:, ::-1, ::-1],
}
SQUARE: Mapping[str, Callable[[Array], Array]] = {
    "transposed": lambda maps: maps.transpose(0, 2, 1),
    "quarter turn": lambda maps: maps.transpose(0, 2, 1)[:, ::-1],
    "three quarters": lambda maps: maps.transpose(0, 2, 1)[:, :, ::-1],
}


class Maps:
    """How the maps of one set of weights lay on the images that they came with."""

    def __init__(self) -> None:
        self.best: Counter[str] = Counter()
        self.seen = 0
        self.shares: dict[bool, list[float]] = {True: [], False: []}  # explained by maps that lie right, and turned
        self.loss_site: Site | None = None
        self.site: Site | None = None
        self.delivered: Delivered | None = None

    @property
    def wants(self) -> bool:
        return sum(self.best.values()) < ENOUGH and self.seen < LOOKED_AT

    def take(self, images: Tensor, run: LossRun, site: Site | None, delivered: Delivered | None) -> None:
        pair = pictures(images, run.target)
        if pair is None:
            return
        self.loss_site, self.site, self.delivered = run.site, site, delivered
        self.seen += len(pair[0])
        for turn, share in lying(*pair):
            self.best[turn] += 1
            self.shares[turn == LYING].append(share)

    def said(self, model: int, step: int, written: tuple[Site, ...]) -> MapsFed:
        right, turned = (float(np.median(self.shares[which])) if self.shares[which] else 0.0 for which in (True, False))
        return MapsFed(
            step=step, key=f"maps-{model}", model=model, site=self.loss_site, first_forward=self.site, seen=self.seen,
            loader_site=self.delivered.site if self.delivered else None, written=written, lying=self.best[LYING],
            turned={turn: count for turn, count in self.best.items() if turn != LYING}, share_lying=right, share_turned=turned)


def pictures(images: Tensor, target: object) -> tuple[Array, Array] | None:
    """Images [B, C, h, w] and maps [B, h, w] on one coarse grid; None where the target is no map over these images."""
    if not isinstance(target, Tensor) or not is_data(images) or not is_data(target) or images.dim() != 4 or target.dim() not in (3, 4):
        return None
    if target.shape[-2:] != images.shape[-2:] or min(images.shape[-2:]) < 8:
        return None
    if len(target) != len(images) or target.shape[1:-2] not in ((), (1,)):
        return None
    if target.data_ptr() == images.data_ptr() or not images.is_floating_point():
        return None  # an image that is to be rebuilt
    height, width = images.shape[-2:]
    down, across = (slice((stride - 1) // 2, None, stride) for stride in (max(1, height // SIDE), max(1, width // SIDE)))
    coarse = as_rows(images[:, :4, down, across], 1)
    shape = images[:, :4, down, across].shape
    maps = target.reshape(len(target), height, width)[:, down, across]
    return coarse.reshape(shape).astype(np.float64), as_rows(maps, 1).reshape(len(target), *shape[-2:]).astype(np.float64)


@np.errstate(all="ignore")
def lying(images: Array, maps: Array) -> list[tuple[str, float]]:
    """For each map that fits its image clearly better in one way than in all others: that way, and the share that it explains."""
    turns = {**TURNS, **SQUARE} if maps.shape[1] == maps.shape[2] else TURNS
    shares = np.stack([explained(images, turn(maps)) for turn in turns.values()])  # [turns, B]
    names, order = list(turns), np.argsort(shares, axis=0)
    found = []
    for sample in np.flatnonzero(np.isfinite(shares).all(axis=0)).tolist():
        best, second = order[-1, sample], order[-2, sample]
        if shares[best, sample] - shares[second, sample] > FITTED:
            found.append((names[best], float(shares[best, sample])))
    return found


def explained(images: Array, maps: Array) -> Array:
    """Share of each image's variance that its map explains [B], in the channel where it explains most: of whole numbers by the
    mean in each class (correlation ratio), of others by a straight line."""
    flat = maps.reshape(len(maps), 1, -1)
    pixels = images.reshape(*images.shape[:2], -1)
    pixels = pixels - pixels.mean(axis=2, keepdims=True)
    total = (pixels ** 2).sum(axis=2)
    classes = np.unique(maps)
    if len(classes) <= CLASSES and (classes == np.floor(classes)).all():
        between = np.zeros_like(total)
        for value in classes:
            inside = flat == value
            between += np.where(inside, pixels, 0).sum(axis=2) ** 2 / np.maximum(inside.sum(axis=2), 1)
    else:
        centred = flat - flat.mean(axis=2, keepdims=True)
        between = (pixels * centred).sum(axis=2) ** 2 / (centred ** 2).sum(axis=2)
    best: Array = (between / total).max(axis=1)
    return best
