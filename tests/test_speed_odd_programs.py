"""Programs of which no step, or only few, can be timed: the report says what they did instead."""
from __future__ import annotations

import pytest

from speed_driver import speeding
from traindx.errors import UsageError
from traindx.speed.asking import Answer


@pytest.mark.parametrize(("source", "said"), [
    ("print('no training')", "came to its end too early"),
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


LOOP = """import torch
w = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(w.parameters(), lr=0.1)
def train(steps):
    for _ in range(steps):
        opt.zero_grad()
        w(torch.ones(4, 2)).mean().backward()
        opt.step()
"""


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
