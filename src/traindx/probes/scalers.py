"""Scalers of scikit-learn: on which rows they were fitted, and which tables they transformed. Patched when the program
imports them.
"""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import numpy as np

from traindx.core.observed import Site
from traindx.core.observed.fed import Part, ScalerFitted
from traindx.probes import patching, sites
from traindx.probes.importing import when_imported
from traindx.probes.session import Probe, Session

MODULE = "sklearn.preprocessing._data"
CLASSES = ("StandardScaler", "MinMaxScaler", "RobustScaler", "MaxAbsScaler")
COLUMNS = 64
FITS = 64
PARTS = 32


def install(session: Session) -> None:
    session.add(Scalers)


def _observed_fit(original: Any, probe: Scalers) -> Any:
    def fit(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, X, *args, **kwargs)
        if probe.session.watching:
            probe.session.guard(probe, probe.fitted, self, X, sites.here(2))
        return result

    return patching.dressed(fit, original)


def _observed_transform(original: Any, probe: Scalers) -> Any:
    def transform(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, X, *args, **kwargs)
        if probe.session.watching:
            probe.session.guard(probe, probe.transformed, self, result, sites.here(2))
        return result

    return patching.dressed(transform, original)


class Scalers(Probe):
    """Remembers fits, and the outcome of later transforms."""

    areas = ("data",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._fits: dict[int, ScalerFitted] = {}
        self._latest: dict[int, int] = {}  # of a scaler
        when_imported(session.stack, MODULE, self.patch)

    def patch(self, module: ModuleType) -> None:
        if not self.session.active:
            return
        for name in CLASSES:
            owner = getattr(module, name, None)
            if isinstance(owner, type):
                patching.replace(self.session.stack, owner, "fit", lambda original: _observed_fit(original, self))
                patching.replace(
                    self.session.stack, owner, "transform", lambda original: _observed_transform(original, self)
                )

    def fitted(self, scaler: Any, table: Any, site: Site | None) -> None:
        shape = getattr(table, "shape", None) or np.shape(table)
        if len(self._fits) >= FITS or len(shape) != 2:
            return
        centre = next(
            (
                getattr(scaler, name)
                for name in ("mean_", "data_min_", "center_")
                if getattr(scaler, name, None) is not None
            ),
            (),
        )
        scale = next(
            (getattr(scaler, name) for name in ("data_range_", "scale_") if getattr(scaler, name, None) is not None), ()
        )
        number = len(self._fits) + 1
        made = ScalerFitted(
            step=self.session.step,
            key=f"scaler-{number}",
            id=number,
            scaler=self.session.ids.of(scaler),
            class_name=type(scaler).__name__,
            site=site,
            rows=int(shape[0]),
            columns=int(shape[1]),
            centre=_numbers(centre),
            scale=_numbers(scale),
        )
        self._fits[number] = made
        self._latest[made.scaler] = number
        self.session.emit(made)

    def transformed(self, scaler: Any, outcome: Any, site: Site | None) -> None:
        number = self._latest.get(self.session.ids.of(scaler))
        if number is None or len(self._fits[number].parts) >= PARTS:
            return
        table = np.asarray(outcome)
        if table.ndim != 2 or len(table) == 0 or table.dtype.kind != "f":
            return
        table = table[:, :COLUMNS]
        part = Part(len(table), _numbers(table.mean(axis=0)), _numbers(table.std(axis=0)), site)
        made = self._fits[number] = replace(self._fits[number], parts=(*self._fits[number].parts, part))
        self.session.emit(made)


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(float(f"{value:.6g}") for value in np.asarray(values, dtype=float).reshape(-1)[:COLUMNS].tolist())
