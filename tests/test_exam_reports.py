"""One exam, made by hand, in every form."""
from __future__ import annotations

import json
import math
import re
from pathlib import Path

import jsonschema
import pytest

from traindx.core.exams import ExamReport, Proved, RateRange, SeedSpread, Sharpness, StepResult
from traindx.core.findings import Evidence, Finding, Judged, Proof
from traindx.core.observed import Site
from traindx.core.text import Text, same
from traindx.reporters import exam_html, exam_json, exam_terminal, exam_words
from traindx.reporters import json as json_report
from traindx.reporters.layout import width
from traindx.reporters.overlay import overlay
from traindx.runs import exams
from traindx.runs import page as runs_page
from traindx.runs.reading import Run

EVIL = "<script>alert('x')</script>\x1b[31m&\""


def finding(rule="loss/double-softmax", outcome="proved", where=None):
    curves = {f"{arm}, seed {seed}": [(k, level + seed / 10) for k in range(1, 51)]
              for arm, level in (("as written", 1.5), ("changed", 0.2)) for seed in range(2)}
    judged = Judged(rule, "error", Text("Softmax is applied twice", "softmax 做了两次"), Finding(
        Text("It came out of a softmax.", "它出自一次 softmax。"), Text("Pass logits.", "直接传 logits。"), where or Site("train.py", 3, "f", EVIL)), "logits-instead")
    return Proved(judged, Proof(outcome, "logits-instead", 1.9, 0.2, Text("late level 1.9", "后期水平 1.9"), curves))


@pytest.fixture
def report():
    falling = [(float(k), 2.3 * math.exp(-k / 40)) for k in range(1, 301)]
    passed = StepResult(0, "passed", Text("8 samples are learnt by heart. " * 4, "8 个样本记住了，" * 9), "fits", curves={
        "8 samples": falling, "one batch": [*falling[:100], (101.0, math.nan)]},
        evidence=[Evidence(Text("sharpness", "锐度"), 12.2, Text("below 2/lr", "小于 2/lr"))])
    failed = StepResult(2, "failed", Text("1 finding stands", "还有 1 条结论成立"), next=Text("Mend it.", "改掉它。"), findings=[finding()])
    skipped = [StepResult(k, "not-checked", Text("step 2 comes first", "要先过第 2 步")) for k in range(3, 7)]
    return ExamReport(
        f"train {EVIL}.py", True, "loader", "overlay", [passed, StepResult(1, "passed", same("fine")), failed, *skipped],
        RateRange((1e-3, 1e-2), None, 0.09, 1.0, 1e-2, 3e-3, 1e-3), SeedSpread([1.0, 1.2], 0.141, 2.54), Sharpness(12.2, 0.164),
        [finding("optim/lr-too-high", "refuted")], [Text("A remark.", "一句话。")], 46, 38.25)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_terminal_keeps_to_its_columns_and_escapes(report, language):
    text = exam_terminal.render(report, language)
    assert all(width(line) <= 80 for line in text.splitlines()), [line for line in text.splitlines() if width(line) > 80]
    assert "\x1b" not in text and "loss/double-softmax" in text and "1.9" in text
    said = text.replace("\n  ", " " if language == "en" else "")
    assert exam_words.SANDBOXES["overlay"].say(language)[:8] in said


def test_terminal_tells_what_was_not_checked_in_one_sentence(report):
    text = " ".join(exam_terminal.render(report, "en").split())
    assert "Not checked: 3 learning rate, 4 initialisation and normalisation, 5 numerics, 6 capacity: step 2 comes first" in text


def test_terminal_in_chinese_has_no_english_words_of_ours(report):
    text = exam_terminal.render(report, "zh")
    ours = re.sub(r"loss/\S+|optim/\S+|train\S*|DataLoader|batch|overlay|softmax|exam|logits|error|alert\S*|script|lr|fine", "", text)
    assert re.findall(r"[A-Za-z]{3,}", ours) == []


def test_json_holds_the_contract(report):
    schema = json.loads(Path(json_report.__file__).with_name("exam.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(exam_json.render(report, "en"))
    jsonschema.validate(document, schema)
    jsonschema.validate(json.loads(exam_json.render(ExamReport("x"), "zh")), schema)
    assert document["steps"][0]["nonfinite"] == {"one batch": [[101.0, "nan"]]}
    assert document["lr"]["interval"] == [1e-3, 1e-2] and document["seeds"]["n"] == 2
    assert document["steps"][2]["findings"][0]["proof"]["outcome"] == "proved" and document["refuted"][0]["proof"]["outcome"] == "refuted"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_html_is_one_page_in_both_languages(report, language):
    page = exam_html.render(report, language)
    assert "<script>alert" not in page and "http" not in page.replace("http-equiv", "")
    assert page.count("<section>") == 7 and "已证实" in page and "proved" in page


def test_overlay_draws_divergence_and_gives_one_colour_to_an_arm():
    drawn = overlay({"as written, seed 0": [(1, 1.0), (2, 2.0)], "as written, seed 1": [(1, 1.1), (2, math.inf)], "changed, seed 0": [(1, 1.0), (2, 0.1)]})
    assert drawn.count('class="cross"') == 1 and len(set(re.findall(r"stroke:(#\w+)", drawn))) == 2
    assert overlay({}) == overlay({"a": [(1, math.nan)]}) == ""


def test_a_run_tells_what_experiments_said_of_it(report, tmp_path):
    """Written as JSON and read back: the same curves, sentences in both languages; each proof stands once, at its finding or its step."""
    folder = tmp_path / "runs" / "2026-01-01-0900-x"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"schema": 1, "script": "train.py", "status": "finished", "steps": 0}))
    (folder / "exam.json").write_text(json.dumps(exam_json.document(report, "en")))
    run = Run(folder)
    exam = exams.exam_of(run, tmp_path / "runs")
    assert [step.title.en for step in exam.steps] == ["0 overfit one batch", "1 data and labels", "2 loss and output"]
    assert exam.steps[0].why == report.steps[0].why and exam.steps[2].tried[0].proof == report.steps[2].findings[0].proof
    assert [one.rule for one in exam.refuted] == ["optim/lr-too-high"]
    page = runs_page.render(run, {}, "zh", tmp_path / "runs")
    assert page.count("<svg") == 3 and "8 个样本记住了" in page and "后期水平 1.9" in page and "改动后" in page
    proof = json_report.proof_as_json(finding().proof, "en")
    stands = {"findings": [{"rule": "loss/double-softmax", "level": "error", "title": "t", "proof": proof}], "refuted": []}
    assert runs_page.render(run, stands, "zh", tmp_path / "runs").count("<svg") == 3


def test_curves_survive_json_with_their_nan_and_infinities():
    curves = {"a": [(1.0, 2.0), (2.0, math.inf), (3.0, -math.inf)], "b": [(1.0, math.nan), (2.5, 1e-9)]}
    kept = exams.curves_from(json.loads(json.dumps(json_report.curves_as_json(curves))))
    assert repr(kept) == repr(curves)


@pytest.mark.parametrize("told", [{}, {"curves": [1]}, {"curves": {"a": 3, "b": [[1], [None, 2], ["x", 1], [True, 1]]}}, {"curves": {"a": []}, "nonfinite": 7}])
def test_what_is_no_curve_is_left_out(told):
    assert exams.curves_from(told) == {}


def test_a_stranger_s_numbers_are_drawn_or_dropped():
    kept = exams.curves_from({"curves": {"a": [[1, 10**400], [2, "x"], [3, None]], **{f"c{at}": [[1, 1]] for at in range(99)}}})
    assert [x for x, _ in kept["a"]] == [1.0, 2.0, 3.0] and all(math.isnan(y) for _, y in kept["a"]) and len(kept) == exams.MOST_CURVES
    assert exams.tried_in([{"rule": "x", "proof": {"outcome": "perhaps"}}, {"proof": 3}, "row"]) == ()
