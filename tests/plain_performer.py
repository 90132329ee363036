"""A performer for tests of the engine: runs the script as python would, a message per optimizer step, no conditions."""
from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

from traindx.core.trials import Step, to_json


def perform(trial, send, folder: Path) -> None:
    sys.argv = [trial.program.script, *trial.program.args]
    sys.path.insert(0, os.path.dirname(os.path.abspath(trial.program.script)))
    count = 0

    def after_step(*_):
        nonlocal count
        count += 1
        send({"step": to_json(Step(count, loss=getattr(torch, "test_loss", None)))})
        if count >= trial.budget.steps:
            send({"end": {"ended": "steps"}})
            os._exit(0)
    register_optimizer_step_post_hook(after_step)
    (folder / "events.jsonl").write_text(json.dumps({"script": os.path.abspath(trial.program.script)}) + "\n")
    runpy.run_path(trial.program.script, run_name="__main__")
