"""``%load_ext traindx`` and ``%%traindx`` in an IPython shell: the cell runs, its report comes below it, its lines are the cell's own."""
from __future__ import annotations

import subprocess
import sys

import pytest
import torch

pytest.importorskip("IPython")
from IPython.core.interactiveshell import InteractiveShell

from traindx.probes import sites
from traindx.probes.session import Session

SETUP = """import torch
from torch import nn
torch.manual_seed(0)
x = torch.randn(128, 6)
y = (x[:, 0] > 0).long()
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2), nn.Softmax(1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
"""
TRAIN = """
for _ in range(6):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
answer = 6 * 7
"""


@pytest.fixture
def shell(monkeypatch):
    """A shell of its own; what it would display is kept in ``shell.shown``."""
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "traindx")
    shell.shown = []
    monkeypatch.setattr("IPython.display.display", shell.shown.append)
    yield shell
    shell.run_line_magic("unload_ext", "traindx")
    assert sites.naming is None and Session.current is None


def test_the_fault_is_named_at_the_cells_own_line(shell):
    assert shell.run_cell(SETUP, store_history=True).success
    assert shell.run_cell("%%traindx en" + TRAIN, store_history=True).success
    [shown] = shell.shown
    assert [judged.rule for judged in shown.findings if judged.level == "error"] == ["loss/double-softmax"]
    where = shown.findings[0].finding.where
    assert (where.file, where.line) == ("Cell In[2]", 4) and where.code.startswith("loss = nn.functional.cross_entropy")
    assert "Cell In[2]:4" in str(shown) and "Cell In[2]:4" in shown._repr_html_()
    assert shell.user_ns["answer"] == 42


def test_the_language_may_be_named(shell):
    shell.run_cell(SETUP)
    shell.run_cell("%%traindx --lang zh" + TRAIN)
    assert any("一" <= letter <= "鿿" for letter in str(shell.shown[0]))


def test_an_unknown_word_says_what_may_stand_there(shell, capsys):
    result = shell.run_cell("%%traindx please\nleft = 1")
    said = capsys.readouterr()
    assert not result.success and "en or zh" in said.out + said.err and "Traceback" not in said.out + said.err
    assert "left" not in shell.user_ns and shell.shown == []


def test_a_cell_that_raises_shows_its_report_and_fails(shell, capsys):
    shell.run_cell(SETUP)
    result = shell.run_cell("%%traindx en" + TRAIN + "raise ValueError('a fault of the cell')")
    assert not result.success and len(shell.shown) == 1
    said = capsys.readouterr()
    assert (said.out + said.err).count("a fault of the cell") <= 3 and "CellFailed" not in said.out + said.err
    assert [judged.rule for judged in shell.shown[0].findings][:1] == ["loss/double-softmax"]


def test_the_training_is_the_same_to_the_last_bit(shell):
    weights = []
    for first in ("", "%%traindx en"):
        shell.run_cell(SETUP)
        shell.run_cell(first + TRAIN)
        weights.append(torch.cat([p.detach().flatten() for p in shell.user_ns["model"].parameters()]))
    assert torch.equal(*weights)


def test_without_a_notebook_ipython_is_not_imported():
    code = "import sys, traindx; traindx.watch; import traindx.notebook; assert 'IPython' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
