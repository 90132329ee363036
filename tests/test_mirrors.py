"""Curves of a run are copied while they grow, by us and not by the program; what goes wrong there ends the copying only."""
from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from traindx import cli, mirrors
from traindx.core.recording import metrics_line
from traindx.errors import UsageError
from traindx.mirrors import About, Following
from traindx.runs.reading import Run

SECRET = "hf_SECRETSECRETSECRETSECRETSECRET12"
PROGRAM = """
import argparse, os, sys, torch
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.5)
parser.add_argument("--hub-token")
args = parser.parse_args()
torch.manual_seed(0)
x = torch.randn(32, 4)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), args.lr)
for step in range(40):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
print("mirror libraries here:", [name for name in ("wandb", "mlflow") if name in sys.modules])
"""


class There:
    """A place that only remembers."""

    def __init__(self, fails=None):
        self.seen, self.fails = [], fails

    def __getattr__(self, name):
        def told(*args):
            if name == self.fails:
                raise ConnectionError("no\nway")
            self.seen.append((name, *args))
        return told

    @property
    def points(self):
        return [(step, values) for name, *args in self.seen if name == "scalars" for step, values in args[0]]


def following(tmp_path, there, complaints, settings=dict):
    return Following("there", About("run", "train.py", (), tmp_path), complaints.append, settings, lambda name: there)


def test_points_come_while_the_run_goes_on_and_each_once(tmp_path, monkeypatch):
    monkeypatch.setattr(mirrors, "POLL_SECONDS", 0.01)
    there, complaints, lines = There(), [], [metrics_line(step, {"loss": 1 / step, "lr": 0.1}) for step in range(1, 8)]
    mirror = following(tmp_path, there, complaints, lambda: {"lr": 0.1})
    mirror.start()
    with open(tmp_path / "metrics.jsonl", "w") as file:
        file.write("".join(lines[:3]) + lines[3][:9])  # cut in the middle of a line
        file.flush()
        deadline = time.monotonic() + 30
        while len(there.points) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [step for step, _ in there.points] == [1, 2, 3], "before the run is over"
        file.write(lines[3][9:] + "".join(lines[4:]) + metrics_line(7, {"val_loss": float("nan")}))
    mirror.finish("finished", ["a/b"])
    assert sorted({step for step, _ in there.points}) == list(range(1, 8)) and not complaints
    assert sum("loss" in values for _, values in there.points) == 7 and there.points[0][1] == {"loss": 1.0, "lr": 0.1}
    assert [name for name, *_ in there.seen if name != "scalars"] == ["begin", "settings", "end"]
    assert there.seen[-1] == ("end", "finished", ["a/b"])


@pytest.mark.parametrize("fails", ["begin", "scalars", "end"])
def test_what_goes_wrong_is_said_once(tmp_path, fails):
    (tmp_path / "metrics.jsonl").write_text(metrics_line(1, {"loss": 1.0}))
    complaints = []
    mirror = following(tmp_path, There(fails), complaints)
    mirror.start()
    mirror.finish("finished", [])
    said, = complaints
    assert "ConnectionError: no way. The run and its record go on" in said.en


def test_a_place_that_hangs_is_not_waited_for(tmp_path):
    release, complaints = threading.Event(), []

    class Hangs(There):
        def begin(self, about):
            release.wait(60)
    mirror = following(tmp_path, Hangs(), complaints)
    mirror.start()
    mirror.finish("finished", [], seconds=0.05)
    assert "was not done within" in complaints[0].en
    release.set()


def test_unknown_and_missing_places_are_told_before_the_training(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print('trained')")
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None)
    for where, said in (("comet", "known are wandb, mlflow, tensorboard"), ("mlflow", "pip install 'traindx[mlflow]'")):
        assert cli.main(["run", "--lang", "en", "--mirror", where, "train.py"]) == 2 and said in capsys.readouterr().err
    with pytest.raises(UsageError):
        mirrors.check(("wandb",))
    mirrors.check(("tensorboard",))


def run(tmp_path, *words, **environment):
    (tmp_path / "train.py").write_text(PROGRAM)
    done = subprocess.run([sys.executable, "-m", "traindx", "run", "--no-ask", *words, "train.py", "--lr", "0.25", "--hub-token", SECRET], cwd=tmp_path,
                          capture_output=True, text=True, timeout=600, env={**os.environ, "OMP_NUM_THREADS": "1", "HOME": str(tmp_path), **environment})
    assert done.returncode == 0, done.stderr
    assert "mirror libraries here: []" in done.stdout, "nothing of the mirror is in the program's process"
    assert "the mirror to" not in done.stderr, done.stderr
    found, = (tmp_path / "runs").glob("*-train")
    return Run(found)


def no_secret_below(folder: Path):
    assert not [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def events(file: Path):
    """(step, tag, value) of an event file, by the wire format."""
    data, at = file.read_bytes(), 0
    while at < len(data):
        size, = struct.unpack("<Q", data[at:at + 8])
        event = data[at + 12:at + 12 + size]
        at += size + 16
        if event[9] == 0x10:  # field 2, the step
            step, shift, place = 0, 0, 10
            while True:
                step |= (event[place] & 0x7F) << shift
                shift, place = shift + 7, place + 1
                if not event[place - 1] & 0x80:
                    break
            tag_size = event[place + 5]
            yield step, event[place + 6:place + 6 + tag_size].decode(), struct.unpack("<f", event[-4:])[0]


def test_tensorboard(tmp_path):
    found = run(tmp_path, "--mirror", "tensorboard")
    file, = (found.path / "tensorboard").iterdir()
    series = found.recording.series
    points = {(step, tag): value for step, tag, value in events(file)}
    assert points == {(step, name): struct.unpack("<f", struct.pack("<f", value))[0] for name, values in series.items() for step, value in values}
    assert len([step for step, tag in points if tag == "loss"]) == 40


def test_mlflow(tmp_path):
    mlflow = pytest.importorskip("mlflow")
    where = f"sqlite:///{tmp_path}/mlflow.db"
    found = run(tmp_path, "--mirror", "mlflow", MLFLOW_TRACKING_URI=where, MLFLOW_EXPERIMENT_NAME="trial")
    client = mlflow.MlflowClient(tracking_uri=where)
    there, = client.search_runs([client.get_experiment_by_name("trial").experiment_id])
    history = {point.step: point.value for point in client.get_metric_history(there.info.run_id, "loss")}
    assert history == dict(found.recording.series["loss"]) and len(history) == 40
    assert there.info.status == "FINISHED" and there.info.run_name == found.name
    assert there.data.params["argparse lr"] == "0.25" and there.data.params["optimizer 1 class"] == "SGD"
    no_secret_below(tmp_path / "runs")
    assert SECRET.encode() not in (tmp_path / "mlflow.db").read_bytes()


def records(file: Path):
    """Of W&B's file: a log of blocks of 32 KiB, as LevelDB has them, after a head of 7 bytes."""
    data, at, whole = file.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        size, kind = struct.unpack("<HB", data[at + 4:at + 7])
        whole += data[at + 7:at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # the whole of a record, or its last part
            yield whole
            whole = b""


def test_wandb_offline(tmp_path):
    pytest.importorskip("wandb")
    from wandb.proto import wandb_internal_pb2 as pb
    found = run(tmp_path, "--mirror", "wandb", WANDB_MODE="offline", WANDB_PROJECT="trial")
    file, = found.path.rglob("run-*.wandb")
    history, config, project = {}, {}, None
    for data in records(file):
        record = pb.Record()
        record.ParseFromString(data)
        if record.HasField("history"):
            row = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
            if "loss" in row:
                history[row["step"]] = row["loss"]
        for item in (*record.run.config.update, *record.config.update):
            config[item.key or item.nested_key[0]] = item.value_json
        project = record.run.project or project
    assert project == "trial" and history == dict(found.recording.series["loss"]) and len(history) == 40
    assert config["argparse lr"] == "0.25" and SECRET not in str(config)
    no_secret_below(found.path)
