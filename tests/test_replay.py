"""Replays in a forked child: what comes back, and that nothing else does."""
from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from traindx.probes import replay
from traindx.probes.recorder import Recorder
from traindx.probes.replay import Outcome, Replays
from traindx.probes.session import Session


@pytest.fixture
def session():
    session = Session(Recorder(None))
    session.add(Replays)
    yield session
    session.close()


def asked(session, function, **options) -> Outcome:
    outcomes: list[Outcome] = []
    assert replay.ask(session, "test", function, outcomes.append, **options)
    deadline = time.monotonic() + 15
    while not outcomes and time.monotonic() < deadline:
        session.call("on_tick", 1)
        time.sleep(0.002)
    return outcomes[0]


def has_ended(pid: int) -> bool:
    """Gone, or a zombie of an init that does not reap."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_the_value_comes_back_and_nothing_else(session):
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout())
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)  # what its first use imports, a program has imported

    def train():
        loss = model(torch.randn(8, 3)).square().sum()
        loss.backward()
        optimizer.step()
        print("not seen")
        return [float(loss.detach()), os.getpid()]
    outcome = asked(session, train, about=[model])
    value = outcome.value
    assert value, outcome.why
    assert value[0] > 0 and value[1] != os.getpid()
    assert torch.equal(random, torch.get_rng_state())
    assert all(torch.equal(weights[name], now) for name, now in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())


def test_no_child_of_ours_is_left_and_the_users_wait_meets_its_own(session):
    child = os.fork()
    if child == 0:
        os._exit(waits_for_its_own(session))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def waits_for_its_own(session):
    """In a process without other children: 0 where the user's child is the only one that waiting meets."""
    child = os.fork()
    if child == 0:
        time.sleep(0.05)
        os._exit(7)
    if asked(session, lambda: 1).value != 1:
        return 1
    pid, status = os.wait()
    if (pid, os.waitstatus_to_exitcode(status)) != (child, 7):
        return 2
    try:
        os.wait()
    except ChildProcessError:
        return 0
    return 3


def test_a_failure_is_not_checked(session):
    def fails():
        raise ValueError("no")
    assert "ValueError: no" in asked(session, fails).why
    assert asked(session, object).why
    assert asked(session, lambda: os._exit(1)).why


def test_one_that_hangs_is_ended(session):
    def hangs():
        import threading
        threading.Lock().acquire()
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()
    began = time.monotonic()
    assert "too long" in asked(session, hangs, seconds=0.3).why
    assert time.monotonic() - began < 5


def test_at_the_end_it_is_waited_for_shortly_and_then_killed(session, monkeypatch):
    monkeypatch.setattr(replay, "LAST_WAIT", 0.2)
    pids: list[int] = []
    outcomes: list[Outcome] = []
    assert replay.ask(session, "a", lambda: time.sleep(30), outcomes.append)
    time.sleep(0.2)
    Replays.instance._poll()
    pids.append(Replays.instance._running.pid)
    session.call("at_end")
    assert "program ended" in outcomes[0].why
    assert has_ended(pids[0])


def test_files_cannot_be_written(session, tmp_path):
    assert "PermissionError" in asked(session, lambda: open(tmp_path / "x", "w").close()).why
    assert asked(session, lambda: len(Path(__file__).read_text())).value > 0
    assert not (tmp_path / "x").exists()


def test_one_at_a_time_and_only_a_few(session):
    kept: list[Outcome] = []
    assert replay.ask(session, "b", lambda: time.sleep(0.2), kept.append)
    assert not replay.ask(session, "c", lambda: 1, kept.append)
    session.call("at_end")
    assert len(kept) == 1
    for _ in range(replay.MOST_PER_NAME):
        assert asked(session, lambda: 2).value == 2
    assert "enough" in asked(session, lambda: 2).why


def test_shared_weights_are_not_replayed(session):
    model = nn.Linear(2, 2).share_memory()
    assert "private" in asked(session, lambda: 1, about=[model]).why
