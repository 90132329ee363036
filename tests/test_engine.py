"""Trials in children of a warm server: same results as in a new interpreter, held to budgets, nothing left running."""
from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from traindx.core.text import EMPTY
from traindx.core.trials import Budget, Program, Trace, Trial, ending
from traindx.engine import local, preload, processes, warden
from traindx.engine.child import stack_frames
from traindx.engine.local import Interrupted, LocalEngine

HERE = Path(__file__).parent
PERFORMER = "plain_performer:perform"
TRAINING = """
import random, sys
import numpy as np, torch
torch.manual_seed(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
data = torch.utils.data.TensorDataset(torch.randn(96, 8), torch.randn(96, 1))
loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
for epoch in range(100):
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        torch.test_loss = loss.item()
        optimizer.step()
"""


@pytest.fixture(autouse=True)
def find_performer(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])))


@pytest.fixture(scope="module")
def warm():
    """One engine for the tests that need nothing special."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE), before]))
    with LocalEngine(performer=PERFORMER, jobs=2) as engine:
        yield engine
    os.environ.pop("PYTHONPATH")
    if before is not None:
        os.environ["PYTHONPATH"] = before


@pytest.fixture
def trial(tmp_path):
    """trial(source, *args, **budget) -> Trial of that script."""
    def make(source, *args, name="train.py", **budget):
        (tmp_path / name).write_text(source)
        return Trial(Program(name, args=args, cwd=str(tmp_path)), budget=Budget(**{"steps": 30, "seconds": 60, **budget}))
    return make


def processes_with(mark: str) -> list[int]:
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark.encode() in Path(f"/proc/{name}/cmdline").read_bytes() or mark.encode() in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
        except OSError:
            continue
    return [one for one in found if one != os.getpid()]


def gone(mark: str, seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while processes_with(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not processes_with(mark)


def is_alone(engine: LocalEngine, seconds: float = 10) -> bool:
    """Whether nothing runs below the engine's server."""
    deadline = time.monotonic() + seconds
    while (left := processes.below(engine._servers[False].process.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left


# -- results ----------------------------------------------------------------------------------------------------------

def test_forked_and_new_interpreters_agree_to_the_last_bit(warm, trial):
    one = trial(TRAINING)
    forked = warm.run([one, one, one])
    with LocalEngine(performer=PERFORMER, isolate=True) as engine:
        fresh = engine.run([one])[0]
        assert engine.why_isolated == "asked for"
    assert [trace.ended for trace in (*forked, fresh)] == ["steps"] * 4
    assert len(fresh.losses) == 30 and all(trace.losses == fresh.losses for trace in forked)


def test_traces_come_in_the_order_of_the_trials_and_messages_as_they_come(warm, trial):
    trials = [trial(TRAINING, str(seed)) for seed in range(3)]
    done, messages = [], []
    traces = warm.run(trials, lambda index, trace: done.append((index, trace)), lambda index, message: messages.append((index, message)))
    assert sorted(index for index, _ in done) == [0, 1, 2] and all(traces[index] is trace for index, trace in done)
    assert len({tuple(trace.losses) for trace in traces}) == 3
    assert [m["step"]["loss"] for i, m in messages if i == 1 and "step" in m] == traces[1].losses


def test_what_one_child_leaves_behind_never_reaches_the_next(warm, trial):
    spoil = """
import os, random, sys, warnings, torch
torch.set_default_dtype(torch.float64)
torch.manual_seed(99); random.seed(99)
torch.nn.functional.relu = None
torch.use_deterministic_algorithms(True)
torch.set_grad_enabled(False)
os.environ["SPOILED"] = "1"; sys.modules["json"] = None; os.chdir("/")
open("/tmp/spoiled", "w").write("x"); open(os.path.expanduser("~/spoiled"), "w").write("x")
"""
    look = """
import json, os, sys, torch
assert torch.get_default_dtype() == torch.float32 and torch.nn.functional.relu and torch.is_grad_enabled()
assert "SPOILED" not in os.environ and not os.path.exists("/tmp/spoiled") and not os.path.exists(os.path.expanduser("~/spoiled"))
assert not torch.are_deterministic_algorithms_enabled() and torch.initial_seed() != 99 and os.getcwd() != "/"
"""
    looking = trial(look, name="look.py")
    first, spoiled, second = warm.run([looking, trial(spoil), looking])
    assert (spoiled.ended, spoiled.error) == ("script", "")
    assert [(trace.ended, trace.error) for trace in (first, second)] == [("script", "")] * 2


def test_what_a_program_draws_without_a_seed_differs_as_it_would(warm, trial):
    one = trial("import random, numpy as np\nprint(random.random(), np.random.rand(), torch.rand(1).item())".replace("import", "import torch,"))
    first, second = (trace.output.split() for trace in warm.run([one, one]))
    assert all(a != b for a, b in zip(first, second, strict=True)) and len(first) == 3


def test_workers_of_a_loader(warm, trial):
    source = TRAINING.replace("shuffle=True", "shuffle=True, num_workers=2")
    workers = warm.run([trial(source)])[0]
    assert workers.ended == "steps" and len(workers.losses) == 30
    assert is_alone(warm)


# -- how a trial ends -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("source, ended, error", [
    ("x = 1", "script", ""),
    ("import sys; sys.exit(0)", "script", ""),
    ("import sys\nsys.exit(3)", "raised", "SystemExit: 3"),
    ("def f():\n    raise ValueError('not so')\nf()", "raised", "ValueError: not so (train.py:2)"),
    ("import torch\ntorch.ones(2) + torch.ones(3)", "raised", "RuntimeError: The size of tensor a (2) must match the size of tensor b (3) at non-singleton "
     "dimension 0 (train.py:2)"),
    ("x = = 1", "raised", "SyntaxError: invalid syntax (train.py, line 1) (train.py:1)"),
    ("import os\nos._exit(5)", "raised", "exit status 5"),
    ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "killed", "ended by SIGKILL (memory may have run out)"),
    ("import ctypes\nctypes.string_at(0)", "killed", "ended by SIGSEGV (train.py:2)"),
    ("name = input('which run? ')", "raised", "EOFError: the program reads its standard input; a re-run has none (train.py:1)"),
    ("import sys\nfor line in sys.stdin: pass", "raised", "EOFError: the program reads its standard input; a re-run has none (train.py:2)"),
])
def test_how_it_ended(warm, trial, source, ended, error):
    trace = warm.run([trial(source)])[0]
    assert (trace.ended, trace.error) == (ended, error)


def test_no_network_is_said_to_be_the_reason(warm, trial):
    trace = warm.run([trial("import urllib.request\nurllib.request.urlopen('http://example.org', timeout=5)")])[0]
    assert trace.ended == "raised" and trace.error.endswith("a re-run has no network unless it is given one (--network)")


def test_a_missing_script_and_a_missing_folder(warm, trial):
    there = trial("x = 1")
    no_script, no_folder = warm.run([Trial(Program("nothing.py", cwd=there.program.cwd)), Trial(Program("train.py", cwd="/nowhere/at/all"))])
    assert no_script.ended == "raised" and "nothing.py" in no_script.error
    assert no_folder.ended in ("refused", "raised") and "/nowhere/at/all" in no_folder.error


def test_a_module_that_cannot_perform_is_refused(trial):
    with LocalEngine(performer="no_such_module:perform", preload=()) as engine:
        trace = engine.run([trial("x = 1")])[0]
    assert trace.ended == "refused" and "no_such_module" in trace.error


def test_figures_of_a_trial(warm, trial):
    trace = warm.run([trial("import time, torch\nx = torch.ones(50_000_000)\nfor _ in range(15): x.add_(1)\ntime.sleep(0.3)\nprint('said')")])[0]
    assert trace.memory > 200e6 and 0.3 < trace.seconds < 60 and 0 < trace.cpu_seconds < 60
    assert trace.output == "said\n" and trace.sandbox in ("overlay", "copy", "guard")


# -- budgets ----------------------------------------------------------------------------------------------------------

def test_a_hang_is_ended_and_its_line_is_named(warm, trial):
    source = "import threading\nlock = threading.Lock()\nlock.acquire()\ndef wait():\n    lock.acquire()\nwait()"
    began = time.monotonic()
    trace = warm.run([trial(source, seconds=1.5)])[0]
    assert trace.ended == "seconds" and time.monotonic() - began < 10
    assert re.fullmatch(r"still running after 1.5 s, and has waited without using the processor for \d s \(train.py:5\)", trace.error)


def test_a_program_that_ignores_signals_and_has_daemons_is_ended_with_all_of_them(warm, trial):
    mark = f"mark-{os.getpid()}-{time.time_ns()}"
    source = f"""
import os, signal, subprocess, time
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
subprocess.Popen(["sleep", "300"], env={{"MARK": {mark!r}}}, start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        subprocess.run(["sleep", "300"], env={{"MARK": {mark!r}}})
    os._exit(0)
while True:
    try:
        time.sleep(100)
    except BaseException:
        pass
"""
    trace = warm.run([trial(source, seconds=1)])[0]
    assert trace.ended == "seconds" and not processes_with(mark)


def test_daemons_of_a_program_that_ends_by_itself_are_ended(warm, trial):
    mark = f"mark-{os.getpid()}-{time.time_ns()}"
    trace = warm.run([trial(f"import subprocess\nsubprocess.Popen(['sleep', '300'], env={{'MARK': {mark!r}}}, start_new_session=True)")])[0]
    assert trace.ended == "script" and not processes_with(mark)


def test_memory_budget(warm, trial):
    source = "import time, torch\nkept = []\nwhile True:\n    kept.append(torch.ones(10_000_000))\n    time.sleep(0.02)"
    trace = warm.run([trial(source, memory=700 << 20)])[0]
    assert trace.ended == "memory" and "of its budget" in trace.error and 700e6 < trace.memory < 2e9


def test_pages_that_workers_share_are_counted_once(warm, trial):
    source = "import os, time, torch\nx = torch.ones(60_000_000)\nfor _ in range(4):\n    if os.fork() == 0:\n        time.sleep(1); os._exit(0)\ntime.sleep(0.8)"
    trace = warm.run([trial(source, memory=900 << 20)])[0]
    assert trace.ended == "script", trace.error


def test_an_end_that_was_said_counts_even_if_the_child_then_hangs(trial, tmp_path, monkeypatch):
    (tmp_path / "hanging_performer.py").write_text(
        "import time\ndef perform(trial, send, folder):\n    send({'end': {'ended': 'steps'}})\n    time.sleep(100)")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    with LocalEngine(performer="hanging_performer:perform", preload=()) as engine:
        assert engine.run([trial("x = 1", seconds=1)])[0].ended == "steps"


# -- many at once -----------------------------------------------------------------------------------------------------

def test_jobs_at_once_wait_for_the_first_to_show_its_memory(warm, trial, monkeypatch):
    monkeypatch.setattr(warm, "peak", None)
    source = TRAINING.replace("import random", "import time; time.sleep(0.5); import random")
    times = {}
    warm.run([trial(source)] * 3, on_message=lambda index, message: times.setdefault(index, time.monotonic()))
    assert times[1] - times[0] > 0.3


def test_little_memory_means_one_at_a_time(warm, trial, monkeypatch):
    monkeypatch.setattr(processes, "free_memory", lambda: 300 << 20)
    at_once, running = [], set()

    def message(index, message):
        running.add(index)
        at_once.append(len(running))
    warm.run([trial(TRAINING)] * 4, lambda index, trace: running.discard(index), message)
    assert max(at_once) == 1


# -- the server -------------------------------------------------------------------------------------------------------

def test_a_server_with_threads_loads_less(trial):
    one = trial("import threading\nassert threading.active_count() == 1")
    with LocalEngine(performer="light_performer:perform", preload=("math", "two_threads")) as engine:
        trace = engine.run([one])[0]
        assert engine.level == 1 and "2 threads after loading math, two_threads" in engine.why_isolated
    assert (trace.ended, trace.error) == ("script", "")


def test_a_server_that_cannot_do_without_threads_makes_way_for_new_interpreters(trial):
    with LocalEngine(performer="light_performer:perform", preload=("two_threads",)) as engine:
        traces = engine.run([trial("for _ in range(9): step()")] * 2)
        assert engine.level == 2
    assert [len(trace.steps) for trace in traces] == [9, 9]


@pytest.mark.skipif(processes.cores() < 2, reason="one core")
def test_a_parallel_operation_before_a_fork_is_noticed(trial, tmp_path, monkeypatch):
    """Children would wait for ever for threads that a fork does not copy."""
    (tmp_path / "parallel.py").write_text("import torch\ntorch.set_num_threads(2)\na = torch.randn(600, 600)\n(a @ a).sum(), (a + a).exp()")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    with LocalEngine(performer="light_performer:perform", preload=("torch", "parallel")) as engine:
        trace = engine.run([trial("import torch\na = torch.randn(600, 600)\nprint((a @ a).shape)", seconds=20)])[0]
        assert engine.level == 1 and "threads after loading torch, parallel" in engine.why_isolated
    assert trace.ended == "script", trace.error


def test_a_server_that_dies_while_loading_is_replaced(trial, tmp_path, monkeypatch):
    (tmp_path / "crashing.py").write_text("import os; os._exit(9)")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    with LocalEngine(performer="light_performer:perform", preload=("math", "crashing")) as engine:
        assert engine.run([trial("x = 1")])[0].ended == "script" and engine.level == 1


def test_more_threads_than_one_need_new_interpreters(trial):
    with LocalEngine(performer=PERFORMER, threads=2) as engine:
        trace = engine.run([trial("import torch\nprint(torch.get_num_threads())")])[0]
        assert engine.level == 2 and trace.output.strip() == "2" and "thread" in engine.why_isolated


def test_what_is_loaded_is_what_the_program_imports(tmp_path):
    (tmp_path / "train.py").write_text("import numpy as np, mine\nfrom sklearn.datasets import load_digits\ndef f():\n    from . import other\n    import wandb")
    (tmp_path / "helper.py").write_text("from transformers import Trainer")
    (tmp_path / "broken.py").write_text("x = = 1")
    wanted = preload.wanted_by(Program("train.py", cwd=str(tmp_path)))
    assert wanted == ("torch", "torch._dynamo", "numpy", "sklearn.datasets:load_digits", "transformers:Trainer")


def test_a_module_of_the_user_with_a_library_name_is_not_taken_for_it(warm, trial, tmp_path):
    (tmp_path / "random.py").write_text("raise SystemExit('the wrong random')")
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    with LocalEngine(performer="light_performer:perform", preload=("random", "json")) as engine:
        trace = engine.run([trial("import random, json\nprint(random.random() < 1)")])[0]
    assert (trace.output, trace.error) == ("True\n", "")


# -- nothing left -----------------------------------------------------------------------------------------------------

CLIENT = """
import sys
from traindx.engine.local import LocalEngine
from traindx.core.trials import *
engine = LocalEngine(performer="light_performer:perform", preload=(), jobs=2, isolate=sys.argv[2] == "isolate")
trial = Trial(Program("train.py", cwd=sys.argv[1]), budget=Budget(seconds=100, steps=10))
short = trial.under(budget=Budget(seconds=100, steps=3))
print(engine.folder, flush=True)
def done(index, trace):
    print("done", index, trace.ended, flush=True)
try:
    engine.run([short, trial, trial], done)
except KeyboardInterrupt as stop:
    print("stopped", sorted(stop.traces), len(stop.traces[0].steps), flush=True)
    print("again", engine.run([short])[0].ended, flush=True)
    engine.close()
"""
HANGING = """
import builtins, os, subprocess, time
os.environ["MARK"] = MARK
for number in range(10):
    builtins.step()
    if number == 4:
        subprocess.Popen(["sleep", "300"])
        subprocess.Popen(["sleep", "300"], start_new_session=True)
        time.sleep(300)
"""


@pytest.mark.parametrize("number, way", [(signal.SIGKILL, "forked"), (signal.SIGKILL, "isolate"), (signal.SIGTERM, "forked"), (signal.SIGINT, "forked")])
def test_when_the_client_ends_nothing_is_left(trial, tmp_path, number, way):
    mark = f"mark-{os.getpid()}-{time.time_ns()}"
    trial(HANGING.replace("= MARK", f"= {mark!r}"))
    client = subprocess.Popen([sys.executable, "-c", CLIENT, str(tmp_path), way], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "CLIENT": mark}, start_new_session=True)
    folder = client.stdout.readline().strip()
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and len([one for one in processes_with(mark) if is_sleeping(one)]) < 4:
        time.sleep(0.05)
    os.kill(client.pid, number)
    seen, _ = client.communicate(timeout=60)
    assert gone(mark), processes_with(mark)
    assert "done 0 steps" in seen
    if number == signal.SIGINT:
        assert "stopped [0] 3" in seen and "again steps" in seen
    deadline = time.monotonic() + 10
    while Path(folder).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(folder).exists()


IDLE = """
import sys, time
from traindx.engine.local import LocalEngine
from traindx.core.trials import *
engine = LocalEngine(performer="light_performer:perform", preload=())
engine.run([Trial(Program("train.py", cwd=sys.argv[1]))])
print(engine.folder, flush=True)
time.sleep(100)
"""


def test_a_client_that_is_killed_while_nothing_runs_leaves_no_files(trial, tmp_path):
    trial("x = 1")
    client = subprocess.Popen([sys.executable, "-c", IDLE, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    folder = Path(client.stdout.readline().strip())
    assert folder.is_dir()
    client.kill()
    client.communicate()
    deadline = time.monotonic() + 10
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not folder.exists()


def is_sleeping(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().startswith(b"sleep")
    except OSError:
        return False


def test_a_killed_warden_is_a_lost_trial_and_leaves_nothing(trial):
    mark = f"mark-{os.getpid()}-{time.time_ns()}"
    with LocalEngine(performer="light_performer:perform", preload=()) as engine:
        def kill_the_warden(index, message):
            if message.get("step", {}).get("step") == 5:
                deadline = time.monotonic() + 30
                while len([one for one in processes_with(mark) if is_sleeping(one)]) < 2 and time.monotonic() < deadline:
                    time.sleep(0.05)
                for warden in processes.children(engine._servers[False].process.pid):
                    os.kill(warden, signal.SIGKILL)
        trace = engine.run([trial(HANGING.replace("= MARK", f"= {mark!r}"))], on_message=kill_the_warden)[0]
        assert trace.ended == "lost" and len(trace.steps) == 5 and "gone" in trace.error
        assert gone(mark)


def test_an_error_in_a_callback_stops_everything(trial):
    with LocalEngine(performer="light_performer:perform", preload=()) as engine:
        def fail(index, message):
            raise RuntimeError("the drawing failed")
        with pytest.raises(RuntimeError, match="the drawing failed"):
            engine.run([trial("while True: step()", seconds=100, steps=10**9)], on_message=fail)
        assert engine.run([trial("x = 1")])[0].ended == "script"


def test_interrupted_is_a_keyboard_interrupt():
    assert issubclass(Interrupted, KeyboardInterrupt) and Interrupted({}).traces == {}


def test_without_fork_it_is_said(monkeypatch):
    from traindx.errors import UsageError
    monkeypatch.delattr(os, "fork")
    with pytest.raises(UsageError, match="fork"):
        local.LocalEngine()


def test_stacks_are_read_from_the_current_thread():
    words = 'Thread 0x1 (most recent call first):\n  File "a.py", line 1 in f\n\nCurrent thread 0x2 (most recent call first):\n' \
            '  File "b.py", line 2 in g\n  File "c.py", line 3 in h\n\nThread 0x3 (most recent call first):\n  File "d.py", line 4 in i\n'
    assert stack_frames(words) == [("c.py", 3), ("b.py", 2)]


def test_messages_are_json_lines_with_nan(warm, trial, tmp_path):
    trace = warm.run([trial(TRAINING.replace("torch.test_loss = loss.item()", "torch.test_loss = float('nan')"), steps=2)])[0]
    assert [str(loss) for loss in trace.losses] == ["nan", "nan"] and json.dumps(trace.output)


def test_what_we_say_of_an_end_is_said_in_both_languages_and_what_the_program_said_as_it_is():
    raised, stuck = Trace(), Trace()
    raised.take({"end": {"ended": "raised", "error": "ValueError: no data"}})
    stuck.take({"end": ending("seconds", warden.RUNNING.fill(seconds=2.0, waits=EMPTY))})
    assert (raised.why.en, raised.why.zh) == ("ValueError: no data",) * 2
    assert stuck.error == stuck.why.en == "still running after 2 s" and stuck.why.zh == "过了 2 秒仍在运行" and stuck.how.zh == "超过时限"
    assert Trace().why == EMPTY
