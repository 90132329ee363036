"""A traceback under observation is that of python alone, to the letter."""
from __future__ import annotations

import subprocess
import sys
import threading
import traceback

import pytest
import torch
from torch import nn

from traindx.errors import reason
from traindx.probes import tracebacks
from traindx.probes.attach import attach

PROGRAM = """\
import logging, threading, torch, traceback
from torch import nn
net = nn.Linear(8, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    loss = nn.functional.cross_entropy(net(torch.randn(4, 8)), torch.tensor([0, 1, 2, 0]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
float(net(torch.randn(1, 8)).sum())  # warns in C++
nn.functional.mse_loss(torch.randn(3, 1, requires_grad=True), torch.randn(3))  # warns at its caller
for fault in (loss.backward, lambda: net(torch.randn(4, 7)), lambda: torch.ones(3, 4) @ torch.ones(3, 4)):
    try:
        fault()
    except RuntimeError:
        logging.exception("caught")
def again():
    try:
        loss.backward()
    except RuntimeError as problem:
        raise ValueError("because of that") from problem
thread = threading.Thread(target=again, name="other")
thread.start()
thread.join()
nn.functional.cross_entropy(net(torch.randn(4, 8)), torch.tensor([0, 1, 2, 7]))
"""


def test_every_way_of_showing_it_shows_the_users_frames_alone(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    alone, watched = (subprocess.run([sys.executable, *how, "train.py"], cwd=tmp_path, capture_output=True, text=True, timeout=900, check=False)
                      for how in ([], ["-m", "traindx", "run", "--no-record"]))
    assert alone.returncode == watched.returncode == 1 and "bounds" in alone.stderr
    assert watched.stderr.startswith(alone.stderr), watched.stderr


def test_what_the_program_catches_is_untouched_and_afterwards_all_is_as_before():
    before = sys.excepthook, threading.excepthook, traceback.TracebackException.__init__
    session = attach(None)
    try:
        nn.functional.cross_entropy(torch.randn(4, 3), torch.tensor([0, 1, 2, 7]))
    except IndexError as problem:
        inside = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(problem.__traceback__)]
        assert any(tracebacks.sites.is_ours(file) for file in inside), "the exception itself has its frames"
        assert not any("traindx/probes" in line for line in traceback.format_exception(problem))
        assert tracebacks.cleaned(None) is None
    finally:
        session.close()
    assert (sys.excepthook, threading.excepthook, traceback.TracebackException.__init__) == before


@pytest.mark.parametrize(("problem", "said"), [(PermissionError(13, "Permission denied"), "Permission denied"), (OSError("odd"), "odd"), (OSError(), "OSError")])
def test_the_systems_words_are_framed(problem, said):
    assert reason(problem).en == said and reason(problem).zh == f"系统提示「{said}」"
