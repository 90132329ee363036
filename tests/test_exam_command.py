"""``traindx exam`` as a user calls it, on the example and its mended twin."""
from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from traindx.reporters import json as json_report

EXAMPLES = Path(__file__).parent.parent / "examples"
SCHEMA = json.loads(Path(json_report.__file__).with_name("exam.schema.json").read_text())


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("digits.py", "digits_mended.py", "digits.npz"):
        shutil.copy(EXAMPLES / name, folder)
    return folder


def traindx(*words, cwd, expected=0):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-m", "traindx", *words], cwd=cwd, capture_output=True, text=True, env=environment, timeout=900)
    assert done.returncode == expected, done.stderr
    return done


def tree(folder):
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def test_the_faulty_example_stops_at_step_0_and_its_cause_is_proved(project):
    before = tree(project)
    report = json.loads(traindx("exam", "--no-record", "--json", "-", "digits.py", cwd=project).stdout)
    jsonschema.validate(report, SCHEMA)
    first, *others = report["steps"]
    assert (first["verdict"], first["shape"]) == ("failed", "flat") and "1.46" in first["why"]
    assert {step["verdict"] for step in others} == {"not-checked"}
    cause, = first["findings"]
    assert cause["rule"] == "loss/double-softmax" and cause["where"]["line"] == 33 and cause["proof"]["outcome"] == "proved"
    assert report["repeatable"] is True and report["pinned_by"] == "loader"
    assert tree(project) == before


def test_the_mended_example_passes_what_is_asked_and_shows_its_pages(project):
    done = traindx("exam", "--step", "0,output,init", "--html", "exam.html", "digits_mended.py", cwd=project)
    said = " ".join(done.stdout.split())
    assert said.count("passed.") == 3 and "failed" not in said and "not asked for" in said
    assert "<svg" in (project / "exam.html").read_text()


def test_a_run_is_proved_when_asked(project):
    done = traindx("run", "--no-record", "--prove", "--max-steps", "20", "--json", "report.json", "digits.py", cwd=project)
    finding = json.loads((project / "report.json").read_text())["findings"][0]
    assert finding["proof"]["outcome"] == "proved" and "Proof" in done.stderr


@pytest.mark.parametrize(("words", "said"), [
    (["exam"], "needs a script"), (["exam", "nothing.py"], "no such script"), (["exam", "--step", "8", "digits.py"], "no step"),
    (["exam", "--finding", "loss/double-softmaks", "digits.py"], "loss/double-softmax"), (["exam", "--seconds", "0", "digits.py"], "above 0"),
    (["exam", "--jobs", "many", "digits.py"], "above 0"),
    (["exam", "--step", "resume", "--resume-args", "'--from it", "digits.py"], "quotation mark")])
def test_bad_usage(project, words, said):
    done = traindx(*words, cwd=project, expected=2)
    assert said in done.stderr and done.stderr.startswith("traindx: ") and "Traceback" not in done.stderr


def test_a_program_that_cannot_be_examined(project):
    (project / "asks.py").write_text("name = input('name? ')\nimport torch\n")
    done = traindx("exam", "asks.py", cwd=project, expected=2)
    assert "standard input" in " ".join(done.stdout.split())


def test_ask_leads_to_a_cause(project):
    environment = {**os.environ, "COLUMNS": "80"}
    done = subprocess.run([sys.executable, "-m", "traindx", "ask", "digits.py"], input="1\n1\n5\nq\n", capture_output=True, text=True,
                          cwd=project, env=environment)
    assert done.returncode == 0 and "What do you see?" in done.stdout and "traindx exam --finding" in done.stdout


def test_the_tree_holds_every_rule_that_is_more_than_a_note():
    from traindx.core.rules import all_rules
    from traindx.tree import SYMPTOMS, all_leaves
    leaves = {leaf.rule for leaf in all_leaves()}
    shown = {rule for symptom in SYMPTOMS for rule in symptom.shown_by}
    left_out = [rule.name for rule in all_rules().values() if rule.level != "note" and rule.name not in leaves | shown]
    assert left_out == []
