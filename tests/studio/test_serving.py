"""What does not need a browser: ports, bad input, records of every kind, and how large ones are read."""
from __future__ import annotations

import asyncio
import json
import math
import multiprocessing
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from studio.serving import command, finished, serve, surroundings
from traindx.errors import UsageError
from traindx.runs import reading
from traindx.studio import describing, records
from traindx.studio.asking import Studio
from traindx.studio.exporting import bundle, dumped, packed


def test_a_port_in_use_is_passed_over_and_said(tmp_path, runs_dir):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        served = serve(tmp_path, runs_dir, "--port", str(port))
        served.stop()
    assert served.port > port
    assert f"port {port} is taken, using {served.port}" in (tmp_path / "studio.log").read_text()


@pytest.mark.skipif("forkserver" not in multiprocessing.get_all_start_methods(), reason="no folder is made where nothing is forked")
def test_sigterm_leaves_no_temporary_folder(tmp_path, runs_dir, monkeypatch):
    with tempfile.TemporaryDirectory() as folder:  # a short name: it holds the path of a socket
        monkeypatch.setenv("TMPDIR", folder)
        served = serve(tmp_path, runs_dir, "--port", "0")
        while not list(Path(folder).glob("pymp-*")) and served.process.poll() is None:
            time.sleep(0.1)
        served.stop(signal.SIGTERM)
        assert served.process.returncode == 128 + signal.SIGTERM
        assert list(Path(folder).glob("pymp-*")) == []


@pytest.mark.parametrize("options, said", [(["--port", "x"], "not a port"), (["--port", "70000"], "not a port"), (["--run", "last"], "--export"),
                                           (["--export", "no/such/folder/x.html"], "no folder"), (["--export", "."], "--export . cannot be written"),
                                           (["--export", ""], "cannot be written"), (["--port", "9" * 5000], "not a port"),
                                           (["--runs-dir", "file"], "--runs-dir file: cannot be read")])
def test_bad_usage_is_told(tmp_path, options, said):
    (tmp_path / "file").write_text("")
    done = subprocess.run(command("studio", "--no-browser", "--lang", "en", *options), cwd=tmp_path, env=surroundings(tmp_path), capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_a_missing_extra_names_the_command(tmp_path):
    code = "import sys; sys.modules['plotly'] = None; from traindx.cli import main; sys.exit(main(['studio', '--lang', 'en']))"
    done = subprocess.run([command()[0], "-c", code], cwd=tmp_path, env=surroundings(tmp_path), capture_output=True, text=True)
    assert done.returncode == 2 and "pip install 'traindx[studio]'" in done.stderr and "plotly" in done.stderr


def test_an_empty_or_absent_folder_is_no_run(tmp_path):
    assert records.listing(tmp_path)["runs"] == [] and records.listing(tmp_path / "none")["runs"] == []
    for name in ("", ".", "..", "../x", "last", "x" * 5000):
        with pytest.raises(UsageError):
            records.page(tmp_path, name)


def test_every_kind_of_record_is_json(runs_dir):
    for row in records.listing(runs_dir)["runs"]:
        json.dumps(records.page(runs_dir, row["run"]), allow_nan=False)
        json.dumps(records.checklist(runs_dir, row["run"]), allow_nan=False)


def test_pages_are_served_by_the_name_under_which_they_are_listed(tmp_path):
    folder = tmp_path / "runs" / "r"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"schema": 1, "script": "train.py", "cwd": str(tmp_path)}))
    (folder / "report.html").write_text("<p>one")
    (tmp_path / "traindx-data-train.html").write_text("<p>two")
    (tmp_path / "secret.html").write_text("no")
    assert records.pages_of(records.run_named(tmp_path / "runs", "r")) == ["report.html", "traindx-data-train.html"]
    assert records.page_of(tmp_path / "runs", "r", "traindx-data-train.html") == "<p>two"
    for name in ("secret.html", "../secret.html", str(tmp_path / "secret.html"), "run.json"):
        assert records.page_of(tmp_path / "runs", "r", name) is None


def test_a_long_metrics_file_is_thinned_and_keeps_its_spikes(tmp_path):
    """Against the plain list: few points, the same lowest and highest, every kind of NaN and Inf."""
    values = {step: 1 / step for step in range(1, 60_001)}
    values |= {12_345: 900.0, 40_001: -7.0, 50_000: math.nan, 50_001: math.inf}
    with open(tmp_path / "metrics.jsonl", "w") as file:
        for step, value in values.items():
            file.write(json.dumps({"step": step, "loss": value if math.isfinite(value) else None, **({} if math.isfinite(value) else {"nonfinite": {"loss": str(value)}})}) + "\n")
    curves = records.Curves(tmp_path)
    rounds = 0
    while curves.read(2**16):
        rounds += 1
    kept = dict(curves.series["loss"])
    assert rounds > 2 and curves.share == 1 and curves.steps == 60_000 and len(kept) < 2500
    assert kept[12_345] == 900.0 and kept[40_001] == -7.0 and not math.isfinite(kept[50_000])
    assert all(kept[step] == values[step] for step in kept if step != 50_000)
    json.dumps(records.figures(curves.series), allow_nan=False)


def test_a_large_record_is_told_from_its_report(runs_dir, monkeypatch):
    monkeypatch.setattr(reading, "MOST_POINTWISE", 10)
    found = records.page(runs_dir, "2026-01-01-0900-softmax")
    assert found["findings"][0]["rule"] == "loss/double-softmax" and found["figures"] and "large" in json.dumps(found["remarks"])


def test_a_run_shows_what_experiments_said_with_the_curves_before_and_after(runs_dir, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(runs_dir / "2026-01-01-0900-softmax", folder)
    curves = {"as written, seed 0": [[1, 1.0], [2, 2.0]], "changed, seed 0": [[1, 1.0], [2, 0.5]]}
    proof = {"outcome": "proved", "experiment": "logits-instead", "effect": 1.9, "spread": 0.2, "why": "late level", "why_in": {"en": "late level", "zh": "后期水平"}}
    steps = [{"step": 0, "name": "overfit", "verdict": "passed", "why": "learnt", "curves": {"one batch": [[1, 1.0], [2, 0.1]]}, "findings": []},
             {"step": 2, "name": "output", "verdict": "failed", "why": "stands", "curves": {}, "findings": [{"rule": "loss/double-softmax", "proof": {**proof, "curves": curves}}]}]
    (folder / "exam.json").write_text(json.dumps({"schema": 1, "date": "2026-01-01", "steps": steps, "refuted": [{"rule": "optim/lr-too-high", "proof": {**proof, "outcome": "refuted"}}]}))
    found = records.page(tmp_path, "run")
    json.dumps(found, allow_nan=False)
    told = found["findings"][0]["proof"]
    assert "late level" in told["said"]["$"][0] and "后期水平" in told["said"]["$"][1]
    assert [trace["y"] for trace in told["figure"]["data"]] == [[1.0, 2.0], [1.0, 0.5]]
    assert [step["verdict"] for step in found["exam"]["steps"]] == ["passed", "failed"] and found["exam"]["steps"][1]["tried"] == []
    assert found["exam"]["steps"][0]["figure"]["data"][0]["y"] == [1.0, 0.1]
    assert [one["rule"] for one in found["refuted"]] == ["optim/lr-too-high"] and found["refuted"][0]["figure"] is None


def test_a_catalogue_that_failed_is_asked_for_anew(tmp_path):
    async def scene():
        studio = Studio(tmp_path)
        answers = [b'{"error": "slow"}', b'{"answer": {"labs": [{"name": "bowl", "light": true}]}}']

        async def ask(job):
            return answers.pop(0)
        studio.quick.ask = ask
        first = await studio.catalogue()
        await asyncio.sleep(0)
        return first, await studio.catalogue(), await studio.catalogue(), studio.light
    first, second, third, light = finished(scene())
    assert b"slow" in first and b"bowl" in second and third == second and light == {"bowl"}


def test_two_languages_become_one_document():
    assert describing.merged({"a": [1, "x"], "b": "same"}, {"a": [1, "y"], "b": "same"}) == {"a": [1, {"$": ["x", "y"]}], "b": "same"}
    assert describing.merged(["a"], ["a", "b"]) == {"$": [["a"], ["a", "b"]]}


def test_exported_numbers_are_short_and_every_module_is_bundled():
    assert dumped({"a": [1 / 3, 2.0, 1e-30, 123456.0, True, "x"]}) == '{"a":[0.3333,2,1e-30,123500,true,"x"]}'
    text = bundle()
    assert "import {" not in text and "\nexport " not in text and "</script" not in text and "WebSocket" not in text
    assert packed("é" * 1000).isascii() and len(packed("é" * 1000)) < 100
