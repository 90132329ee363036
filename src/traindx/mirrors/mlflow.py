"""MLflow: server and experiment by its own environment variables (MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME)."""
from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from traindx.mirrors import About, Rows

METRICS_A_CALL, PARAMS_A_CALL = 1000, 100  # limits of the protocol
LONGEST = 500  # characters of a parameter
STATUS = {"finished": "FINISHED", "failed": "FAILED"}


class Mirror:
    """By the client alone: no global state of mlflow in our process is touched."""

    def begin(self, about: About) -> None:
        from mlflow import MlflowClient
        self._client = MlflowClient()
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME") or Path.cwd().name
        known = self._client.get_experiment_by_name(name)
        experiment = known.experiment_id if known is not None else self._client.create_experiment(name)
        tags = {"mlflow.source.name": about.script, "traindx.argv": " ".join(about.argv)[:LONGEST], "traindx.run": str(about.folder)}
        self._run = self._client.create_run(experiment, tags=tags, run_name=about.name).info.run_id

    def settings(self, values: Mapping[str, Any]) -> None:
        from mlflow.entities import Param
        params = [Param(_key(name), str(value)[:LONGEST]) for name, value in values.items()]
        for start in range(0, len(params), PARAMS_A_CALL):
            self._client.log_batch(self._run, params=params[start:start + PARAMS_A_CALL])

    def scalars(self, rows: Rows) -> None:
        from mlflow.entities import Metric
        now = int(time.time() * 1000)
        metrics = [Metric(_key(name), value, now, step) for step, name, value in _flat(rows)]
        for start in range(0, len(metrics), METRICS_A_CALL):
            self._client.log_batch(self._run, metrics=metrics[start:start + METRICS_A_CALL])

    def end(self, status: str, findings: Sequence[str]) -> None:
        self._client.set_tag(self._run, "traindx.findings", ", ".join(findings)[:LONGEST])
        self._client.set_terminated(self._run, STATUS.get(status, "KILLED"))


def _flat(rows: Rows) -> Iterator[tuple[int, str, float]]:
    for step, values in rows:
        for name, value in values.items():
            yield step, name, value


def _key(name: str) -> str:
    """Letters, digits, and the few signs that MLflow allows."""
    return "".join(letter if letter.isalnum() or letter in "_-./ " else "_" for letter in name)[:250]
