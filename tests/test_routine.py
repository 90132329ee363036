"""Runs that repeat are let alone between bursts: nothing is counted wrongly, and what changes late is seen as before."""
from __future__ import annotations

import pytest

from conftest import dump, loud
from traindx.core.observed import ProbeFailed
from traindx.core.observed.learning import RateSeen
from traindx.core.observed.mode import ForwardPass, TrainedInMode
from traindx.core.observed.program import Event, Window
from traindx.probes import routine
from traindx.probes.routine import Routine, detailed_step, scheduled

LOOP = """
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()
for step in range(1, {steps} + 1):
    {body}
"""
STEP = "optimizer.zero_grad(); loss = criterion(model(x), y); loss.backward(); optimizer.step()"


@pytest.fixture
def eager(monkeypatch):
    """As many steps as possible are let alone, from early on."""
    monkeypatch.setattr(routine, "BEGIN", 16)
    monkeypatch.setattr(routine, "SHARE", 1e-9)


def program(body=STEP, steps=240):
    return LOOP.format(body=body.replace("\n", "\n    "), steps=steps)


def noted(windows, ours=1.0, step=0.001):
    found = Routine()
    for name in windows:
        found.note([Event(name, None)])
        found.took(step, ours)
    return found


def test_a_period_is_found_only_where_windows_repeat():
    assert noted("aaaa")._found_period() == 1
    assert noted("aaa")._found_period() == 0
    assert noted("dgdgdg")._found_period() == 2
    assert noted("ddgddgddg")._found_period() == 3
    assert noted("aaaabaab")._found_period() == 0


def test_a_run_is_never_let_alone_over_a_step_that_is_looked_at_closely():
    for begin in (*range(routine.BEGIN + 1, 600), *range(2000, 2100), *range(2400, 2510)):
        found = noted("aaaaaa")
        gap = found.gap(begin)
        assert gap <= routine.LONGEST
        assert not any(scheduled(step) for step in range(begin, begin + gap + (routine.MARGIN + 1 if gap else 0)))


def test_every_closely_watched_step_is_scheduled():
    assert all(scheduled(step) for step in range(1, 5000) if detailed_step(step) or step & (step - 1) == 0)


def test_new_cheap_and_irregular_runs_are_watched_in_full():
    assert noted("aaaaaa").gap(routine.BEGIN) == 0
    assert noted("aaaaaa", ours=0.5 * routine.SHARE * 0.001).gap(1030) == 0
    assert noted("abcabd").gap(1030) == 0
    unusual = Routine()
    for _ in range(8):
        unusual.note([Event("loss", None, 0, "cross_entropy no_grad"), Event("step", None)])
        unusual.took(0.001, 1.0)
    assert unusual.gap(1030) == 0


def test_counts_are_those_of_all_steps(observe, eager):
    recording = observe(program())
    windows = recording.of(Window)
    assert recording.of(ProbeFailed) == []
    assert sum(window.count for window in windows) == 240 and max(window.last_step for window in windows) == 240
    [forwards] = recording.of(ForwardPass)
    assert (forwards.count, forwards.backward, forwards.idle, forwards.steps) == (240, 240, 0, 240)
    assert [stretch.steps for trained in recording.of(TrainedInMode) for stretch in trained.stretches] == [240]
    [rate] = recording.of(RateSeen)
    assert (rate.steps, rate.last_step, rate.falls, rate.low_steps) == (240, 240, 0, 0)
    assert [step for step, _ in recording.series["loss"]] == list(range(1, 241))
    assert [step for step, _ in recording.series["lr"]] == list(range(1, 241))


def test_most_steps_of_such_a_run_are_let_alone(observe, eager):
    recording = observe(program(body=STEP + "\nfrom traindx.probes.session import Session"
                                            "\nalone = globals().get('alone', 0) + Session.current.coasting"
                                            "\nif step == 240: print('alone', alone)"))
    assert int(recording.output.split()[-1]) > 120


def test_networks_that_take_turns_are_let_alone_and_counted(observe, eager):
    recording = observe(program(body="""optimizer.zero_grad(); criterion(model(x), y).backward(); optimizer.step()
if step == 1: critic = nn.Linear(8, 1); other = torch.optim.SGD(critic.parameters(), lr=0.1)
other.zero_grad(); critic(x).pow(2).mean().backward(); other.step()""", steps=200))
    assert sorted(each.count for each in recording.of(ForwardPass)) == [200, 200]
    assert sorted(each.backward for each in recording.of(ForwardPass)) == [200, 200]
    assert sorted(rate.steps for rate in recording.of(RateSeen)) == [200, 200]


LATE = {
    "zero_grad goes missing": "if step < 140: optimizer.zero_grad()\nloss = criterion(model(x), y); loss.backward(); optimizer.step()",
    "the log of zero": """optimizer.zero_grad(); out = model(x)
loss = criterion(out, y) + torch.log((0 * out + 1) * (step < 171)).mean(); loss.backward(); optimizer.step()""",
    "an infinite slope": """optimizer.zero_grad(); out = model(x)
loss = criterion(out, y) + (out * (step < 171)).abs().sqrt().mean(); loss.backward(); optimizer.step()""",
    "a bad row": """if step == 171: x[7, 2] = float('nan')
optimizer.zero_grad(); loss = criterion(model(x), y); loss.backward(); optimizer.step()""",
    "losses are kept": f"{STEP}; kept = globals().get('kept', []) + [loss]",
    "an evaluation that drops": f"{STEP}\nif step % 30 == 0:\n    with torch.no_grad(): print(float(criterion(model(x), y)))",
    "an optimizer made anew": f"if step > 140: optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)\n{STEP}",
    "a rate of zero": f"if step == 110: optimizer.param_groups[0]['lr'] = 0.0\n{STEP}",
}


@pytest.mark.parametrize("fault", LATE)
def test_what_goes_wrong_late_is_named_as_if_every_step_were_watched(fault, diagnose, monkeypatch):
    monkeypatch.setattr(routine, "BEGIN", 1 << 60)
    watched = diagnose(program(LATE[fault]))
    monkeypatch.setattr(routine, "BEGIN", 16)
    monkeypatch.setattr(routine, "SHARE", 1e-9)
    alone = diagnose(program(LATE[fault]))
    assert loud(watched), watched.metadata["output"]
    assert set(loud(alone)) <= set(loud(watched)), dump(alone)
    first, found = watched.findings[0], alone.findings[0]  # its level may hang on a budget of time
    assert (found.rule, found.finding.where) == (first.rule, first.finding.where), dump(alone)


def test_the_step_at_which_a_loss_breaks_is_named_exactly(diagnose, eager):
    report = diagnose(program(LATE["the log of zero"]))
    assert report.findings[0].rule == "numeric/nonfinite" and report.findings[0].finding.first_step == 171, dump(report)


def test_nothing_changes_in_what_is_computed(observe, eager):
    end = STEP + "\nif step == 240: print(sum(float(p.double().sum()) for p in model.parameters()), torch.rand(1).item())"
    watched = observe(program(end)).output
    exec(compile(program(end), "plain", "exec"), scope := {"__name__": "plain", "print": lambda *said: scope.update(said=said)})
    assert watched.split() == [str(value) for value in scope["said"]]
