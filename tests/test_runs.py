"""``traindx runs``: listing, showing, comparing, concluding, exporting, removing and repeating; records of strangers included."""
from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from traindx import cli
from traindx.core import student
from traindx.core.recording import metrics_line
from traindx.errors import UsageError
from traindx.runs import comparing, exporting, index, notes
from traindx.runs.reading import Run, find, runs_in

sys.path.insert(0, str(Path(__file__).parent))
from test_record import LOOP, git

RECORD = {"schema": 1, "code": {"commit": "a" * 40, "branch": "main", "diff_sha256": None, "files": {}, "kept": "none"},
          "seeds": {"calls": [{"function": "torch.manual_seed", "seed": "0", "where": "train.py:3", "calls": 1}], "loader_generators": {}, "unseeded": []},
          "data": {"loaders": [{"dataset": "TensorDataset", "size": 100, "content": "c0ffee", "coverage": "whole", "split": None}], "first_inputs": None},
          "config": {"program": [{"kind": "argparse", "name": "args", "values": {"lr": 0.1, "epochs": 3}}],
                     "optimizers": [{"class": "SGD", "groups": [{"lr": 0.1, "momentum": 0.9}], "where": "train.py:9"}], "schedulers": [], "loaders": []},
          "torch": {"facts": {"version": "2.13.0"}, "settings": {"deterministic": "False"}, "devices": []}}


def made(folder: Path, name: str, /, losses=(3.0, 2.0, 1.0), record=None, environment=None, **fields) -> Path:
    """A finished run as a record on disk, by hand."""
    path = folder / name
    path.mkdir(parents=True)
    values = list(losses)
    curves = {"loss": {"last": values[-1], "min": min(values), "at_min": values.index(min(values)) + 1, "max": max(values), "points": len(values)}} if values else {}
    base = {"schema": 1, "name": name, "script": "train.py", "argv": [], "started": "2026-05-01T12:00:00+00:00", "status": "finished", "commit": "a" * 40,
            "dirty": False, "steps": len(values), "best": {"metric": "loss", "value": min(values), "step": 1} if values else {}, "curves": curves, "findings": []}
    (path / "run.json").write_text(json.dumps(base | fields))
    (path / "record.json").write_text(json.dumps(RECORD if record is None else record))
    (path / "environment.json").write_text(json.dumps(environment or {"python": "3.11.7", "packages": {"torch": "2.13.0"}, "variables": {}}))
    (path / "metrics.jsonl").write_text("".join(metrics_line(step, {"loss": value}) for step, value in enumerate(values, 1)))
    (path / "notes.md").write_text("best:\nfailed hypothesis:\nnext:\n")
    return path


def changed(**values):
    """RECORD with other values, by dotted path."""
    record = json.loads(json.dumps(RECORD))
    for path, value in values.items():
        at = record
        *front, last = path.split("__")
        for part in front:
            at = at[int(part) if part.isdigit() else part]
        at[last] = value
    return record


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """said("runs", "list") -> (status, stdout, stderr), in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        status = cli.main([*words, "--lang", "en"])
        captured = capsys.readouterr()
        return status, captured.out, captured.err
    return run


# -- list -----------------------------------------------------------------------------------------------------------------------------

def test_list_filters_and_sorts(said, tmp_path):
    runs = tmp_path / "runs"
    made(runs, "2026-05-01-1200-base", (3.0, 2.0))
    made(runs, "2026-05-02-1200-wide", (3.0, 1.0), started="2026-05-02T12:00:00+00:00", status="failed")
    dead = made(runs, "2026-05-03-1200-dead", (5.0, 4.0, 3.5), started="2026-05-03T12:00:00+00:00")
    dead_fields = {"schema": 1, "name": "dead", "status": "running", "pid": 2**22 + 1, "host": os.uname().nodename, "started": "2026-05-03T12:00:00+00:00"}
    (dead / "run.json").write_text(json.dumps(dead_fields))
    (runs / "not-a-run").mkdir()
    status, out, _ = said("runs", "list", "--json")
    rows = json.loads(out)
    assert status == 0 and [row["run"][11:] for row in rows] == ["1200-dead", "1200-wide", "1200-base"]
    assert rows[0]["status"] == "killed at step 3" and rows[0]["best"] == {"metric": "loss", "value": 3.5, "step": 3} and rows[0]["steps"] == 3
    assert set(rows[2]) >= {"run", "name", "status", "commit", "dirty", "steps", "best", "concluded"} and rows[2]["concluded"] is False
    assert json.loads(said("runs", "list", "--json", "--sort", "best")[1])[0]["name"].endswith("wide")
    assert len(json.loads(said("runs", "list", "--json", "--status", "killed")[1])) == 1
    assert len(json.loads(said("runs", "list", "--json", "--name", "*wide*", "--limit", "3")[1])) == 1
    table = said("runs", "list")[1]
    assert "killed at step 3" in table and "3 runs, 3 without a conclusion" in table
    notes.write(runs / "2026-05-01-1200-base", {"best": "a", "failed hypothesis": "b", "next": "c"})
    assert len(json.loads(said("runs", "list", "--json", "--unfinished")[1])) == 2


def test_list_without_runs(said):
    assert said("runs", "list")[1] == "There is no run in runs.\n"
    assert json.loads(said("runs", "list", "--json")[1]) == []


def test_the_index_is_only_a_memory(tmp_path):
    runs = tmp_path / "runs"
    path = made(runs, "a")
    assert index.rows(runs)[0]["steps"] == 3
    fields = json.loads((path / "run.json").read_text())
    (path / "run.json").write_text(json.dumps(fields | {"steps": 9}))
    assert index.rows(runs)[0]["steps"] == 9, "a changed run is opened again"
    for broken in ("", "[]", '{"version": 2, "runs": {"a": 3}}', '{"version": 1, "runs": {}}', "\x00"):
        (runs / index.INDEX).write_text(broken)
        assert index.rows(runs)[0]["steps"] == 9
    shutil.rmtree(path)
    assert index.rows(runs) == [] and json.loads((runs / index.INDEX).read_text())["runs"] == {}


def test_ten_thousand_runs_are_listed_in_a_second(tmp_path):
    runs = tmp_path / "runs"
    template = made(tmp_path, "template")
    content = (template / "run.json").read_text()
    for number in range(10_000):
        path = runs / f"2026-05-01-1200-r{number:05}"
        path.mkdir(parents=True)
        (path / "run.json").write_text(content)
        (path / "notes.md").write_text("best:\n")
    index.rows(runs)
    began = time.process_time()
    assert len(index.rows(runs)) == 10_000
    assert time.process_time() - began < 1.0


def test_a_run_that_may_not_be_entered_hides_no_other(tmp_path, monkeypatch):
    """The system's answer for another user's folder: permission denied, whoever runs this test."""
    made(tmp_path, "2026-05-01-1200-closed")
    made(tmp_path, "2026-05-01-1300-open")
    stat = os.stat

    def refusing(path, *rest, **named):
        if "closed" in os.fspath(path):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return stat(path, *rest, **named)
    monkeypatch.setattr(os, "stat", refusing)
    assert [path.name for path in runs_in(tmp_path)] == ["2026-05-01-1300-open"]


# -- find and show ----------------------------------------------------------------------------------------------------------------------

def test_finding_a_run(tmp_path):
    made(tmp_path, "2026-05-01-1200-base")
    made(tmp_path, "2026-05-01-1300-base-2", started="2026-05-01T13:00:00+00:00")
    assert find(tmp_path, "2026-05-01-1200").name == "2026-05-01-1200-base"
    assert find(tmp_path, "last").name == find(tmp_path, "base-2").name == "2026-05-01-1300-base-2"
    assert find(Path("nowhere"), str(tmp_path / "2026-05-01-1200-base")).steps == 3
    for name, words in (("2026", "several runs"), ("bsae", "no such run"), (str(tmp_path), "not a run folder")):
        with pytest.raises(UsageError, match=words):
            find(tmp_path, name)


def test_show(said, tmp_path):
    path = made(tmp_path / "runs", "r1", argv=["--lr", "0.1"])
    (path / "report.json").write_text(json.dumps({"findings": [{"rule": "loss/x", "level": "error", "where": {"file": "t.py", "line": 3}}]}))
    status, out, _ = said("runs", "show", "r1")
    assert status == 0
    for part in ("train.py --lr 0.1", "aaaaaaaaaaaa (main)", "torch.manual_seed(0) train.py:3", "TensorDataset, 100 samples, content c0ffee", "error loss/x (t.py:3)",
                 "last 1, lowest 1 at step 3", "lr=0.1", "none yet: traindx runs note r1"):
        assert part in out, part
    shown = json.loads(said("runs", "show", "r1", "--json")[1])
    assert shown["record"]["seeds"]["calls"] and shown["curves"]["loss"]["last"] == 1.0


HOSTILE = "\x1b[2J\x1b]0;owned\x07<script>alert(1)</script>\u202e"


def hostile(value):
    """The same structure, every text replaced by an attack."""
    if isinstance(value, dict):
        return {key: hostile(item) for key, item in value.items()}
    return [hostile(item) for item in value] if isinstance(value, list) else HOSTILE if isinstance(value, str) else value


def test_records_of_strangers_are_safe(said, tmp_path):
    """Control characters, wrong types, deep nesting, paths that lead out, newer schemas: shown, never obeyed."""
    runs = tmp_path / "runs"
    attack = made(runs, "attack", record=hostile(RECORD), name=HOSTILE, script=HOSTILE, argv=[HOSTILE], status=HOSTILE, commit=HOSTILE, schema=99)
    (attack / "report.json").write_text(json.dumps({"findings": [{"rule": HOSTILE, "level": HOSTILE, "where": {"file": HOSTILE, "line": HOSTILE}}, 3]}))
    (attack / "notes.md").write_text(f"best: {HOSTILE}\n")
    with open(attack / "metrics.jsonl", "a") as file:
        file.write(json.dumps({"step": 4, HOSTILE: 1.0}) + "\n" + "[" * 100_000 + "\n" + '{"step": "x", "loss": 1}\n')
    wrong = made(runs, "wrong", record={"code": 3, "seeds": [1], "data": "x", "config": {"program": 3, "optimizers": [3]}, "torch": None})
    (wrong / "run.json").write_text(json.dumps({"status": 3, "argv": 3, "curves": {"loss": 3}, "best": 3, "findings": 3, "steps": "many", "started": None}))
    (wrong / "environment.json").write_text("[" * 100_000)
    (runs / "empty").mkdir()
    (runs / "empty" / "run.json").write_text("")
    for words in (("list",), ("show", "attack"), ("show", "wrong"), ("show", "empty"), ("diff", "attack", "wrong"), ("diff", "wrong", "empty"),
                  ("compare", "attack", "wrong", "--html", "c.html"), ("note", "attack")):
        status, out, err = said("runs", *words)
        assert status == 0, err
        assert not set(out) & set(map(chr, [*range(9), *range(11, 32), 127])), words
    assert "newer traindx (schema 99)" in said("runs", "show", "attack")[1]
    assert "<script>alert" not in (tmp_path / "c.html").read_text()


def test_a_file_name_that_leads_out_of_the_record_is_not_read(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x")
    a = Run(made(tmp_path / "runs", "a", record=changed(code__files={"../../../../secret": "x"})))
    assert comparing._section(a, "code")["file ../../../../secret"] is None


# -- diff and compare --------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("record", "environment", "section", "name", "words"), [
    (changed(config__program__0__values={"lr": 0.2, "epochs": 3}), None, "config", "argparse lr", "One variable changed: lr"),
    (changed(config__program__0__values={"lr": 0.2, "epochs": 4}), None, "config", "argparse epochs", "2 variables changed (lr, epochs)"),
    (changed(seeds__calls__0__seed="1"), None, "seeds", "torch.manual_seed", "Only the seed changed"),
    (changed(code__commit="b" * 40), None, "code", "commit", "One variable changed: code"),
    (changed(code__diff_sha256="d" * 64), None, "code", "diff_sha256", "One variable changed: code"),
    (changed(data__loaders__0__content="decaf"), None, "data", "loader 1 content", "One variable changed: data"),
    (None, {"python": "3.11.7", "packages": {"torch": "2.12.0"}}, "environment", "torch", "One variable changed: environment (torch)"),
    (changed(seeds__calls__0__where="train.py:99"), None, None, None, "Nothing that is recorded changed"),
])
def test_diff_says_what_changed_and_only_that(said, tmp_path, record, environment, section, name, words):
    made(tmp_path / "runs", "a")
    made(tmp_path / "runs", "b", (3.0, 2.5, 1.5), record, environment)
    status, out, _ = said("runs", "diff", "a", "b")
    assert status == 0 and words in out and "curves differ from step 2 on (loss: 2 / 2.5)" in out
    found = json.loads(said("runs", "diff", "a", "b", "--json")[1])
    assert set(found) == {"code", "config", "seeds", "data", "environment", "curves", "gain"}
    assert {key for key in comparing.SECTIONS if found[key]} == ({section} if section else set())
    if section:
        assert name in found[section]
    assert found["curves"]["first_difference"]["step"] == 2


def test_a_diff_of_a_run_with_itself(said, tmp_path):
    made(tmp_path / "runs", "a", (3.0, float("nan"), 1.0))
    assert "curves are identical\n" in said("runs", "diff", "a", "a")[1]


def test_a_diff_with_a_shorter_run_says_how_far_it_goes(said, tmp_path):
    made(tmp_path / "runs", "a", (3.0, 2.0, 1.0))
    made(tmp_path / "runs", "b", (3.0, 2.0))
    assert "curves are identical over the steps that both have" in said("runs", "diff", "a", "b")[1]


def test_a_gain_is_told_against_the_spread_over_seeds(said, tmp_path):
    runs = tmp_path / "runs"
    base, better = (1.00, 1.04, 0.97), (0.98, 1.01, 0.96)
    for at, value in enumerate(base):
        made(runs, f"base{at}", (3.0, value), changed(seeds__calls__0__seed=str(at)))
    for at, value in enumerate(better):
        made(runs, f"wide{at}", (3.0, value), changed(seeds__calls__0__seed=str(at), config__program__0__values={"lr": 0.2, "epochs": 3}))
    names = [f"{kind}{at}" for kind in ("base", "wide") for at in range(3)]
    out = said("runs", "compare", *names, "--html", "page.html")[1]
    assert "inside the noise" in out and "95 % interval" in out
    page = (tmp_path / "page.html").read_text()
    assert page.count("<polyline") == 6 and "base0" in page and "http" not in page
    found = json.loads(said("runs", "compare", *names, "--json")[1])
    assert [group["runs"] for group in found["groups"]] == [names[:3], names[3:]]
    assert found["gains"][0]["difference"] == pytest.approx(sum(better) / 3 - sum(base) / 3)
    assert "One variable changed: lr." in out, "what the groups differ in is said beside the gain"
    one = said("runs", "compare", "base0", "wide0")[1]
    assert "not known whether this is more than noise" in one


def test_a_run_as_a_page_has_its_curves_and_trusts_nothing_in_the_record(said, tmp_path):
    evil = "<img src=x onerror=alert(1)>"
    folder = made(tmp_path / "runs", "base", (3.0, float("nan"), 1.0), script=evil)
    findings = [{"rule": evil, "level": evil, "title": "t", "cause": evil, "fix": "f", "first_step": 2, "where": {"file": evil, "line": 3, "code": "c"}},
                {"rule": "curve/plateau", "explained_by": "x/y", "first_step": 1}, "no finding"]
    (folder / "report.json").write_text(json.dumps({"findings": findings}))
    status, out, _ = said("runs", "show", "base", "--html", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert status == 0 and "base" in out and "<img" not in page and "&lt;img" in page and "http" not in page
    assert page.count("<svg") == 1 and 'class="cross"' in page and ">1</text>" in page and "curve/plateau" not in page
    (folder / "report.json").write_text("[")
    (folder / "metrics.jsonl").unlink()
    assert said("runs", "show", "base", "--html", "page.html")[0] == 0 and "<svg" not in (tmp_path / "page.html").read_text()


def test_a_diff_tells_a_gain_against_the_seeds_that_are_known(said, tmp_path):
    """Of the runs in the folder that are like one of the two."""
    runs, lr = tmp_path / "runs", {"config__program__0__values": {"lr": 0.2, "epochs": 3}}
    for at, value in enumerate((1.00, 1.04, 0.97)):
        made(runs, f"base{at}", (3.0, value), changed(seeds__calls__0__seed=str(at)))
    made(runs, "wide0", (3.0, 0.5), changed(seeds__calls__0__seed="0", **lr))
    out = " ".join(said("runs", "diff", "base0", "wide0")[1].split())
    assert "one of them has one run" in out and "outside the noise" in out
    gain = json.loads(said("runs", "diff", "base0", "wide0", "--json")[1])["gain"]
    assert gain["metric"] == "loss" and gain["seeds"] == [3, 1] and gain["interval"][0] < gain["difference"] == pytest.approx(0.5 - 3.01 / 3)
    assert json.loads(said("runs", "diff", "base0", "base1", "--json")[1])["gain"] is None, "the seed alone is no gain"
    for at in (1, 2):
        made(runs, f"wide{at}", (3.0, 0.5 + at / 10), changed(seeds__calls__0__seed=str(at), **lr))
    assert "formula: Welch" in said("runs", "diff", "base0", "wide1")[1]


def test_the_same_seed_again_is_no_second_seed(said, tmp_path):
    """Its values are the same to the last bit: a spread of 0 would make every gain one."""
    runs = tmp_path / "runs"
    for at in range(3):
        made(runs, f"base{at}", (3.0, 1.0))
        made(runs, f"wide{at}", (3.0, 0.999), changed(config__program__0__values={"lr": 0.2, "epochs": 3}))
    out = said("runs", "compare", *(f"{kind}{at}" for kind in ("base", "wide") for at in range(3)))[1]
    assert "not known whether this is more than noise" in out and "outside" not in out


def test_the_interval_of_one_run_against_several_is_a_prediction_interval():
    stats = pytest.importorskip("scipy.stats")
    several, one = comparing.Group("a", ("",) * 4, (1.0, 1.2, 0.9, 1.1)), comparing.Group("b", ("",), (0.5,))
    half = stats.t.ppf(0.975, 3) * several.spread * (1 + 1 / 4) ** 0.5
    for a, b, gap in ((several, one, 0.55), (one, several, -0.55)):
        assert comparing.difference(a, b)[1] == pytest.approx((gap - half, gap + half))


def test_the_interval_is_welchs():
    stats = pytest.importorskip("scipy.stats")
    a = comparing.Group("a", ("",) * 5, (1.0, 1.2, 0.9, 1.1, 1.3))
    b = comparing.Group("b", ("",) * 3, (0.8, 0.7, 1.0))
    gap, interval = comparing.difference(a, b)
    expected = stats.ttest_ind(a.values, b.values, equal_var=False).confidence_interval(0.95)
    assert interval == pytest.approx((expected.low, expected.high), rel=1e-9) and interval[0] < gap < interval[1]
    for p in (0.6, 0.9, 0.975, 0.999):
        for freedom in (1, 1.5, 2, 7.3, 100):
            assert student.t_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-9)


# -- notes ---------------------------------------------------------------------------------------------------------------------------------

def test_notes_are_three_lines_and_the_rest_is_the_users(said, tmp_path):
    path = made(tmp_path / "runs", "a")
    (path / "notes.md").write_text("my own line\nbest:\nfailed hypothesis: old\nnext:\nmore of mine\n")
    out = said("runs", "note", "a", "--best", "0.97 with\nlr 0.1", "--next", "more data")[1]
    assert out == "best: 0.97 with lr 0.1\nfailed hypothesis: old\nnext: more data\n"
    assert (path / "notes.md").read_text() == f"{out}my own line\nmore of mine\n"
    assert Run(path).is_concluded
    notes.add_not_done(path, ["9 learning rate swept"])
    notes.add_not_done(path, ["10 batch and rate moved together"])
    assert (path / "notes.md").read_text() == f"{out}my own line\nmore of mine\n\nnot done:\n- 10 batch and rate moved together\n"


def test_nobody_at_the_terminal_is_not_waited_for(monkeypatch, capsys):
    read, write = os.pipe()
    with os.fdopen(read) as silent:
        monkeypatch.setattr(sys, "stdin", silent)
        began = time.monotonic()
        assert notes.ask("en", lambda: notes.patiently(0.05)) == {} and time.monotonic() - began < 10
    os.close(write)


def test_asking_can_be_skipped(capsys):
    replies = iter(["good", "", "later"])
    assert notes.ask("en", lambda: next(replies)) == {"best": "good", "next": "later"}

    def interrupt():
        raise KeyboardInterrupt
    assert notes.ask("zh", interrupt) == {}


# -- export -----------------------------------------------------------------------------------------------------------------------------------

def test_csv(said, tmp_path):
    path = made(tmp_path / "runs", "a", (1.5, float("inf"), 0.5))
    (path / "metrics.jsonl").open("a").write(metrics_line(3, {"lr": 0.1}))
    assert said("runs", "export", "a", "--csv", "out.csv")[1] == "wrote out.csv\n"
    rows = list(csv.reader((tmp_path / "out.csv").open()))
    assert rows == [["step", "loss", "lr"], ["1", "1.5", ""], ["2", "inf", ""], ["3", "0.5", "0.1"]]


def test_checksums_are_castagnolis():
    assert exporting.crc32c(b"123456789") == 0xE3069283 and exporting.crc32c(bytes(32)) == 0x8A9136AA  # RFC 3720, B.4


def test_tensorboard_reads_what_was_written(said, tmp_path):
    made(tmp_path / "runs", "a", (1.5, float("nan"), 0.5))
    said("runs", "export", "a", "--tensorboard", "tb")
    [file] = (tmp_path / "tb").iterdir()
    assert file.name.startswith("events.out.tfevents.") and file.stat().st_size > 100
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    events = reader.EventAccumulator(str(tmp_path / "tb")).Reload()
    assert [(e.step, e.value) for e in events.Scalars("loss") if e.value == e.value] == [(1, 1.5), (3, 0.5)]


def test_parquet(said, tmp_path):
    made(tmp_path / "runs", "a")
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        status, _, err = said("runs", "export", "a", "--parquet", "x.parquet")
        assert status == 2 and "needs pyarrow" in err
        return
    said("runs", "export", "a", "--parquet", "x.parquet")
    assert parquet.read_table(tmp_path / "x.parquet").to_pydict() == {"step": [1, 2, 3], "loss": [3.0, 2.0, 1.0]}


@pytest.mark.parametrize("words", [("export", "a"), ("export", "none", "--csv", "x"), ("export", "empty", "--csv", "x"), ("compare", "a"), ("rm", "a"),
                                   ("export", "a", "--csv", "no/where.csv"), ("show", "none"), ("gone",), ("list", "--sort", "nonsense")])
def test_bad_usage_is_told(said, tmp_path, words):
    made(tmp_path / "runs", "a")
    made(tmp_path / "runs", "empty", ())
    status, _, err = said("runs", *words)
    assert status == 2 and err.startswith("traindx: ") and "Traceback" not in err and (tmp_path / "runs" / "a" / "run.json").exists()


# -- rm and gc ----------------------------------------------------------------------------------------------------------------------------------

def test_rm_removes_runs_and_nothing_else(said, tmp_path):
    runs = tmp_path / "runs"
    for name in ("a", "b"):
        made(runs, name)
    precious = tmp_path / "precious.pt"
    precious.write_text("x")
    (runs / "a" / "ckpt").mkdir()
    (runs / "a" / "ckpt" / "best.pt").symlink_to(precious)
    assert "Removed 1 run (" in said("runs", "rm", "--yes", "a")[1]
    assert not (runs / "a").exists() and (runs / "b").exists() and precious.exists()
    (runs / "linked").symlink_to(runs / "b")
    assert said("runs", "rm", "--yes", "linked")[0] == 2 and (runs / "b").exists()
    live = made(runs, "live")
    (live / "run.json").write_text(json.dumps({"status": "running", "pid": os.getpid(), "host": os.uname().nodename}))
    status, _, err = said("runs", "rm", "--yes", "live", "b")
    assert status == 2 and "still running" in err and (runs / "b").exists(), "all or nothing"


def test_gc(said, tmp_path):
    runs = tmp_path / "runs"
    made(runs, "trained")
    made(runs, "empty", ())
    made(runs, "old", started="2020-01-01T00:00:00+00:00")
    notes.write(made(runs, "old-but-concluded", started="2020-01-01T00:00:00+00:00"), dict.fromkeys(notes.LINES, "x"))
    made(runs, "of-the-future", started="2999-01-01T00:00:00+00:00")
    assert said("runs", "gc")[0] == 2, "no terminal to ask on"
    said("runs", "gc", "--yes")
    assert {path.name for path in runs.iterdir() if path.is_dir()} == {"trained", "old", "old-but-concluded", "of-the-future"}
    said("runs", "gc", "--yes", "--older", "3000")
    assert {path.name for path in runs.iterdir() if path.is_dir()} == {"trained", "old", "old-but-concluded", "of-the-future"}
    said("runs", "gc", "--yes", "--older", "365")
    assert "old" not in {path.name for path in runs.iterdir()} and (runs / "old-but-concluded").exists()


# -- reproduce ------------------------------------------------------------------------------------------------------------------------------------

def shell(folder, *words):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    return subprocess.run([sys.executable, "-m", "traindx", *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def project(tmp_path):
    """A repository whose script reads a data file and has uncommitted changes and an untracked helper."""
    root = tmp_path / "proj ect"
    root.mkdir()
    git(root, "init", "-q")
    (root / "train.py").write_text("pass\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "one")
    (root / "train.py").write_text("import helper\n" + LOOP + """
import sys
scale = float(open("data/scale.txt").read()) * helper.two
x *= scale
NOISE
for _ in range(int(sys.argv[1])): step()
torch.save(model.state_dict(), "out.pt")
""")
    (root / "helper.py").write_text("two = 2\n")
    (root / "data").mkdir()
    (root / "data" / "scale.txt").write_text("0.5")
    return root


def test_a_run_is_repeated_to_the_last_bit(project):
    (project / "train.py").write_text((project / "train.py").read_text().replace("NOISE", ""))
    assert shell(project, "run", "train.py", "30").returncode == 0
    before = {file: file.read_bytes() for file in project.rglob("*") if file.is_file() and "runs" not in file.parts}
    (project / "train.py").write_text("raise SystemExit('edited since')\n")
    (project / "helper.py").write_text("two = 3\n")
    now = {file: file.read_bytes() for file in before}
    done = shell(project, "runs", "reproduce", "--lang", "en")
    assert done.returncode == 0 and "Identical: " in done.stdout, done.stdout + done.stderr
    after = {file: file.read_bytes() for file in project.rglob("*") if file.is_file() and "runs" not in file.parts}
    assert after == now, "the user's files are as they were"


def test_a_planted_unseeded_generator_is_named(project):
    source = (project / "train.py").read_text().replace("NOISE", "import numpy as np\nx += torch.from_numpy(np.random.default_rng().normal(size=4)).float()")
    (project / "train.py").write_text(source)
    line = source.splitlines().index("x += torch.from_numpy(np.random.default_rng().normal(size=4)).float()") + 1
    assert shell(project, "run", "train.py", "10").returncode == 0
    done = shell(project, "runs", "reproduce", "--lang", "en")
    assert done.returncode == 1 and "Differs from step 1 on" in done.stdout and f"not seeded: train.py:{line}" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize(("change", "words"), [
    ({"fields": {"argv": ["--token", "***"]}}, "secret"), ({"record": changed(code__kept="sources", code__diff_sha256="d")}, "too big to keep"),
    ({"record": changed(code__root="/nowhere")}, "is gone"), ({"record": changed(code__commit=None)}, "script was not kept"),
])
def test_what_cannot_be_repeated_is_told(said, tmp_path, change, words):
    made(tmp_path / "runs", "a", record=change.get("record"), cwd=str(tmp_path), **change.get("fields", {}))
    status, _, err = said("runs", "reproduce", "a")
    assert status == 2 and words in err


# -- folders that are no runs ---------------------------------------------------------------------------------------------------------

@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(said, tmp_path):
    for file in ("notes.md", "metrics.jsonl", "events.jsonl", "record.json", "report.json"):
        path = made(tmp_path / "runs", file.replace(".", "-"))
        (path / file).unlink(missing_ok=True)
        os.mkfifo(path / file)
    assert said("runs", "list")[0] == 0
    for path in sorted((tmp_path / "runs").glob("*-*")):
        for words in (("runs", "show", "--html", "page.html"), ("checklist", "--no-ask")):
            assert said(*words, path.name)[0] == 0
    status, _, told = said("runs", "note", "--best", "x", "notes-md")
    assert status == 2 and "notes.md cannot be written" in told


def test_markup_and_letters_that_no_encoding_has_stay_text(said, tmp_path):
    odd = "</script><script>alert(1)</script>\ud800\u2028\x1b[31m"
    path = made(tmp_path / "runs", "a", script=odd, argv=[odd], status=odd, record=changed(config__program__0__values__lr=odd))
    (path / "report.json").write_text(json.dumps({"findings": [{"rule": odd, "level": odd, "title": odd, "cause": odd, "fix": odd, "where": {"file": odd, "line": odd}}]}))
    (path / "metrics.jsonl").write_text(json.dumps({"step": 1, odd: 1.0}) + "\n" + json.dumps({"step": 2, odd: 2.0}) + "\n")
    assert said("runs", "show", "--html", "page.html", "a")[0] == 0
    page = (tmp_path / "page.html").read_text()
    assert "alert(1)" in page and "<script>alert" not in page and "\x1b" not in page
