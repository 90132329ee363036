"""Checkpoints as programs write them: what they hold is recognised, what is missing is named."""
from __future__ import annotations

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn

from traindx.core.trials import Gauge
from trial_driver import trial


def train(tmp_path, contents, scheduler=True, scaler=False):
    with trial(Gauge("resume_state")) as facts:
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        optimizer = torch.optim.Adam(model.parameters(), 0.1)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2) if scheduler else None
        scale = torch.amp.GradScaler("cpu", enabled=scaler)
        average = copy.deepcopy(model)
        for _ in range(2):
            scale.scale(model(torch.randn(8, 4)).square().mean()).backward()
            scale.step(optimizer)
            scale.update()
            if schedule:
                schedule.step()
        torch.save(contents(model, optimizer, schedule, scale, average, 1), tmp_path / "last.pt")
    return facts["resume_state"]


def test_weights_alone_cannot_go_on(tmp_path):
    found = train(tmp_path, lambda model, *_: model.state_dict())
    save = found["saves"][0]
    assert (save["file"], save["step"]) == ("last.pt", 2) and save["site"]["file"].endswith("test_gauges_resume.py")
    assert save["holds"] == [{"what": "module", "class": "Sequential", "part": None, "complete": True, "live": True, "at": ""}]
    assert found["missing"] == ["counter", "optimizer", "rng", "scheduler"]


def test_a_whole_checkpoint_misses_nothing(tmp_path):
    def contents(model, optimizer, schedule, scale, average, step):
        return {"model": model.state_dict(), "optim": optimizer.state_dict(), "sched": schedule.state_dict(), "epoch": step,
                "scaler": scale.state_dict(), "rng": {"torch": torch.get_rng_state(), "py": random.getstate(), "np": np.random.get_state()}}
    found = train(tmp_path, contents, scaler=True)
    assert found["missing"] == []
    held = {part["at"]: part for part in found["saves"][0]["holds"]}
    assert held["optim"] == {"what": "optimizer", "groups": 1, "moments": True, "at": "optim"}
    assert {at: part["of"] for at, part in held.items() if part["what"] == "rng"} == {"rng.torch": "torch", "rng.py": "python", "rng.np": "numpy"}
    assert held["epoch"]["value"] == 1 and held["scaler"]["what"] == "scaler"


@pytest.mark.parametrize("contents, expected", [
    (lambda model, optimizer, schedule, scale, average, step: average.state_dict(), {"complete": True, "live": False}),
    (lambda model, *_: model[0].state_dict(), {"complete": False, "live": True, "class": "Linear", "part": "0"}),
    (lambda model, *_: {f"module.{k}": v for k, v in model.state_dict().items()}, {"complete": True, "live": True}),
    (lambda model, *_: model, {"complete": True, "class": "Sequential"}),
])
def test_averages_parts_and_wrapped_names_are_told_apart(tmp_path, contents, expected):
    part = train(tmp_path, contents)["saves"][0]["holds"][0]
    assert {key: part[key] for key in expected} == expected


def test_what_the_program_does_not_use_is_not_missed(tmp_path):
    assert train(tmp_path, lambda model, *_: model.state_dict(), scheduler=False)["missing"] == ["counter", "optimizer", "rng"]
    with trial(Gauge("resume_state")) as facts:
        nn.Linear(2, 2)(torch.zeros(1, 2))
    assert "no checkpoint" in facts["resume_state"]["not_measured"]["en"]
