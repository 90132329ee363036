"""Event files for TensorBoard in ``tensorboard/`` of the run folder, written as the run goes on; no dependency."""
from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from traindx.mirrors import About, Rows
from traindx.runs.exporting import EventFile


class Mirror:
    """``tensorboard --logdir runs`` shows all runs."""

    def begin(self, about: About) -> None:
        self._file = EventFile(about.folder / "tensorboard", time.time())

    def settings(self, values: Mapping[str, Any]) -> None:
        """TensorBoard's event files hold curves only."""

    def scalars(self, rows: Rows) -> None:
        now = time.time()
        for step, values in rows:
            for name, value in values.items():
                self._file.scalar(now, step, name, value)
        self._file.flush()

    def end(self, status: str, findings: Sequence[str]) -> None:
        self._file.close()
