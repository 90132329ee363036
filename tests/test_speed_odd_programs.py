"""Programs of which no step, or only few, can be timed: the report says what they did instead."""
from __future__ import annotations

import pytest

from speed_driver import speeding
from traindx.errors import UsageError


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
