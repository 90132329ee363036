"""The twenty items: each ticked, failed and not done by evidence; a person's word is kept with its date and overrides nothing."""
from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from traindx import cli
from traindx.checklist import words
from traindx.checklist.evidence import gather
from traindx.checklist.judging import ENOUGH, judge
from traindx.cli.checklist import ask
from traindx.core.observed.checkpoints import FileRead
from traindx.core.observed.fed import Labels
from traindx.core.observed.program import ModelSeen, Parameter
from traindx.core.observed.record import FilesImported
from traindx.core.recording import metrics_line, to_line
from traindx.runs import notes
from traindx.runs.reading import Run

sys.path.insert(0, str(Path(__file__).parent))
from test_runs import changed, made

SGD = {"class": "SGD", "groups": [{"lr": 0.1}]}


def labels(**changes):
    base = {"model": 1, "site": None, "function": "cross_entropy", "classes": 3, "counts": {0: 50, 1: 40, 2: 10}, "distinct": {}, "steps": 3}
    return Labels(step=1, key="labels-1", **(base | changes))


def model(*dtypes):
    parameters = tuple(Parameter(i, f"p{i}", (2, 2), dtype, True) for i, dtype in enumerate(dtypes))
    return ModelSeen(step=1, key="model-1", id=1, class_name="Net", parameters=parameters, modules=())


def item(path: Path, number: int, exam=None):
    return judge(gather(Run(path), path.parent, exam))[number - 1]


def with_verdicts(path: Path, **verdicts):
    rows = [{"rule": rule.replace("__", "/").replace("_", "-"), "verdict": verdict, "why": "because"} for rule, verdict in verdicts.items()]
    (path / "report.json").write_text(json.dumps({"verdicts": rows, "findings": []}))
    return path


def with_events(path: Path, *observations):
    (path / "events.jsonl").write_text("".join(map(to_line, observations)))
    return path


def with_source(path: Path, source: str):
    script = path.parent / "program.py"
    script.write_text(source)
    return with_events(path, FilesImported(step=1, key="imports", files=(), main=str(script)))


def checkpoints(*saved, **which):
    return changed(checkpoints={"saved": [{"path": name} for name in saved], "best": which.get("best"), "last": which.get("last"), "read": []})


def siblings(folder: Path, changes, losses=(3.0, 1.1)):
    """Other finished runs of the same script."""
    for at, change in enumerate(changes):
        made(folder, f"sibling{at}", (losses[0], losses[1] + at / 100), changed(**change))


EXAM = {"steps": [{"step": 0, "verdict": "passed"}, {"step": 7, "name": "resume", "verdict": "failed"}], "lr": {"interval": [1e-3, 1e-2]},
        "seeds": {"n": 3, "final": [1.0, 1.1, 0.9], "spread": 0.1}}
BATCHES = "config__loaders"


@pytest.mark.parametrize(("number", "state", "prepare"), [
    (1, "ticked", lambda p: with_verdicts(p, data__split_overlap="clear")),
    (1, "failed", lambda p: with_verdicts(p, data__split_overlap="found")),
    (1, "not-done", lambda p: with_verdicts(p, data__split_overlap="not-checked")),
    (1, "not-done", lambda p: p),
    (2, "ticked", lambda p: with_verdicts(p, data__normalised_on_everything="clear")),
    (2, "failed", lambda p: with_verdicts(p, data__normalised_on_everything="clear", data__scaled_twice="found")),
    (2, "not-done", lambda p: with_verdicts(p, data__scaled_twice="clear")),
    (3, "not-done", lambda p: p),
    (4, "ticked", lambda p: with_events(p, labels())),
    (4, "ticked", lambda p: with_events(p, labels(classes=0, counts={}, value_mean=(2.0,), value_std=(1.0,)))),
    (4, "not-done", lambda p: p),
    (6, "ticked", lambda p: with_source(p, "def f(x):\n    assert x.shape[1] == 3\n")),
    (6, "not-done", lambda p: with_source(p, "assert 1\nx = y.shape\n")),
    (6, "not-done", lambda p: with_source(p, "not python (")),
    (7, "ticked", lambda p: with_events(p, model("float32", "float32"))),
    (7, "failed", lambda p: with_events(p, model("float32", "float64"))),
    (7, "not-done", lambda p: p),
    (8, "ticked", lambda p: with_verdicts(p, loss__double_softmax="clear", loss__logits_as_probabilities="not-checked")),
    (8, "failed", lambda p: with_verdicts(p, loss__double_softmax="found")),
    (8, "not-done", lambda p: with_verdicts(p, loss__double_softmax="not-checked")),
    (9, "not-done", lambda p: p),
    (9, "ticked", lambda p: siblings(p.parent, [{"config__optimizers": [{"groups": [{"lr": lr}]}]} for lr in (1.0, 0.01)]) or p),
    (10, "not-done", lambda p: p),
    (11, "ticked", lambda p: with_source(p, "nn.init.kaiming_normal_(w)\n")),
    (11, "ticked", lambda p: with_events(p, FileRead(step=1, path="w.pt", site=None, tensors=4, holds={}))),
    (11, "failed", lambda p: with_verdicts(with_source(p, "init.zeros_(w)\n"), init__gain_mismatch="found")),
    (11, "not-done", lambda p: with_source(p, "x.zeros_()\nnumpy.random.normal_(3)\n")),
    (12, "ticked", lambda p: (p / "metrics.jsonl").write_text(metrics_line(1, {"clip_limit": 1.0})) and p),
    (12, "failed", lambda p: with_verdicts(p, optim__clip_after_step="found")),
    (12, "not-done", lambda p: p),
    (13, "ticked", lambda p: (p / "metrics.jsonl").write_text(metrics_line(1, {"loss": 1.0, "lr": 0.1, "grad_norm": 2.0})) and p),
    (13, "not-done", lambda p: p),
    (14, "ticked", lambda p: p),
    (18, "not-done", lambda p: p),
    (18, "ticked", lambda p: siblings(p.parent, [{"seeds__calls__0__seed": str(s)} for s in (1, 2)]) or p),
    (18, "not-done", lambda p: siblings(p.parent, [{"config__program__0__values": {"lr": s}} for s in (1, 2)]) or p),
    (19, "not-done", lambda p: p),
    (20, "not-done", lambda p: p),
    (20, "ticked", lambda p: notes.write(p, dict.fromkeys(notes.LINES, "x")) or p),
])
def test_items(number, state, prepare, tmp_path):
    path = prepare(made(tmp_path / "runs", "own"))
    found = item(path, number)
    assert (found.item, found.state) == (number, state), found.evidence.en
    assert found.title == words.TITLES[number] and found.evidence.en and found.evidence.zh and "{" not in found.evidence.en
    assert (found.settle == "") == (state == "ticked")


@pytest.mark.parametrize(("record", "number", "state"), [
    (changed(seeds={"calls": [], "unseeded": ["numpy"]}), 14, "failed"), (changed(seeds={"calls": [], "unseeded": []}), 14, "not-done"),
    (checkpoints("a.pt", "best.pt", best="best.pt", last="a.pt"), 15, "ticked"), (checkpoints("a.pt", last="a.pt"), 15, "not-done"),
    (checkpoints(), 15, "failed"),
])
def test_items_of_the_record(record, number, state, tmp_path):
    assert item(made(tmp_path / "runs", "own", record=record), number).state == state


def test_what_settles_the_kept_checkpoints_settles_them(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    one = item(made(tmp_path / "runs", "own", record=checkpoints("a.pt", last="a.pt")), 15)
    assert cli.main([word.replace("'...'", "best.pt and last.pt") for word in one.settle.split()[1:]] + ["--no-ask"]) == 0
    assert item(tmp_path / "runs" / "own", 15).state == "ticked"
    nothing = item(made(tmp_path / "runs", "none", record=checkpoints()), 15)
    assert nothing.settle == "traindx explain record/best-is-alias" and cli.main(nothing.settle.split()[1:]) == 0
    assert "torch.save" in capsys.readouterr().out


def test_the_page_of_the_rule_that_was_found_is_named(tmp_path):
    path = with_verdicts(made(tmp_path / "runs", "own"), loss__double_softmax="clear", loss__wrong_direction="found")
    assert item(path, 8).settle == "traindx explain loss/wrong-direction"


@pytest.mark.parametrize("number", range(1, 21))
def test_every_command_that_is_given_is_understood(number, tmp_path, monkeypatch):
    """Parsed by the command's own parser; what it would run is not run."""
    settle = item(made(tmp_path / "runs", "own", record=checkpoints("a.pt", last="a.pt")), number).settle
    if settle:
        command, *words = settle.removesuffix(f"  (x{ENOUGH})").split()[1:]
        monkeypatch.setattr(f"traindx.cli.{command}.run", lambda options: 17)
        assert cli.main([command, *words]) == 17


@pytest.mark.parametrize(("number", "state"), [(5, "ticked"), (9, "ticked"), (16, "failed"), (18, "ticked")])
def test_items_of_an_exam(number, state, tmp_path):
    path = made(tmp_path / "runs", "own")
    assert item(path, number, EXAM).state == state and item(path, number).state == "not-done"
    (path / "exam.json").write_text(json.dumps(EXAM))
    assert item(path, number).state == state, "an exam in the record is found"


def test_an_exam_of_the_init_and_the_loss_counts_where_the_rules_know_nothing(tmp_path):
    path = made(tmp_path / "runs", "own")
    exam = {"steps": [{"step": 2, "name": "output", "verdict": "passed"}, {"step": 4, "name": "init", "verdict": "failed"}]}
    assert item(path, 8, exam).state == "ticked" and item(path, 11, exam).state == "failed"
    with_verdicts(path, loss__double_softmax="found")
    assert item(path, 8, exam).state == "failed", "what the run itself showed comes first"


@pytest.mark.parametrize(("interval", "state"), [([0.01, 0.5], "ticked"), ([0.2, 0.5], "not-done"), (None, "not-done")])
def test_with_one_batch_size_the_rate_must_lie_in_the_interval_swept_at_it(interval, state, tmp_path):
    path = made(tmp_path / "runs", "own", record=changed(config__loaders=[{"batch_size": 32, "shuffle": True}]))
    assert item(path, 10, {"steps": [], "lr": {"interval": interval, "used": 0.1}}).state == state


JAXTYPED = 'from jaxtyping import Float\ndef f(x: Float[Tensor, "batch 3"]): ...\n'


@pytest.mark.parametrize(("kind", "document", "number", "state", "says"), [
    ("data", {"page": "/none/p.html", "date": "2026-01-02T03:04:05+00:00"}, 3, "not-done", "is not known"),
    ("data", {"page": "/none/p.html", "viewed": "2026-01-02T03:04:05+00:00"}, 3, "ticked", "opened on 2026-01-02"),
    ("shapes", {"assertions": 4, "date": "2026-01-02T03:04:05+00:00"}, 6, "not-done", "4 assertions printed on 2026-01-02 are not")])
def test_what_other_commands_kept(kind, document, number, state, says, tmp_path):
    path = made(tmp_path / "runs", "own")
    (path / f"{kind}.json").write_text(json.dumps(document))
    found = item(path, number)
    assert found.state == state and says in found.evidence.en and (state == "ticked" or f"traindx {kind} --" in found.settle)


def test_marks_beside_the_page_are_samples_looked_at(tmp_path):
    path = made(tmp_path / "runs", "own")
    (path / "data.json").write_text(json.dumps({"page": str(tmp_path / "traindx-data-train.html")}))
    (tmp_path / "traindx-data-train.marks.json").write_text(json.dumps({"schema": 1, "script": "train.py", "marks": {"train[3]": "fine", "train[4]": "fine"}}))
    assert "2 samples looked at and marked (2 x fine" in item(path, 3).evidence.en
    (tmp_path / "traindx-data-train.marks.json").write_text(json.dumps({"script": "other.py", "marks": {"train[3]": "fine"}}))
    assert item(path, 3).state == "not-done"


def test_jaxtyping_is_an_assertion(tmp_path):
    assert item(with_source(made(tmp_path / "runs", "own"), JAXTYPED), 6).state == "ticked"


@pytest.mark.parametrize(("rate", "state"), [(0.2, "ticked"), (0.1, "failed")])
def test_batch_and_rate_are_moved_together(rate, state, tmp_path):
    loaders = [{"batch_size": 32, "shuffle": True}]
    path = made(tmp_path / "runs", "own", record=changed(config__loaders=loaders))
    made(tmp_path / "runs", "other", record=changed(config__loaders=[{"batch_size": 64, "shuffle": True}], config__optimizers=[{"groups": [{"lr": rate}]}]))
    made(tmp_path / "runs", "of-another-script", script="else.py", record=changed(config__loaders=[{"batch_size": 1, "shuffle": True}]))
    assert item(path, 10).state == state


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = with_verdicts(made(tmp_path / "runs", "own"), data__split_overlap="found")
    assert cli.main(["checklist", "--lang", "en", "--json", "out.json", "--html", "out.html", "--markdown", "out.md"]) == 0
    out = capsys.readouterr().out
    rows = json.loads((tmp_path / "out.json").read_text())
    assert [row["item"] for row in rows] == list(range(1, 21)) and set(rows[0]) >= {"item", "title", "state", "evidence", "settle"}
    assert {row["state"] for row in rows} == {"ticked", "failed", "not-done"}
    assert "[!] 1 Training" in out and "[x] 14 Seeds" in out and "not done. Not done is safer" in out.replace("\n", " ")
    assert (tmp_path / "out.md").read_text().count("- [x]") == sum(row["state"] == "ticked" for row in rows)
    assert (tmp_path / "out.html").read_text().count("<tr class=") == 20
    kept = (path / "notes.md").read_text()
    assert "not done:\n- 1 Training, validation and test set share no sample (failed)\n" in kept and "14 Seeds" not in kept
    assert cli.main(["checklist", "--lang", "zh", "--strict"]) == 1 and "自检清单" in capsys.readouterr().out


def test_answers_are_kept_with_their_date_and_override_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = with_verdicts(made(tmp_path / "runs", "own"), data__split_overlap="found")
    cli.main(["checklist", "--answer", "17=as in table 2", "--answer", "19=no: two at once", "--answer", "1=surely", "--json", "-"])
    capsys.readouterr()
    (tmp_path / "exam.json").write_text(json.dumps(EXAM | {"script": "train.py"}))
    cli.main(["checklist", "--json", "-", "--exam", "exam.json"])
    assert json.loads(capsys.readouterr().out)[4]["state"] == "ticked" and (path / "exam.json").exists(), "kept in the record"
    (tmp_path / "exam.json").write_text(json.dumps(EXAM | {"script": "other.py"}))
    assert cli.main(["checklist", "--exam", "exam.json", "--lang", "en"]) == 2 and "other.py" in capsys.readouterr().err
    cli.main(["checklist", "--json", "-", "--lang", "en"])  # without answers: the kept ones
    rows = {row["item"]: row for row in json.loads(capsys.readouterr().out)}
    kept = json.loads((path / "checklist.json").read_text())["answers"]["17"]
    assert rows[17]["state"] == "ticked" and f"answered on {kept['date']}" in rows[17]["evidence"] and "table 2" in rows[17]["evidence"]
    assert rows[19]["state"] == "failed" and rows[1]["state"] == "failed" and "was found" in rows[1]["evidence"]


def test_asking(tmp_path):
    path = made(tmp_path / "runs", "own")
    replies = iter(["looked at 100", "", "yes, one at a time"])
    assert ask(judge(gather(Run(path), path.parent)), "en", lambda: next(replies)) == {3: "looked at 100", 19: "yes, one at a time"}


@pytest.mark.parametrize("given", [["--answer", "21=x"], ["--answer", "17"], ["--answer", "x=y"], ["--exam", "none.json"], ["unknown"]])
def test_bad_usage(given, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "runs", "own")
    assert cli.main(["checklist", "--lang", "en", *given]) == 2 and capsys.readouterr().err.startswith("traindx: ")


def test_a_hostile_answer_stays_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "runs", "own")
    cli.main(["checklist", "--answer", "17=<b>\x1b[2J[x](http://y)|", "--html", "o.html", "--markdown", "o.md", "--lang", "en"])
    assert "\x1b" not in capsys.readouterr().out
    assert "<b>" not in (tmp_path / "o.html").read_text() and "\\[x\\]" in (tmp_path / "o.md").read_text()
