"""One report, made by hand, in every form."""
from __future__ import annotations

import io
import json
import math
from html.parser import HTMLParser
from pathlib import Path

import pytest

from traindx import live
from traindx.core.findings import Evidence, Finding, Judged, Report, Verdict
from traindx.core.observed import Site
from traindx.core.recording import Recording
from traindx.core.text import Text, same
from traindx.reporters import html, layout, sarif, style, terminal
from traindx.reporters import json as json_report
from traindx.reporters.layout import width
from traindx.signals.monitors import SIX, Monitor, Monitors

EVIL = "<script>alert('x')</script>\x1b[31m&\""
SITE = Site("src/train file.py", 31, "forward", "return torch.softmax(self.head(h), dim=1)")
CAUSE = Text("cross_entropy applies softmax itself, but its input already went through softmax: the loss cannot fall below 1.46.",
             "cross_entropy 内部自带 softmax，但送进去的输入已经做过一次 softmax（train.py:31）：损失最低只能到 1.46，再怎么训练也不会更低。")


def judged(rule="loss/double-softmax", level="error", title=None, explained_by=None, **facts):
    finding = Finding(**{"cause": CAUSE, "fix": Text("Return the logits.", "直接返回 logits。"), "where": SITE, **facts})
    return Judged(rule, level, title or Text("Softmax is applied twice", "softmax 做了两次"), finding, "logits-instead", (), explained_by)


@pytest.fixture
def report():
    evidence = (
        Evidence(Text("sum of each row of the loss input",
                      "损失输入每一行的和"), 1.0, Text("unbounded logits", "没有上下界的 logits"), step=1),
        Evidence(Text("lowest loss", "最低的损失"), math.inf, "< 1.46", "formula", "nat"),
        Evidence(Text("shapes", "形状"), [(4, 1), (4,)], origin="rule of thumb"),
        Evidence(Text("batch", "batch"), EVIL),
    )
    return Report(
        findings=[
            judged(evidence=evidence, also=tuple(Site("b.py", line, "", "x = " + "很长的" * 40) for line in range(1, 6)), first_step=3),
            judged("optim/lr-too-high", "warning", same("A title " * 12 + "end"), confidence="likely", where=None,
                   because=Text("the loss grew in 3 of 4 windows", "四个窗口里有三个损失在上升")),
            judged("data/class-imbalance", "note", same("Classes are far from equal"), where=Site(EVIL, 3, "<module>", EVIL)),
            judged("curve/plateau", "warning", same("The loss stands still"), explained_by="loss/double-softmax"),
        ],
        verdicts=[Verdict("loss/double-softmax", "found"), Verdict("loss/constant", "clear"),
                  *(Verdict(f"data/d{n}", "not-checked", Text("no validation pass was seen " * 4, "没有看到验证过程，" * 12)) for n in range(3)),
                  *(Verdict(f"mode/m{n}", "not-checked", same(f"reason {n}")) for n in range(5))],
        suppressed=[judged("repro/unseeded", "note")],
        signals={"loss": [(step, 2.3 / step) for step in range(1, 60)] + [(60, math.nan)], "val_loss": [(30, 1.0)],
                 "grad_norm": [(step, 10.0 ** (step % 5)) for step in range(1, 60)], "update_ratio": [(1, math.inf)], "lr": [(1, 0.1)]},
        script="train.py", run="runs/2026-10-16-1432-train", status=1, steps=60, seconds=6.12, stopped="ValueError: " + "long " * 30,
        lost_lines=2, remarks=[Text("2 lines of the recording could not be read. " * 3, "运行记录有两行读不出来。" * 8)])


# -- layout -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("损失", 4), ("a损b失", 6), ("\x1b[1mab\x1b[0m", 2), ("é", 1), ("（）", 4), ("", 0)])
def test_width(text, columns):
    assert width(text) == columns


def test_words_are_kept_whole_and_chinese_breaks_between_letters():
    assert layout.wrap("one two three", 8) == ["one two", "three"]
    assert layout.wrap("损失最低只能到", 8) == ["损失最低", "只能到"]
    assert layout.wrap("用 torch 训练", 8) == ["用 torch", "训练"]


def test_punctuation_never_begins_a_line_and_brackets_never_end_one():
    for columns in range(20, 60):  # narrower than a word, anything goes
        for text in (CAUSE.zh, CAUSE.en, "（一）（二），「三」：四；" * 5):
            for line in layout.wrap(text, columns):
                assert line.strip()[0] not in "，。：；）」" and line.strip()[-1] not in "（「", (columns, line)


@pytest.mark.parametrize("columns", [12, 20, 40, 80])
@pytest.mark.parametrize("text", [CAUSE.en, CAUSE.zh, "x" * 200, "很" * 99, "a/b/c" * 30 + " 中" * 30, ""])
def test_nothing_is_wider_than_asked_and_nothing_is_lost(text, columns):
    lines = layout.wrap(text, columns, "  - ", "    ")
    assert all(width(line) <= columns for line in lines)
    assert "".join("".join(lines).split()) == "-" + "".join(text.split())


def test_cut_keeps_the_width_and_takes_out_control_characters():
    assert layout.cut("损失损失", 5) == "损失…" and layout.cut("ab", 2) == "ab"
    assert "\x1b" not in layout.cut(EVIL, 40)


def test_reflow_joins_paragraphs_and_leaves_code():
    text = "One line\nand more.\n\nBefore:\n    a = 1\n    b = 2\nAfter:\n    c\n中文\n相连"
    assert layout.reflow(text) == ["One line and more.", "", "Before:", "    a = 1", "    b = 2", "After:", "    c", "中文相连"]


# -- terminal ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("columns", [50, 60, 80])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_line_is_wider_than_the_terminal(report, language, columns):
    for colours in (style.PLAIN, style.Style(True)):
        lines = terminal.render(report, language, colours, columns).splitlines()
        assert all(width(line) <= columns for line in lines), [line for line in lines if width(line) > columns]


def test_the_terminal_says_everything_in_order(report):
    text = terminal.render(report, "en")
    order = ["train.py", "1 error  loss/double-softmax  Softmax is applied twice", "src/train file.py:31 in forward",
             "return torch.softmax", "Cause", "Evidence", "sum of each row of the loss input: 1 (expected: unbounded logits;",
             "lowest loss: inf nat (expected: < 1.46; formula)", "Fix", "Also", "b.py:3", "and 2 more", "Explains", "curve/plateau",
             "2 warning  optim/lr-too-high", "no single line", "Confidence", "likely: the loss grew", "Notes", "data/class-imbalance",
             "Monitors", "gradient norm", "0.01 .. 10", "1 suppressed", "repro/unseeded", "Rules: 1 found, 1 clear, 8 not checked",
             "3 x no validation pass", "3 for other reasons", "traindx explain loss/double-softmax", "Record: runs/2026-10-16-1432-train"]
    at = -1
    for part in order:
        found = text.find(part, at + 1)
        assert found > at, (part, text)
        at = found
    assert "\x1b" not in text and text.count("curve/plateau") == 1 and "b.py:4" not in text


def test_the_terminal_in_chinese(report):
    text = terminal.render(report, "zh")
    for part in ("1 错误  loss/double-softmax  softmax 做了两次", "在 forward 中", "病因", "证据", "怎么改", "由此引起", "把握", "很可能：",
                 "实测", "第 1 步", "监控量", "梯度范数", "查出 1，没问题 1，没查 8"):
        assert part in text, text


def test_a_healthy_run_says_so():
    text = terminal.render(Report(script="a.py", status=0, steps=1, seconds=2.0, verdicts=[Verdict("loss/constant", "clear")]), "en")
    assert "a.py, 1 step in 2 s, exit status 0" in text and "No fault was found." in text and "1 clear" in text and "Not checked" not in text


@pytest.mark.parametrize(("terminal_is", "variables", "coloured"), [
    (True, {}, True), (False, {}, False), (True, {"NO_COLOR": "1"}, False), (True, {"TERM": "dumb"}, False), (True, {"NO_COLOR": ""}, True)])
def test_colour_only_on_a_terminal_that_wants_it(terminal_is, variables, coloured, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    stream.isatty = lambda: terminal_is
    assert style.style_for(stream).on is coloured


# -- json -------------------------------------------------------------------------------------------------------------

def test_the_json_keeps_the_contract(report):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(Path(json_report.__file__).with_name("run.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    for language in ("en", "zh"):
        document = json.loads(json_report.render(report, language), parse_constant=pytest.fail)
        jsonschema.validate(document, schema)
    assert jsonschema.validate(json.loads(json_report.render(Report(), "en")), schema) is None


def test_the_json_names_what_json_cannot_hold(report):
    document = json_report.document(report, "en")
    assert document["signals"]["train_loss"][-1] == [60, None] and document["nonfinite"]["train_loss"] == [[60, "nan"]]
    infinite, shapes = document["findings"][0]["evidence"][1:3]
    assert infinite["value"] is None and infinite["nonfinite"] == "inf" and infinite["unit"] == "nat"
    assert shapes["value"] == [[4, 1], [4]]
    assert document["signals"]["lr"] == [[1, 0.1]] and document["exit"]["seconds"] == 6.12
    assert document["findings"][3]["explained_by"] == "loss/double-softmax"


# -- html -------------------------------------------------------------------------------------------------------------

class Reader(HTMLParser):
    """Collects what a browser would act on, and checks that tags are closed."""

    VOID = ("meta", "br", "link", "input")

    def __init__(self):
        super().__init__()
        self.open, self.scripts, self.fetched, self.words = [], 0, [], []

    def handle_starttag(self, tag, attributes):
        self.scripts += tag == "script"
        self.fetched += [value for name, value in attributes if name in ("src", "href", "action", "srcset", "data")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_is_whole_safe_and_alone(report, language, tmp_path):
    page = html.render(report, language, tmp_path)
    reader = Reader()
    reader.feed(page)
    assert reader.open == [] and reader.scripts == 1 and reader.fetched == [] and "@@" not in page
    assert "url(" not in page and "@import" not in page and "<script>alert" not in page
    assert f'data-language="{language}"' in page
    words = "".join(reader.words)
    for part in ("Softmax is applied twice", "softmax 做了两次", "curve/plateau", "reason 4", "inf nat", EVIL.split("\x1b")[0]):
        assert part in words


def test_the_page_shows_the_lines_around_the_place(report, tmp_path):
    source = tmp_path / SITE.file
    source.parent.mkdir()
    source.write_text("\n".join([*(f"line {n}" for n in range(1, 31)), f"    {SITE.code}", "line 32", "line 33"]))
    assert html.context(SITE, tmp_path) == [(28, "line 28"), (29, "line 29"), (30, "line 30"), (31, f"    {SITE.code}"), (32, "line 32"),
                                            (33, "line 33")]
    source.write_text("\n" * 40)
    assert html.context(SITE, tmp_path) == [(31, SITE.code)]  # the file has changed since


# -- sarif ------------------------------------------------------------------------------------------------------------

def test_sarif(report):
    document = json.loads(sarif.render(report, "en"), parse_constant=pytest.fail)
    assert document["version"] == "2.1.0" and document["$schema"].endswith("sarif-2.1.0.json")
    [run] = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    assert all(result["level"] in ("error", "warning", "note") and result["message"]["text"] for result in run["results"])
    first = run["results"][0]
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "src/train%20file.py"}, "region": {"startLine": 31, "snippet": {"text": SITE.code}}}
    assert [place["id"] for place in first["relatedLocations"]] == [1, 2, 3, 4, 5]
    assert run["results"][1]["locations"] == []
    assert [result["ruleId"] for result in run["results"] if result.get("suppressions")] == ["repro/unseeded"]
    assert run["invocations"] == [{"executionSuccessful": False, "exitCode": 1}]


# -- monitors ---------------------------------------------------------------------------------------------------------

def test_monitors_are_told_against_their_bands():
    def told(name, values):
        quantity = next(q for q in SIX if q.series == name)
        return terminal.state_of(Monitor(quantity, list(enumerate(values, 1)))).en
    assert told("grad_norm", [0.5] * 10) == "inside" and told("grad_norm", [0.5] * 3 + [100.0]) == "above in 25 %"
    assert told("update_ratio", [1e-6] * 4) == "below in 100 %" and told("grad_norm", [1.0, math.nan]) == "NaN/Inf in 1"
    assert told("loss", [3.0, 2.0, 1.0]) == "falls" and told("loss", [1.0] * 9) == "flat" and told("loss", [1.0, 2.0, 3.0]) == "rises"
    assert told("loss", [1.0]) == "" and told("weight_norm", [1.0] * 5) == ""
    assert [m.quantity.name for m in Monitors.in_series({"val_loss": [(1, 1.0)], "lr": [(1, 1.0)]}).monitors] == ["val_loss"]


# -- while it runs ----------------------------------------------------------------------------------------------------

class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def watcher(monkeypatch):
    """A Live whose findings and clock the test sets."""
    lines, clock = [], Clock()
    watch = live.Live(None, "en", lines.append, clock)
    state = {"findings": []}
    monkeypatch.setattr(live, "diagnose", lambda recording, rules: Report(findings=state["findings"]))

    def at(step, seconds, *findings):
        state["findings"] = list(findings)
        clock.now = seconds
        recording = Recording()
        recording.series["loss"] = [(step, 1.0)]
        watch(recording)
        return lines
    return at, watch


def test_a_sure_error_is_said_once_when_it_stands_twice(watcher):
    at, watch = watcher
    assert at(1, 0.0, judged()) == []
    assert at(2, 0.1, judged()) == ["traindx: step 2: error loss/double-softmax: Softmax is applied twice (src/train file.py:31)"]
    assert len(at(3, 0.2, judged())) == 1 and watch.said == ["loss/double-softmax"]


def test_what_is_not_sure_or_only_a_symptom_waits_for_the_report(watcher):
    at, _ = watcher
    quiet = [judged("a/warning", "warning"), judged("a/suspected", confidence="suspected"), judged("a/symptom", explained_by="b/cause")]
    for step in range(1, 6):
        assert at(step, step, *quiet) == []
    assert at(10, 6, judged("a/flicker")) == [] and at(30, 7) == [] and at(100, 8, judged("a/flicker")) == []


def test_looks_are_rare_and_become_rarer():
    steps, step = [], 0
    while step < 1000:
        step = live.next_look(step)
        steps.append(step)
    assert steps == [1, 2, 3, 5, 10, 30, 100, 300, 1000]


def test_a_long_step_is_looked_at_by_time(watcher):
    at, watch = watcher
    at(5, 0.0, judged())
    at(6, 1.0, judged())
    assert watch.said == []
    assert len(at(7, 21.0, judged())) == 1
