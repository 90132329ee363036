"""Programs of which no step, or only few, can be timed: the report says what they did instead."""
from __future__ import annotations

import pytest

from speed_driver import speeding
from traindx.core.text import same
from traindx.errors import UsageError
from traindx.reporters.speed import setting_text
from traindx.speed.asking import Answer
from traindx.speed.reading import baseline_of

LOOP = """import torch
w = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(w.parameters(), lr=0.1)
def train(steps):
    while (steps := steps - 1) >= 0:
        opt.zero_grad()
        w(torch.ones(4, 2)).mean().backward()
        opt.step()
"""


@pytest.mark.parametrize(("source", "said"), [
    ("print('no training')", "without training: no model was called"),
    (LOOP + "train(4)", "after 4 training steps; about 30 are needed"),
    (LOOP + "train(2)\nraise ValueError('bad row')", "ValueError: bad row (train.py:10), after 2 training steps"),
    ("raise AssertionError('this script needs a GPU')", "asks for a GPU"),
    ("import torch\nw = torch.nn.Linear(2, 1)\nfor _ in range(3):\n    w(torch.ones(4, 2)).mean().item()\n", "called 3 times, but no backward"),
    ("raise RuntimeError('CUDA is not there')", "asks for a GPU")])
def test_a_program_without_steps_is_told_what_it_did_instead(source, said, tmp_path):
    (tmp_path / "train.py").write_text(source)
    with pytest.raises(UsageError) as told:
        speeding(tmp_path / "train.py", tmp_path).diagnose()
    assert said in told.value.text.en


def test_a_program_that_breaks_off_says_so_instead_of_how_many_steps_there_were(tmp_path):
    (tmp_path / "train.py").write_text(
        "import torch\nw = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(w.parameters(), lr=0.1)\nfor at in range(9):\n"
        "    w(torch.ones(4, 2)).mean().backward()\n    opt.step()\n    1 / (6 - at)\n")
    speed = speeding(tmp_path / "train.py", tmp_path)
    speed.diagnose()
    assert speed.report.verdict == "not-measured"
    assert "ZeroDivisionError" in speed.report.why.en and "after 7 training steps" in speed.report.why.en


@pytest.mark.parametrize(("ending", "said"), [
    ("train(60)", ""),  # over before torch.profiler's turn: another run is for it
    ("train(12)", "came to its end"),
    ("with torch.profiler.profile() as own:\n    train(60)\nassert len(own.key_averages()) > 5", "a profiler of its own")])
def test_what_torchs_profiler_says_or_why_it_says_nothing(ending, said, tmp_path):
    (tmp_path / "train.py").write_text(LOOP + ending)
    speed = speeding(tmp_path / "train.py", tmp_path)
    answer = Answer({}, ended="script")
    profiled = speed._profiled(answer)
    assert said in profiled.why.en and bool(said) == (not profiled.shares) and not answer.error
    assert [job["kind"] for job in speed.asker.asked] == ["trace"]


ADDING = """import torch
w = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(w.parameters(), lr=0.1)
for at in range(60):
    for part in range(3):
        w(torch.ones(4, 2)).mean().backward()
    opt.step()
    opt.zero_grad()
"""
ONE_BATCH = ADDING.replace("    for part", "    x = torch.ones(4, 2)\n    for part").replace("w(torch.ones(4, 2))", "w(x)")
TURNS = """import torch
one, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)
first, second = (torch.optim.SGD(net.parameters(), lr=0.1) for net in (one, other))
for at in range(60):
    for opt in (first, second):
        opt.zero_grad()
        other(one(torch.ones(4, 2))).mean().backward()
        opt.step()
"""


@pytest.mark.parametrize(("source", "accumulated", "optimizers"), [(ADDING, 3, 1), (ONE_BATCH, 1, 1), (TURNS, 1, 2)],
                         ids=["three batches", "one batch three times", "two optimizers"])
def test_a_step_may_add_up_batches_or_be_one_of_several_optimizers(source, accumulated, optimizers, tmp_path):
    (tmp_path / "train.py").write_text(source)
    speed = speeding(tmp_path / "train.py", tmp_path)
    found = baseline_of(speed.ask(same(""), {"kind": "pairs", "groups": [], "rounds": 0}, {}))
    assert (found.accumulated, found.optimizers, found.batch) == (accumulated, optimizers, 4)
    assert found.samples_per_second == pytest.approx(4 * accumulated / found.step_seconds)
    assert ("accumulated" in setting_text(found).en, "优化器" in setting_text(found).zh) == (accumulated > 1, optimizers > 1)


def test_a_program_too_short_to_be_taken_apart_still_has_its_steps_under_torchs_profiler(tmp_path):
    (tmp_path / "train.py").write_text(LOOP + "train(15)")
    speed = speeding(tmp_path / "train.py", tmp_path)
    speed.diagnose()
    report = speed.report
    assert report.verdict == "not-measured" and "too early" in report.why.en
    assert report.profiled.steps > 1 and any(one.name == "aten::addmm" for one in report.profiled.operators)
