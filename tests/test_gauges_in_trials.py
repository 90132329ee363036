"""All gauges on programs as users write them, run by the real tracer in a forked child."""
from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from traindx.core.trials import Budget, Condition, Gauge, Program, Trace, Trial
from traindx.gauges import names
from traindx.perform import perform

PROGRAM = """
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
x, y = torch.randn(64, 6), torch.randint(3, (64,))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=16, shuffle=True)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.2))
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        hidden = self.body(x)
        {inside}
        return self.head(hidden)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(3):
    for x_b, y_b in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x_b), y_b)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    torch.save(model.state_dict(), "last.pt")
"""


def line_of(words):
    return next(i for i, line in enumerate(PROGRAM.splitlines(), 1) if words in line)


def run(tmp_path: Path, inside: str = "pass", gauges=(), conditions=(), steps=12) -> Trace:
    """The trial in a fork: its messages come back over a file."""
    (tmp_path / "train.py").write_text(PROGRAM.replace("{inside}", inside))
    messages = tmp_path / "messages.jsonl"
    child = os.fork()
    if child == 0:
        with messages.open("w", buffering=1) as out:
            os.chdir(tmp_path)
            trial = Trial(Program("train.py"), tuple(conditions), tuple(Gauge(name) for name in gauges), Budget(steps))
            try:
                perform(trial, lambda message: print(json.dumps(message), file=out), tmp_path / "recording")
            finally:
                os._exit(0)
    os.waitpid(child, 0)
    trace = Trace()
    for line in messages.read_text().splitlines():
        trace.take(json.loads(line))
    messages.unlink()
    return trace


def test_every_gauge_tells_of_an_ordinary_program_and_moves_nothing(tmp_path):
    plain, measured = run(tmp_path), run(tmp_path, gauges=names())
    assert measured.losses == plain.losses and len(plain.losses) == 12
    facts = measured.facts
    assert set(names()) <= set(facts) and not [name for name in names() if "not_measured" in facts[name]]
    assert facts["initial_loss"]["formula"] == "ln 3" and facts["initial_loss"]["site"]["line"] == line_of("loss = F.cross_entropy")
    assert facts["eval_twice"]["equal"] and facts["batch_dependence"]["mixes"] is False and facts["nonfinite"]["found"] is False
    assert facts["descends"]["descent"] == pytest.approx(1, abs=1e-5) and facts["sharpness"]["converged"]
    assert [layer["layer"] for layer in facts["layers"]["measured"][0]["layers"]] == ["body.0", "body.1", "body.2", "head"]
    assert facts["precision_scale"]["clip"][0]["site"]["line"] == line_of("clip_grad_norm_")
    assert facts["resume_state"]["missing"] == ["counter", "optimizer", "rng"]


@pytest.mark.parametrize("inside, gauge, told", [
    ("hidden = hidden.log()", "nonfinite", {"op": "log", "phase": "forward"}),
    ("hidden = hidden - hidden.mean(0)", "batch_dependence", {"op": "mean"}),
    ("hidden = F.dropout(hidden, 0.5)", "eval_twice", {"op": "dropout"}),
])
def test_a_fault_is_named_by_its_line_also_under_the_tracer(tmp_path, inside, gauge, told):
    fact = run(tmp_path, inside, [gauge], steps=2).facts[gauge]
    culprit = fact.get("culprit") or fact
    assert {key: culprit[key] for key in told} == told and culprit["site"]["line"] == line_of("{inside}")


def test_under_a_condition_the_gauges_see_what_the_loss_sees(tmp_path):
    pinned = run(tmp_path, gauges=["label_floor", "initial_loss"], conditions=[Condition("pin_batch", {"samples": 4}), Condition("no_dropout")], steps=4)
    samples = pinned.facts["label_floor"]["samples"]
    assert samples == pinned.facts["initial_loss"]["samples"] and pinned.conditions["no_dropout"].state == "applied"
    assert torch.isfinite(torch.tensor(pinned.losses)).all()
