"""``traindx run`` is ``python``: same output, status and traceback, whatever the script does; and the report survives its end."""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from traindx import launch

TRAINDX = [sys.executable, "-m", "traindx", "run", "--lang", "en"]

LINE = """
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(64, 4), torch.randn(64, 1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
def step():
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def run(command, folder, input=None, **variables):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", **variables}
    return subprocess.run(command, cwd=folder, env=environment, input=input, capture_output=True, text=True, timeout=300, check=False)


def watched(folder, *words, **options):
    """The finished process and the report of a script run in ``folder``."""
    done = run([*TRAINDX, "--json", "report.json", "--no-record", *words], folder, **options)
    report = folder / "report.json"
    return done, json.loads(report.read_text()) if report.exists() and report.stat().st_size else None


def write(folder, source, name="train.py"):
    (folder / name).write_text(source)
    return name


SCRIPTS = {
    "argv_name_file_cwd": "import sys, os; print(sys.argv, __name__, __file__, os.getcwd(), sys.path[0], __spec__)",
    "stdin": "import sys; print(sys.stdin.read()[::-1])",
    "import_beside": "import helper; print(helper.value)",
    "exit_number": "import sys; sys.exit(7)",
    "exit_words": "import sys; sys.exit('went wrong')",
    "exit_none": "import sys; sys.exit()",
    "os_exit": "import os; print('x', flush=True); os._exit(9)",
    "atexit": "import atexit, sys; atexit.register(print, 'bye'); print('hello'); sys.exit(4)",
    "raises": "def deep(n):\n    return deep(n - 1) if n else 1 / 0\nprint('before')\ndeep(3)\n",
    "chained": "try:\n    {}['a']\nexcept KeyError as k:\n    raise RuntimeError('outer') from k\n",
    "syntax_error": "x = 1\nif x\n    pass\n",
    "environment": "import os; print({k: v for k, v in os.environ.items() if 'PYTHONPATH' in k or 'TRAINDX' in k})",
    "modules": "import sys; print(sorted(m for m in sys.modules if 'torch' in m))",
    "thread": "import threading\ndef f():\n    raise ValueError('in a thread')\nt = threading.Thread(target=f, name='T'); t.start(); t.join(); print('on')",
    "subprocess": "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sys; print(sys.argv)', 'a'], check=True)",
    "broken_stderr": "import sys; sys.stderr.close(); print('still here')",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_runs_as_under_python(name, tmp_path):
    write(tmp_path, SCRIPTS[name])
    write(tmp_path, "value = 41", "helper.py")
    words = ["train.py", "--epochs", "3", "--json", "x", "-m", "--"]
    plain = run([sys.executable, *words], tmp_path, input="abc")
    done, report = watched(tmp_path, *words, input="abc")
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert done.stderr.startswith(plain.stderr)
    assert report["exit"]["status"] == plain.returncode and report["findings"] == []
    assert "No training was seen" in report["remarks"][0]


def test_a_module_runs_as_under_python_m(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    write(package, "import sys; print(sys.argv, __name__, __package__, __spec__.name)", "train.py")
    write(package, "")
    plain = run([sys.executable, "-m", "package.train", "--lr", "1"], tmp_path)
    done, report = watched(tmp_path, "-m", "package.train", "--lr", "1")
    assert (done.returncode, done.stdout) == (0, plain.stdout) and report["script"] == "-m package.train"


def test_a_folder_with_a_main_runs(tmp_path):
    (tmp_path / "app").mkdir()
    write(tmp_path / "app", "print('main', __name__)", "__main__.py")
    done, _ = watched(tmp_path, "app")
    assert (done.returncode, done.stdout) == (0, "main __main__\n")


PROGRAM = LINE + """
import atexit, pickle, sys
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return x[i], y[i]
if __name__ == "__main__":
    atexit.register(print, "at exit")
    assert pickle.loads(pickle.dumps(Rows())).__class__ is Rows and Rows.__module__ == "__main__"
    for method in ("fork", "spawn"):
        loader = DataLoader(Rows(), 32, num_workers=1, multiprocessing_context=method)
        print(method, sum(len(batch) for batch, _ in loader))
        step()
    print(sys.argv)
    torch.save(model.state_dict(), "weights.pt")
    raise ValueError("on purpose")
"""


def test_a_training_keeps_its_workers_its_traceback_and_its_weights(tmp_path):
    write(tmp_path, PROGRAM)
    plain = run([sys.executable, "train.py", "a b"], tmp_path)
    weights = (tmp_path / "weights.pt").read_bytes()
    done, report = watched(tmp_path, "train.py", "a b")
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout) == (1, "fork 64\nspawn 64\n['train.py', 'a b']\nat exit\n")
    assert done.stderr.startswith(plain.stderr) and "ValueError: on purpose" in plain.stderr
    assert report["exit"] == {"status": 1, "steps": 2, "seconds": report["exit"]["seconds"], "stopped": "ValueError: on purpose"}
    assert (tmp_path / "weights.pt").read_bytes() == weights


def test_a_killed_run_leaves_a_record_and_a_report(tmp_path):
    write(tmp_path, LINE + "import os\nfor i in range(50):\n    step()\n    if i == 19: os.kill(os.getpid(), 9)\n")
    done = run([*TRAINDX, "train.py"], tmp_path)
    assert done.returncode == 128 + signal.SIGKILL
    assert "killed by SIGKILL" in done.stderr and "20 steps" in done.stderr
    [folder] = (tmp_path / "runs").iterdir()
    report = json.loads((folder / "report.json").read_text())
    assert report["exit"]["stopped"] == "SIGKILL" and report["exit"]["steps"] == 20 and report["lost_lines"] == 0
    assert [step for step, _ in report["signals"]["train_loss"]] == list(range(1, 21))
    assert json.loads((folder / "run.json").read_text())["status"] == "killed at step 20"


@pytest.mark.parametrize("loop", [
    "while True:\n    step()\n",
    "while True:\n    try:\n        step()\n    except:\n        pass\n",
], ids=["plain", "bare_except"])
def test_max_steps_stops_cleanly(loop, tmp_path):
    write(tmp_path, LINE + "print('begun', end='')\n" + loop)
    done, report = watched(tmp_path, "--max-steps", "5", "train.py")
    assert (done.returncode, done.stdout) == (0, "begun") and "Traceback" not in done.stderr
    assert report["exit"]["stopped"] == "max-steps"
    assert 5 <= report["exit"]["steps"] <= 9
    assert "stopped by --max-steps" in done.stderr


def started(tmp_path, source):
    """A running ``traindx run`` whose script has said that it is ready."""
    write(tmp_path, source)
    child = subprocess.Popen([*TRAINDX, "--json", "report.json", "--no-record", "train.py"], cwd=tmp_path, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert child.stdout.readline() == "ready\n"
    return child


def test_sigterm_is_handed_on(tmp_path):
    child = started(tmp_path, "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *a: (print('saving'), sys.exit(5)))\n"
                              "print('ready', flush=True)\ntime.sleep(60)\n")
    child.send_signal(signal.SIGTERM)
    out, _ = child.communicate(timeout=60)
    assert (child.returncode, out) == (5, "saving\n")


def test_ctrl_c_keeps_the_scripts_own_traceback_and_status(tmp_path):
    child = started(tmp_path, "import time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 128 + signal.SIGINT
    assert err.startswith("Traceback") and "KeyboardInterrupt" in err and "traindx/" not in err.partition("KeyboardInterrupt")[0]


def test_ctrl_c_in_a_terminal_reaches_the_script_once(tmp_path):
    pty = pytest.importorskip("pty")
    write(tmp_path, "import time\nn = 0\nfor seconds in (60, 0.6):\n    try:\n        print('ready', flush=True)\n"
                    "        time.sleep(seconds)\n    except KeyboardInterrupt:\n        n += 1\nprint('times', n)\n")
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(sys.executable, [*TRAINDX, "--no-record", "train.py"])
    seen = b""
    while b"ready" not in seen:
        seen += os.read(master, 1000)
    os.write(master, b"\x03")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            seen += os.read(master, 1000)
        except OSError:
            break
    os.waitpid(pid, 0)
    os.close(master)
    assert b"times 1" in seen, seen


def test_the_environments_own_sitecustomize_still_runs(tmp_path):
    own = tmp_path / "site"
    own.mkdir()
    write(own, "print('own sitecustomize')", "sitecustomize.py")
    write(tmp_path, "import os; print(os.environ['PYTHONPATH'])")
    path = os.pathsep.join([str(own), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = run([*TRAINDX, "--no-record", "train.py"], tmp_path, PYTHONPATH=path)
    assert done.stdout.splitlines()[-2:] == ["own sitecustomize", path]


def test_the_launcher_imports_no_torch():
    done = run([sys.executable, "-c", "import sys, traindx.launch, traindx.cli.run, traindx.live, traindx.reporters.html; print('torch' in sys.modules)"],
               Path.cwd())
    assert done.stdout == "False\n"


def test_ctrl_c_once_the_script_has_ended_is_for_us():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    with pytest.raises(KeyboardInterrupt), launch.passing_signals_to(child.pid):
        signal.raise_signal(signal.SIGINT)
