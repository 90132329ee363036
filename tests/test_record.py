"""What a run keeps so that it can be repeated, in repositories of every shape; and that no fault of the record reaches the training."""
from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from traindx.core.observed.record import Began, ConfigSeen, DataSeen, FilesImported, FirstInputs, Resources, SeedCall, TorchSeen
from traindx.core.recording import Recording
from traindx.core.secrets import masked_text, masked_values
from traindx.probes.configs import constants_of, plainly
from traindx.runs import code as codes
from traindx.runs import facts, yaml
from traindx.runs import folder as runs
from traindx.runs.status import born, is_running

TRAINDX = [sys.executable, "-m", "traindx", "run", "--lang", "en"]
TOKEN = "hf_" + "a1B2c3D4e5F6g7H8"  # of the form only
LOOP = """
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


def git(folder, *words):
    settings = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *settings, "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """A repository with one commit, in a folder whose name has blanks and Chinese."""
    root = tmp_path / "my 项目"
    root.mkdir()
    git(root, "init", "-q")
    (root / "train.py").write_text("print(1)\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    return root


def snapshot(folder, record):
    record.mkdir(exist_ok=True)
    return codes.snapshot(folder, record)


# -- code ------------------------------------------------------------------------------------------------------------------------

def test_a_clean_commit(repository, tmp_path):
    code = snapshot(repository, tmp_path / "r")
    assert (code.commit, code.branch, code.dirty, code.detached) == (git(repository, "rev-parse", "HEAD"), "main", False, False)
    assert code.why is None and not (tmp_path / "r" / "code").exists()


def test_the_diff_applies_again(repository, tmp_path):
    (repository / "train.py").write_text("print(2)\n")
    (repository / "staged 数.bin").write_bytes(bytes(range(256)) * 10)
    git(repository, "add", "staged 数.bin")
    inner = repository / "deep" / "er"
    inner.mkdir(parents=True)
    before = git(repository, "status", "--porcelain")
    code = snapshot(inner, tmp_path / "r")  # a script in a folder below
    assert code.dirty and code.kept == "whole" and not code.masked and Path(code.root) == repository
    assert git(repository, "status", "--porcelain") == before
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    git(clone, "apply", str(tmp_path / "r" / "code" / "diff.patch"))
    assert (clone / "train.py").read_text() == "print(2)\n" and (clone / "staged 数.bin").read_bytes() == bytes(range(256)) * 10


def test_the_users_own_git_settings_do_not_change_the_diff(repository, tmp_path):
    for name, value in (("diff.noprefix", "true"), ("color.ui", "always"), ("diff.external", "false"), ("core.quotepath", "true")):
        git(repository, "config", name, value)
    (repository / "train.py").write_text("print(3)\n")
    snapshot(repository, tmp_path / "r")
    assert "--- a/train.py\n+++ b/train.py" in (tmp_path / "r" / "code" / "diff.patch").read_text()


def test_no_git_program(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert snapshot(repository, tmp_path / "r").why == "git is not installed"


def test_no_repository(tmp_path):
    code = snapshot(tmp_path, tmp_path / "r")
    assert code.commit is None and code.root is None and "not a git repository" in code.why


def test_no_commit_yet(tmp_path):
    git(tmp_path, "init", "-q")
    code = snapshot(tmp_path, tmp_path / "r")
    assert code.commit is None and code.branch == "main" and code.why == "the repository has no commit yet"
    (tmp_path / "train.py").write_text("x = 1\n")
    codes.keep_files(code, [str(tmp_path / "train.py")], tmp_path, tmp_path / "r")
    assert code.files == {"train.py": str(tmp_path / "train.py")}


def test_a_detached_head(repository, tmp_path):
    git(repository, "checkout", "-q", "--detach")
    code = snapshot(repository, tmp_path / "r")
    assert code.commit and code.branch is None and code.detached


def test_a_huge_diff_is_cut_down_to_its_sources(repository, tmp_path, monkeypatch):
    monkeypatch.setattr(codes, "DIFF_BYTES", 20_000)
    (repository / "data.txt").write_text("".join(f"{i}\n" for i in range(10_000)))
    (repository / "train.py").write_text("print('changed')\n")
    git(repository, "add", ".")
    code = snapshot(repository, tmp_path / "r")
    kept = (tmp_path / "r" / "code" / "diff.patch").read_text()
    assert code.kept == "sources" and code.diff_bytes > 20_000 and len(code.diff_sha256) == 64
    assert "print('changed')" in kept and "data.txt" not in kept
    (repository / "train.py").write_text("".join(f"a{i} = {i}\n" for i in range(10_000)))
    assert snapshot(repository, tmp_path / "r2").kept == "none"


def test_submodules(repository, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    (other / "lib.py").write_text("x = 1\n")
    git(other, "add", ".")
    git(other, "commit", "-qm", "lib")
    git(repository, "submodule", "add", "-q", str(other), "lib")
    git(repository, "commit", "-qm", "with a submodule")
    assert snapshot(repository, tmp_path / "r").submodules == [
        {"path": "lib", "commit": git(other, "rev-parse", "HEAD"), "moved": False, "absent": False, "dirty": False}]
    (repository / "lib" / "lib.py").write_text("x = 2\n")
    code = snapshot(repository, tmp_path / "r2")
    assert code.submodules[0]["dirty"] and code.dirty
    codes.keep_files(code, [str(repository / "lib" / "lib.py")], repository, tmp_path / "r2")
    assert (tmp_path / "r2" / "code" / "files" / "lib" / "lib.py").read_text() == "x = 2\n", "the commit alone does not have it"


def test_only_what_git_does_not_know_is_copied(repository, tmp_path, monkeypatch):
    (repository / ".gitignore").write_text("ignored.py\n")
    git(repository, "add", ".gitignore")
    git(repository, "commit", "-qm", "ignore")
    elsewhere = tmp_path / "elsewhere.py"
    files = [repository / "train.py", repository / "new 新.py", repository / "ignored.py", elsewhere, repository / "big.py", repository / "gone.py"]
    for file in files[1:5]:
        file.write_bytes(b"x = '\xff\xe4'\r\n")
    monkeypatch.setattr(codes, "FILE_BYTES", 1000)
    (repository / "big.py").write_text("#" * 2000)
    code = snapshot(repository, tmp_path / "r")
    for _ in range(2):  # called while the run goes on, and at its end
        codes.keep_files(code, [str(file) for file in files], repository, tmp_path / "r")
    assert set(code.files.values()) == {str(files[1]), str(files[2]), str(elsewhere)}
    assert (tmp_path / "r" / "code" / "files" / "new 新.py").read_bytes() == b"x = '\xff\xe4'\r\n"
    assert str(files[4]) in code.left_out and str(files[5]) in code.left_out


# -- secrets -----------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "clean"), [
    (f"login({TOKEN!r})", "login('***')"),
    ('api_key = "correct horse"', 'api_key = "***"'),
    ('{"wandb-api-key": "abcdefgh"}', '{"wandb-api-key": "***"}'),
    ("tokenizer = 'bert-base-uncased'", "tokenizer = 'bert-base-uncased'"),
    ("max_tokens: '100000'", "max_tokens: '100000'"),
    ("git clone https://me:pa55word@host/x", "git clone https://me:***@host/x"),
    ("import sklearn  # sk-learn-contrib-things", "import sklearn  # sk-learn-contrib-things"),
])
def test_secrets_in_text(text, clean):
    assert masked_text(text) == clean


def test_secrets_in_settings():
    values = {"lr": 0.1, "hub_token": "x", "auth": {"password": "y", "user": "me"}, "keys": [TOKEN], "tokenizer": "bert", "private-key": None}
    assert masked_values(values) == {"lr": 0.1, "hub_token": "***", "auth": {"password": "***", "user": "me"}, "keys": ["***"],
                                     "tokenizer": "bert", "private-key": None}


def test_no_secret_reaches_a_record(repository):
    (repository / "train.py").write_text(f"""
import argparse, helper
{LOOP}
HUB_TOKEN = "{TOKEN}"
parser = argparse.ArgumentParser()
parser.add_argument("--api-key")
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
step()
raise ValueError("no access with {TOKEN}")
""")
    (repository / "helper.py").write_text(f"password = '{TOKEN}'\n")
    environment = os.environ | {"SECRET_OF_MINE": TOKEN}
    subprocess.run([*TRAINDX, "train.py", "--api-key", TOKEN, "--epochs", "3"], cwd=repository, env=environment, capture_output=True)
    [folder] = (repository / "runs").iterdir()
    for file in folder.rglob("*"):
        if file.is_file():
            assert TOKEN not in file.read_text(errors="replace"), file
    record = json.loads((folder / "record.json").read_text())
    assert record["code"]["masked"] and record["code"]["files"].keys() == {"helper.py"}
    programs = {found["kind"]: found["values"] for found in record["config"]["program"]}
    assert programs["argparse"] == {"api_key": "***", "epochs": 3} and programs["constants"]["HUB_TOKEN"] == "***"
    assert (folder / "code" / "files" / "helper.py").read_text() == "password = '***'\n"


# -- what the probes see --------------------------------------------------------------------------------------------------------------

def test_seeds_with_their_lines(observe):
    recording = observe("""
import random, numpy as np, torch
from torch.utils.data import DataLoader, TensorDataset, random_split
random.seed(1)
np.random.seed(2)
torch.manual_seed(3)
rng = np.random.default_rng(4)
loose = np.random.default_rng()
data = TensorDataset(torch.randn(20, 3), torch.randn(20, 1))
train, rest = random_split(data, [15, 5], generator=torch.Generator().manual_seed(5))
loader = DataLoader(train, 5, shuffle=True, generator=torch.Generator().manual_seed(6))
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    torch.cuda.manual_seed_all(7)
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
""")
    assert [(c.function, c.value, c.site.line, c.calls) for c in recording.of(SeedCall)] == [
        ("random.seed", "1", 4, 1), ("numpy.random.seed", "2", 5, 1), ("torch.manual_seed", "3", 6, 1), ("numpy.random.default_rng", "4", 7, 1),
        ("numpy.random.default_rng", None, 8, 1), ("random_split", "5", 10, 1), ("torch.cuda.manual_seed_all", "7", 15, 3)]
    found = facts.seeds(recording)
    assert list(found["loader_generators"].values()) == ["6"] and found["unseeded"] == ["script.py:8"]
    [data] = facts.data(recording)["loaders"]
    assert data["dataset"] == "TensorDataset" and data["size"] == 20 and data["coverage"] == "whole" and data["split"]["size"] == 15


CONFIGURED = """
import argparse, dataclasses
import torch
@dataclasses.dataclass
class Deep:
    width: int = 8
@dataclasses.dataclass
class Config:
    lr: float = 1e-3
    betas: tuple = (0.9, 0.99)
    deep: Deep = dataclasses.field(default_factory=Deep)
    thing: object = None
EPOCHS, batch = 2, 32
total = 0
for total in range(2): pass
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=4)
    args = parser.parse_args(["--size", "5"])
    config = Config(thing=torch.nn.ReLU())
    model = torch.nn.Linear(args.size, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    model(torch.randn(2, 5)).mean().backward()
    optimizer.step()
main()
"""


def test_settings_that_the_program_has(observe):
    found = {c.source: c.values for c in observe(CONFIGURED).of(ConfigSeen)}
    assert found == {"argparse": {"size": 5}, "constants": {"EPOCHS": 2, "batch": 32},
                     "dataclass": {"lr": 0.001, "betas": [0.9, 0.99], "deep": {"width": 8}, "thing": "<ReLU>"}}


def test_looking_at_settings_keeps_nothing_alive(observe):
    """A function's locals are looked at in the first step: what they held then must be free to go."""
    recording = observe("""
import gc, weakref, torch
def main():
    first, model = None, torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        batch = torch.randn(2, 4)
        loss = model(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        first = first or (weakref.ref(batch), weakref.ref(loss))
    batch = loss = None
    gc.collect()
    print([ref() is None for ref in first], step, sorted(locals()))
main()
""")
    assert recording.output.strip() == "[True, True] 3 ['batch', 'first', 'loss', 'model', 'optimizer', 'step']"


def test_constants_are_those_assigned_once():
    source = "a = 1\nb = -2.5\nc = [1, 'x']\nd = 1\nd = 2\ne = f()\nfor g in []: pass\ndef main():\n    h = 3\ndef other():\n    i = 4\n"
    assert constants_of(source) == {"a": 1, "b": -2.5, "c": [1, "x"], "h": 3}
    assert constants_of("not python (") == {}


def test_values_are_made_plain_without_asking_them():
    class Hostile:
        def __repr__(self):
            raise RuntimeError
        __str__ = __repr__
        __getattr__ = None
    loop: list = []
    loop.append(loop)
    plain = plainly({"x": Hostile(), "p": Path("/a b"), "loop": loop, "kind": int, 3: float("nan"), "long": "y" * 2000})
    assert plain["x"] == f"<{Hostile.__qualname__}>" and plain["p"] == "/a b" and plain["kind"] == "<int>" and len(plain["long"]) == 500
    json.dumps(plain)


DATA = """
import torch
from torch.utils.data import DataLoader, Dataset, Subset
class Rows(Dataset):
    def __init__(self): self.values = torch.arange(40.).reshape(10, 4) SHIFT
    def __len__(self): return 10
    def __getitem__(self, i): return self.values[i] SCALE
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
for x in DataLoader(Subset(Rows(), ROWS), 2):
    model(x).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("changes", "same"), [
    ({}, {"content", "code", "indices"}), ({"SHIFT": "+ 1"}, {"indices"}), ({"SCALE": "* 2"}, {"content", "indices"}),
    ({"ROWS": "[1, 2, 3]"}, {"content", "code"}), ({"# only": "# words"}, {"content", "code", "indices"}),
])
def test_data_is_known_by_content_split_and_code(observe, changes, same):
    source = "# only\n" + DATA
    fill = {"SHIFT": "", "SCALE": "", "ROWS": "[0, 1, 2, 3]"}

    def seen(values):
        text = source
        for name, value in values.items():
            text = text.replace(name, value)
        recording = observe(text)
        return recording.last(DataSeen), recording.last(FirstInputs)
    (one, first), (two, second) = seen(fill), seen(fill | changes)
    assert {name for name in ("content", "code", "indices") if getattr(one, name) == getattr(two, name)} == same
    assert (first.digest == second.digest) == (len(same) == 3)
    assert one.size == 10 and one.subset == 4 and one.coverage == "whole"


def test_a_dataset_is_never_asked_for_a_sample(observe):
    recording = observe("""
import torch
from torch.utils.data import DataLoader, Dataset
asked = []
class Rows(Dataset):
    def __init__(self): self.files = [("a.png", 0), ("b.png", 1)]
    def __len__(self): return 2
    def __getitem__(self, i):
        asked.append(i)
        return torch.ones(3)
model = torch.nn.Linear(3, 1)
for x in DataLoader(Rows(), 1): model(x).mean().backward()
print(asked)
""")
    assert recording.output.strip() == "[0, 1]" and recording.last(DataSeen).coverage == "whole"


def test_process_torch_and_resources(observe):
    recording = observe(LOOP + "for _ in range(20): step()\n")
    began = recording.last(Began)
    assert began.pid > 0 and began.host and recording.last(TorchSeen).settings["deterministic"] == "False"
    assert [Path(file).name for file in recording.last(FilesImported).files if "script" in file] in ([], ["script.py"])
    assert recording.last(FilesImported).main is None or recording.last(FilesImported).main.endswith(".py")
    used = recording.last(Resources)
    assert 50e6 < used.peak_rss < 50e9 and used.cpu_seconds > 0 and used.device_peak is None
    steps = [step for step, _ in recording.series["samples_per_second"]]
    assert steps[:3] == [2, 3, 4] and all(value > 0 for _, value in recording.series["samples_per_second"])
    assert recording.series["peak_memory_bytes"][-1][1] > 50e6


# -- the folder -----------------------------------------------------------------------------------------------------------------------

def test_a_whole_run(repository):
    (repository / "train.py").write_text("import helper\n" + LOOP + """
for i in range(12): step()
torch.save({"model": model.state_dict()}, "last.pt")
torch.save(model.state_dict(), "best.pt")
""")
    (repository / "helper.py").write_text("x = 1\n")
    done = subprocess.run([*TRAINDX, "--name", "base line", "train.py", "--x", "1"], cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [folder] = (repository / "runs").iterdir()
    fields = json.loads((folder / "run.json").read_text())
    assert fields["status"] == "finished" and fields["steps"] == 12 and fields["best"]["metric"] == "loss" and fields["dirty"] is True
    assert fields["commit"] == git(repository, "rev-parse", "HEAD") and fields["argv"] == ["--x", "1"]
    record = json.loads((folder / "record.json").read_text())
    assert record["code"]["files"].keys() == {"helper.py"} and record["code"]["kept"] == "whole"
    assert record["config"]["optimizers"][0]["groups"][0]["lr"] == 0.05 and record["model"][0]["parameters"] == 5
    assert os.readlink(folder / "ckpt" / "best.pt") == str(repository / "best.pt")
    assert os.readlink(folder / "ckpt" / "last.pt").endswith("best.pt"), "the one saved last"
    environment = json.loads((folder / "environment.json").read_text())
    assert environment["packages"]["torch"] and environment["python"] and environment["torch"]["version"]
    assert (folder / "config.yaml").read_text().startswith("script: train.py\nargv: [")
    assert not list(folder.rglob("*.partial"))


def test_config_yaml_is_yaml():
    reader = pytest.importorskip("yaml")
    values = {"a": 1, "b": [1.5, None, True], "c": {"d": "x: y", "e": {}, "f": [{"g": 1, "h": [2]}, "i"]}, "name with: colon": "on", "n": "null",
              "small": 1e-05, "big": 1e22, "text": "line\nbreak \u2028\x85\x1b", "path": "a/b-c.py", "num": "12", "empty": "", "list": [],
              "中文": "值", "q": 'say "hi"', "dash": "- x", "end": "x ", "version": "1.0", "tilde": "~", "date": "2026-01-01"}
    assert reader.safe_load(yaml.dump(values)) == values


def test_a_checkpoint_is_best_by_the_validation_loss_before_it(observe):
    recording = Recording()
    from traindx.core.observed.checkpoints import FileSaved
    for step, loss in ((10, 1.0), (20, 0.5), (30, 0.8)):
        recording.series.setdefault("val_loss", []).append((step, loss))
        recording.add(FileSaved(step=step, path=f"ck{step}.pt", site=None, holds={"m": "model"}))
    assert facts.checkpoints(recording)["best"] == "ck20.pt" and facts.checkpoints(recording)["last"] == "ck30.pt"


def test_two_hundred_runs_at_once_have_a_folder_each(tmp_path):
    made: list[Path] = []
    gate = threading.Barrier(20)

    def start():
        gate.wait()
        made.extend(runs.begin(tmp_path / "runs", "x", "t.py", []).path for _ in range(10))
    threads = [threading.Thread(target=start) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 200 == len(list((tmp_path / "runs").iterdir()))
    assert all(json.loads((path / "run.json").read_text())["status"] == "running" for path in made)


def test_processes_started_at_once_do_not_collide(tmp_path):
    code = "from traindx.runs import folder as runs; from pathlib import Path\nfor _ in range(25): print(runs.begin(Path('runs'), 'x', 't.py', []).path)"
    children = [subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    names = [name for child in children for name in child.communicate(timeout=120)[0].split()]
    assert len(set(names)) == len(names) == 200


def test_a_clock_that_was_set_back(tmp_path, monkeypatch):
    from datetime import datetime, timezone

    from traindx.runs import folder
    times = iter([datetime(2026, 5, 1, 12, 0, tzinfo=timezone.utc), datetime(2026, 5, 1, 11, 0, tzinfo=timezone.utc),
                  datetime(2026, 5, 1, 12, 0, tzinfo=timezone.utc)])
    monkeypatch.setattr(folder, "_now", lambda: next(times))
    paths = [runs.begin(tmp_path, "x", "t.py", []).path.name for _ in range(3)]
    assert paths == ["2026-05-01-1200-x", "2026-05-01-1100-x", "2026-05-01-1200-x-2"]
    fields = {"host": "elsewhere", "pid": 1}
    (tmp_path / "heartbeat").touch()
    ahead = (tmp_path / "heartbeat").stat().st_mtime
    assert is_running(tmp_path, fields, now=ahead - 3600), "a beat from the future is not stale"
    assert is_running(tmp_path, fields, now=ahead + 5) and not is_running(tmp_path, fields, now=ahead + 3600)


def test_a_pid_that_somebody_else_has_now_is_not_the_run(tmp_path):
    import socket
    me = {"host": socket.gethostname(), "pid": os.getpid(), "born": born(os.getpid())}
    assert is_running(tmp_path, me) and not is_running(tmp_path, me | {"born": "1"})
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert not is_running(tmp_path, me | {"pid": gone.pid}) and not is_running(tmp_path, me | {"pid": -1})
    assert is_running(tmp_path, me | {"pid": gone.pid}, [me]), "the script outlives the one that started it"


def test_a_full_disk_stops_the_recording_and_not_the_training(tmp_path, capfd):
    from traindx.probes.recorder import Recorder
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    recorder = Recorder(tmp_path)
    recorder.metrics(1, {"loss": 1.0})
    recorder.metrics(2, {"loss": 1.0})  # nothing raised
    recorder.close()
    assert capfd.readouterr().err.count("recording stopped (No space left on device)") == 1


def test_a_folder_that_is_removed_stops_the_recording_and_not_the_training(tmp_path):
    (tmp_path / "train.py").write_text(LOOP + """
import shutil
for i in range(600):
    step()
    if i == 40: shutil.rmtree("runs")
print("weights", float(model.weight.sum()))
""")
    plain = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    (tmp_path / "runs").mkdir()
    plain = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    done = subprocess.run([*TRAINDX, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == plain.stdout, done.stderr
    assert "recording stopped (the run folder is gone)" in done.stderr and "goes on unrecorded" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_read_only_folder_is_said_and_the_training_runs(tmp_path):
    (tmp_path / "train.py").write_text(LOOP + "for i in range(3): step()\nprint('done')\n")
    (tmp_path / "file").write_text("")
    done = subprocess.run([*TRAINDX, "--runs-dir", "file/runs", "train.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "done\n" and done.stderr.count("goes on unrecorded") == 1


WRITER = """
import sys; from pathlib import Path
from traindx.probes.recorder import Recorder
from traindx.core.observed.record import Began
recorder, step = Recorder(Path(sys.argv[1])), 0
recorder.observe(Began(pid=0, host='x' * 5000))
print('ready', flush=True)
while True:
    step += 1
    recorder.metrics(step, {'loss': 1 / step, 'lr': 0.1, 'grad_norm': 2.0})
"""


def test_killed_at_any_moment_no_whole_line_is_lost(tmp_path):
    """Ten times here; benchmarks/record.py does it fifty times."""
    seeded = random.Random(0)
    for number in range(10):
        folder = tmp_path / f"r{number}"
        folder.mkdir()
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(seeded.random() * 0.1)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        recording = Recording.read(folder)
        steps = [step for step, _ in recording.series.get("loss", ())][:5000]  # thinned from there on
        assert recording.lost <= 1 and steps == list(range(1, len(steps) + 1)) and recording.last(Began) is not None


def test_a_flipped_byte_costs_one_line(tmp_path):
    from traindx.probes.recorder import Recorder
    recorder = Recorder(tmp_path)
    for step in range(1, 101):
        recorder.metrics(step, {"loss": 1 / step, "lr": 0.1})
    recorder.close()
    content = bytearray((tmp_path / "metrics.jsonl").read_bytes())
    for at in range(0, len(content), 37):
        flipped = bytearray(content)
        flipped[at] ^= 0x80
        (tmp_path / "metrics.jsonl").write_bytes(flipped)
        recording = Recording.read(tmp_path)
        assert len(recording.series["loss"]) >= 98 and recording.lost <= 2  # a line end: two lines become one
