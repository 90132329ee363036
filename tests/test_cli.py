"""The command line: quick, exact about what is wrong, and the same in both languages."""
from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from traindx import cli, launch, messages
from traindx.cli.explain import rule_named
from traindx.cli.run import check_report_file
from traindx.core.observed import Ended, Site
from traindx.core.observed.program import LossCall
from traindx.core.recording import Recording
from traindx.core.rules import all_pages, all_rules
from traindx.core.secrets import masked
from traindx.core.text import Text
from traindx.errors import UsageError
from traindx.reporters.layout import width
from traindx.runs import folder as folders

SITE = Site("train.py", 3, "forward", "return x.softmax(1)")


def recording(where=SITE):
    """A run in which softmax was applied twice."""
    call = LossCall(step=1, key="loss-1", call=1, function="cross_entropy", site=where, made_at=None, grad=True, model_training=True,
                    value=1.0, reduction="mean", input_shape=(4, 3), target_shape=(4,), input_dtype="float32", target_dtype="int64",
                    input_min=0.1, input_max=0.6, row_sum_min=1.0, row_sum_max=1.0, class_dim=1, origin="softmax", origin_site=where)
    made = Recording([call, Ended(how="finished", steps=12, seconds=1.0)])
    made.series["loss"] = [(step, 1.0 / step) for step in range(1, 13)]
    return made


@pytest.fixture
def script(tmp_path, monkeypatch):
    """A script in the working directory whose run is a made-up recording: nothing is launched."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANG", "en_US.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    (tmp_path / "train.py").write_text("pass\n")
    state = {"status": 0, "recording": recording()}

    def fake(command, folder, settings, watch=None, stdout=None, grouped=False):
        state.update(command=command, folder=folder, settings=settings, stdout=stdout)
        if watch is not None:
            watch(Recording())
        return launch.Outcome(state["status"], 1.5, state["recording"])
    monkeypatch.setattr(launch, "launch", fake)
    return state


def said(capsys, *words):
    status = cli.main(list(words))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


# -- run --------------------------------------------------------------------------------------------------------------

def test_run_reports_and_keeps_a_record(script, capsys, tmp_path):
    status, out, err = said(capsys, "run", "train.py", "--lr", "0.1", "--hub-token=abc")
    assert status == 0 and out == ""
    assert "loss/double-softmax" in err and "train.py:3" in err
    assert script["command"][1:] == ["train.py", "--lr", "0.1", "--hub-token=abc"]
    [folder] = (tmp_path / "runs").iterdir()
    assert {file.name for file in folder.iterdir()} == {  # the recording is the launcher's
        "run.json", "report.json", "notes.md", "record.json", "config.yaml", "environment.json", "heartbeat"}
    kept = json.loads((folder / "run.json").read_text())
    assert kept["argv"] == ["--lr", "0.1", "--hub-token=***"] and kept["status"] == "finished" and kept["schema"] == 1
    assert (folder / "notes.md").read_text().startswith("best:\nfailed hypothesis:\nnext:\n\nnot done:\n- 1 Training, validation")
    assert f"Record: {folder.relative_to(tmp_path)}" in err


def test_run_without_a_record_leaves_nothing(script, capsys, tmp_path):
    said(capsys, "run", "--no-record", "train.py")
    assert [file.name for file in tmp_path.iterdir()] == ["train.py"] and not script["folder"].exists()


def test_a_runs_folder_that_cannot_be_made_is_said_once_and_the_run_goes_on(script, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    status, _, err = said(capsys, "run", "--runs-dir", "file/runs", "train.py")
    assert status == 0 and err.count("goes on unrecorded") == 1 and "file/runs" in err and "loss/double-softmax" in err


@pytest.mark.parametrize(("words", "own", "status"), [
    ((), 0, 0), (("--fail-on", "error"), 0, 3), (("--fail-on", "warning"), 0, 3), (("--fail-on", "error"), 7, 7),
    (("--fail-on", "never"), 0, 0), (("--fail-on", "error", "--ignore", "loss/double-softmax"), 0, 0), ((), 137, 137),
])
def test_exit_status(script, capsys, words, own, status):
    script["status"] = own
    assert said(capsys, "run", "--no-record", *words, "train.py")[0] == status


def test_json_on_stdout_is_alone_there(script, capsys):
    status, out, err = said(capsys, "run", "--no-record", "--json", "-", "train.py")
    assert status == 0 and json.loads(out)["findings"][0]["rule"] == "loss/double-softmax"
    assert script["stdout"] is sys.stderr and "double-softmax" in err


def test_reports_are_written_beside_each_other(script, capsys, tmp_path):
    said(capsys, "run", "--no-record", "--json", "out/a.json", "--html", "out/a.html", "--sarif", "out/a.sarif", "train.py")
    assert json.loads((tmp_path / "out/a.json").read_text())["exit"]["steps"] == 12
    assert json.loads((tmp_path / "out/a.sarif").read_text())["version"] == "2.1.0"
    assert (tmp_path / "out/a.html").read_text().startswith("<!doctype html>")


def test_select_leaves_the_others_unchecked_and_says_so(script, capsys):
    _, out, _ = said(capsys, "run", "--no-record", "--json", "-", "--select", "loss/double-softmax,loss", "train.py")
    verdicts = {row["rule"]: row for row in json.loads(out)["verdicts"]}
    assert set(verdicts) == set(all_rules()) and verdicts["loss/double-softmax"]["verdict"] == "found"
    left_out = [row for name, row in verdicts.items() if name.startswith("shape/")]
    assert left_out and all(row["verdict"] == "not-checked" and "--select" in row["why"] for row in left_out)


def test_a_comment_on_the_guilty_line_suppresses_and_is_counted(script, capsys):
    script["recording"] = recording(Site("train.py", 3, "", "p = x.softmax(1)  # traindx: ignore[loss/double-softmax]"))
    status, _, err = said(capsys, "run", "--no-record", "--fail-on", "error", "train.py")
    assert status == 0 and "1 suppressed" in err and "loss/double-softmax" in err and "1 error" not in err


def test_the_settings_reach_the_child(script, capsys, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.traindx]\nmax-steps = 9\nname = "trial 1"\n')
    said(capsys, "run", "train.py")
    assert script["settings"] == {"script": "train.py", "max_steps": 9, "rank": None} and script["folder"].name.endswith("-trial-1")
    said(capsys, "run", "--max-steps", "4", "train.py")
    assert script["settings"]["max_steps"] == 4


def test_options_after_the_script_are_the_scripts_own(script, capsys):
    said(capsys, "run", "--no-record", "train.py", "--lang", "zh", "--json", "x", "--help", "--select", "nonsense")
    assert script["command"][2:] == ["--lang", "zh", "--json", "x", "--help", "--select", "nonsense"]


def test_chinese(script, capsys):
    _, _, err = said(capsys, "run", "--lang", "zh", "--no-record", "train.py")
    assert "softmax 做了两次" in err and "病因" in err and "怎么改" in err


@pytest.mark.parametrize(("words", "parts"), [
    (["run"], ["needs a script"]),
    (["run", "trian.py"], ["no such script: trian.py", "Did you mean train.py?"]),
    (["run", "nowhere/at_all.py"], ["no such script: nowhere/at_all.py"]),
    (["run", "."], ["is a directory", "train.py"]),
    (["run", "--select", "loss/double-sofmax", "train.py"], ["unknown rule 'loss/double-sofmax'", "loss/double-softmax"]),
    (["run", "--ignore", "losss", "train.py"], ["unknown rule 'losss'", "loss"]),
    (["run", "--select", "loss/double-softmax", "--ignore", "loss", "train.py"], ["leave no rule"]),
    (["run", "--max-steps", "0", "train.py"], ["--max-steps", "whole number above 0", "'0'"]),
    (["run", "--fail-on", "x", "train.py"], ["--fail-on", "traindx run --help"]),
    (["run", "--jsn", "x", "train.py"], ["--jsn"]),
    (["run", "--html", "train.py/x.html", "train.py"], ["--html train.py/x.html cannot be written"]),
    (["explain", "loss/double-sofmax"], ["unknown rule", "loss/double-softmax"]),
    (["explain"], ["RULE"]),
    (["frobnicate"], ["frobnicate"]),
    ([], ["usage: traindx"]),
])
def test_bad_usage_says_what_is_wrong_with_status_2(script, capsys, words, parts):
    status, out, err = said(capsys, *words)
    assert status == 2 and out == "" and all(part in err for part in parts), err
    assert "Traceback" not in err and "command" not in script
    if words[:1] == ["run"]:
        status, _, err = said(capsys, *words[:1], "--lang", "zh", *words[1:])
        assert status == 2 and any("一" <= letter <= "鿿" for letter in err), err


def test_a_report_that_is_never_written_leaves_no_empty_file(tmp_path):
    check_report_file("--html", str(tmp_path / "new.html"))
    (tmp_path / "old.html").write_text("kept")
    check_report_file("--html", str(tmp_path / "old.html"))
    assert [path.name for path in tmp_path.iterdir()] == ["old.html"] and (tmp_path / "old.html").read_text() == "kept"


# -- explain, rules ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_rule_can_be_explained_in_80_columns(language, capsys):
    from traindx.reporters.layout import width
    for name, rule in all_pages().items():
        status, out, _ = said(capsys, "explain", "--lang", language, name)
        assert status == 0 and out.startswith(name)
        assert "".join(rule.title.say(language).split()) in "".join(out.split())
        words = [line for line in out.splitlines() if not line.startswith(("   ", "> "))]
        assert all(width(line) <= 80 for line in words), [line for line in words if width(line) > 80]


def test_explain_shows_before_after_and_the_guilty_line(capsys):
    _, out, _ = said(capsys, "explain", "--lang", "en", "double-softmax")
    assert "Before:" in out and "After:" in out and "> " in out and "# expect" not in out


def test_a_slug_that_several_rules_share_is_ambiguous(monkeypatch):
    monkeypatch.setattr("traindx.core.rules.all_pages", lambda: {"loss/x": None, "data/x": None})
    with pytest.raises(UsageError, match="several rules: loss/x, data/x"):
        rule_named("x")


def test_rules_lists_all_of_them(capsys):
    _, out, _ = said(capsys, "rules", "--lang", "en")
    assert all(name in out for name in all_pages())
    _, out, _ = said(capsys, "rules", "--json", "--lang", "zh")
    rows = json.loads(out)
    assert [row["rule"] for row in rows] == list(all_pages()) and {"level", "step", "title", "explains"} <= rows[0].keys()
    assert [row["rule"] for row in rows if row["judged_by"] == "run"] == list(all_rules())
    assert {row["judged_by"] for row in rows} == {"run", "speed"}


def test_what_another_command_judges_cannot_be_selected(script, capsys):
    status, _, err = said(capsys, "run", "--lang", "en", "--select", "speed/many-small-operations", "train.py")
    assert status == 2 and "judged by `traindx speed`" in err


# -- quickness --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("words", [["--help"], ["--version"], ["run", "--help"], ["rules"], ["explain", "loss/double-softmax"]])
def test_what_needs_no_torch_answers_at_once(words):
    code = f"import sys\nfrom traindx.cli import main\ntry:\n    main({words!r})\nfinally:\n    assert 'torch' not in sys.modules"
    times = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0 and done.stdout, done.stderr
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.3, times  # processor seconds: a busy machine must not fail the test


def test_a_reader_that_leaves_early_is_no_error():
    done = subprocess.run(f"{sys.executable} -m traindx rules | head -1", shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and done.stderr == ""


# -- run folders ------------------------------------------------------------------------------------------------------

def test_runs_started_together_get_folders_of_their_own(tmp_path):
    made = []
    threads = [threading.Thread(target=lambda: made.append(folders.begin(tmp_path, "same", "train.py", []).path)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8 and all((path / "run.json").exists() for path in made)


@pytest.mark.parametrize(("argv", "kept"), [
    (["--token", "abc", "--epochs", "3"], ["--token", "***", "--epochs", "3"]),
    (["--api-key=abc"], ["--api-key=***"]),
    (["--max-tokens", "512", "--tokenizer", "bert", "--key", "q"], ["--max-tokens", "512", "--tokenizer", "bert", "--key", "q"]),
    (["hf_abcdefghijklmnop"], ["***"]),
    (["--x=sk-abcdefghijkl"], ["--x=***"]),
    (["https://me:secret@host/x"], ["***"]),
    (["--push-token", "--fast"], ["--push-token", "--fast"]),
])
def test_secrets_are_not_kept(argv, kept):
    assert masked(argv) == kept


@pytest.mark.parametrize(("name", "folder"), [("a b/c", "a-b-c"), ("../x", "x"), ("", "run"), ("实验1", "实验1"), ("x" * 99, "x" * 60)])
def test_slug(name, folder):
    assert folders.slug(name) == folder


# -- messages ---------------------------------------------------------------------------------------------------------

def texts():
    for name, value in vars(messages).items():
        if isinstance(value, Text):
            yield name, value
        elif isinstance(value, dict) and name.isupper():
            yield from ((name, text) for text in value.values())


def test_every_message_has_the_same_fields_in_both_languages():
    import string
    for name, text in texts():
        fields = [{field for _, field, _, _ in string.Formatter().parse(words) if field} for words in (text.en, text.zh)]
        assert fields[0] == fields[1], name


def test_no_message_is_left_over():
    source = "\n".join(path.read_text() for path in Path(cli.__file__).parent.parent.rglob("*.py") if path.name != "messages.py")
    assert [name for name, _ in texts() if f"messages.{name}" not in source] == []


def test_the_language_comes_from_the_option_then_the_locale(monkeypatch):
    monkeypatch.setattr(os, "environ", {"LANG": "zh_CN.UTF-8"})
    assert cli.language_asked(["run", "train.py"]) == "zh"
    assert cli.language_asked(["run", "--lang", "en", "train.py"]) == "en"
    assert cli.language_asked(["run", "--lang=en"]) == "en"
    assert cli.language_asked(["run", "train.py", "--lang", "en"]) == "zh"


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_the_help_of_every_command_is_chinese_to_its_headings(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--lang", "zh", "--help"] if command != "runs" else [command, "--help", "--lang", "zh"])
    out = capsys.readouterr().out
    assert ended.value.code == 0 and out.startswith("用法：") and "选项：\n" in out
    assert not any(word in out for word in ("usage:", "options:", "arguments:", "show this help"))
    assert max(width(line) for line in out.splitlines() if not line.isascii()) <= 80


@pytest.mark.parametrize(("words", "problem"), [
    (["run", "--jsn"], "不认识的参数：--jsn"), (["explain"], "缺少参数：RULE"), (["run", "--json"], "参数 --json：要跟一个值"),
    (["run", "--fail-on", "x", "t.py"], "参数 --fail-on：没有 'x' 这个选择，可选的有："),
    (["runs", "list", "--limit", "x"], "参数 --limit：'x' 不是合法的值（int）")])
def test_what_argparse_says_of_bad_usage_is_said_in_chinese(words, problem, capsys, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert cli.main(words) == 2 and capsys.readouterr().err.startswith(f"traindx：{problem}")
