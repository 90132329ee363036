"""Weights & Biases: project and mode by its own environment variables (WANDB_PROJECT, WANDB_MODE=offline ...)."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from traindx.mirrors import About, Rows

STEP = "step"
OFFLINE = ("offline", "disabled", "dryrun")
# of our own process nothing is told: not its arguments, its git repository, its machine, its output
SETTINGS = {"silent": True, "console": "off", "disable_git": True, "disable_code": True, "disable_job_creation": True,
            "x_disable_meta": True, "x_disable_stats": True, "x_disable_machine_info": True}


class Mirror:
    """A run of its own: one that the program itself keeps at W&B is left alone."""

    def begin(self, about: About) -> None:
        import wandb
        if os.environ.get("WANDB_MODE") not in OFFLINE and not _logged_in(wandb):
            raise PermissionError("not logged in: run `wandb login` once, or set WANDB_MODE=offline")
        known = {name: value for name, value in SETTINGS.items() if name in wandb.Settings.model_fields}
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT") or Path.cwd().name, name=about.name, dir=str(about.folder), job_type="traindx",
            config={"script": about.script, "argv": list(about.argv)}, settings=wandb.Settings(**known, program=about.script))
        self._run.define_metric("*", step_metric=STEP)

    def settings(self, values: Mapping[str, Any]) -> None:
        self._run.config.update(dict(values), allow_val_change=True)

    def scalars(self, rows: Rows) -> None:
        for step, values in rows:
            self._run.log({STEP: step, **values})

    def end(self, status: str, findings: Sequence[str]) -> None:
        self._run.summary.update({"status": status, "findings": list(findings)})
        self._run.finish(exit_code=0 if status == "finished" else 1)


def _logged_in(wandb: Any) -> bool:
    """Without asking on the terminal: its input is the program's."""
    try:
        return bool(wandb.login(prompt=False))
    except TypeError:  # before 0.2x: it has no such option
        return bool(wandb.api.api_key)
