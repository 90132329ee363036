"""Records built by hand: what goes in comes out, what is broken is counted, causes come before symptoms."""
from __future__ import annotations

import math
import types
from dataclasses import dataclass

import pytest

from traindx.core import amounts
from traindx.core.findings import Finding, Judged
from traindx.core.judge import Absent, ask, in_order, judge
from traindx.core.observed import Ended, Observation, Site
from traindx.core.observed.program import Event, LossCall, Window
from traindx.core.recording import Recording, Tail, metrics_line, to_line
from traindx.core.rules import Rule, UnknownRule, all_rules, matching, parse_page
from traindx.core.text import Text, language_from, number, same

SITE = Site("train.py", 3, "main", "loss.backward()")


def loss_call(**fields):
    given = {"call": 1, "function": "cross_entropy", "site": SITE, "made_at": None, "grad": True, "model_training": True, "value": 2.3,
             "reduction": "mean", "input_shape": (4, 10), "target_shape": (4,), "input_dtype": "float32", "target_dtype": "int64"}
    return LossCall(**(given | fields))


@pytest.mark.parametrize("observation", [
    loss_call(value=math.inf, target_counts={0: 3, 9: 1}, weight=(0.5, 2.0)),
    Window(step=4, key="window-0", events=(Event("step", SITE, 7), Event("loss", None, count=3)), count=9, last_step=12),
    Ended(how="finished", steps=3, seconds=1.5),
])
def test_an_observation_survives_the_journey_to_disk(observation):
    recording = Recording()
    recording.add_line(to_line(observation))
    assert recording.lost == 0
    assert recording.of(type(observation)) == [observation]


def test_nan_is_null_and_named():
    line = metrics_line(7, {"loss": math.nan, "lr": 0.1})
    assert '"loss": null' in line and '"nonfinite": {"loss": "nan"}' in line
    recording = Recording()
    recording.add_metrics(line)
    assert math.isnan(recording.series["loss"][0][1]) and recording.series["lr"] == [(7, 0.1)]


def test_a_broken_line_is_counted_and_the_rest_is_read(tmp_path):
    (tmp_path / "events.jsonl").write_text(to_line(Ended(how="raised", steps=1, seconds=0.1)) + '{"kind": "Ended", "how"\n' + '{"kind": "FromTheFuture"}\n')
    (tmp_path / "metrics.jsonl").write_text(metrics_line(1, {"loss": 1.0}) + "[]\n" + '{"step": 2, "loss": 0.5')
    recording = Recording.read(tmp_path)
    assert recording.last(Ended).how == "raised"
    assert recording.series["loss"] == [(1, 1.0)]
    assert recording.lost == 3  # two broken lines and one that was cut off


def test_a_list_that_is_none_breaks_its_line_and_nothing_later():
    recording = Recording()
    recording.add_line('{"kind": "FilesImported", "files": null, "main": null}')
    recording.add_line('{"kind": "Window", "step": 1, "events": null}')
    assert recording.lost == 2 and not recording.of(Window)


def test_a_tail_reads_only_what_is_new(tmp_path):
    recording = Recording()
    tail = Tail(tmp_path, recording)
    assert tail.read() == 0
    with open(tmp_path / "metrics.jsonl", "a") as file:
        file.write(metrics_line(1, {"loss": 3.0}) + '{"step": 2')
        file.flush()
        assert tail.read() == 1
        file.write(', "loss": 2.0}\n')
        file.flush()
        assert tail.read() == 1
    assert recording.series["loss"] == [(1, 3.0), (2, 2.0)]


def test_the_last_of_a_key_counts():
    recording = Recording([loss_call(key="a", value=1.0), loss_call(key="b"), loss_call(key="a", value=2.0)])
    assert [call.value for call in recording.of(LossCall)] == [2.0, 2.3]


def finding(**fields):
    return Finding(cause=same("c"), fix=same("f"), where=SITE, **fields)


def judged(rule, level="error", explains=(), **fields):
    return Judged(rule, level, same(rule), finding(**fields), explains=explains)


def test_causes_come_before_the_symptoms_that_they_explain():
    ordered = in_order([
        judged("curve/plateau", "warning"),
        judged("numeric/nonfinite", explains=("curve/*",)),
        judged("optim/missing-zero-grad", confidence="likely", explains=("numeric/*", "curve/*")),
    ])
    assert [j.rule for j in ordered] == ["optim/missing-zero-grad", "numeric/nonfinite", "curve/plateau"]
    assert [j.explained_by for j in ordered] == [None, "optim/missing-zero-grad", "optim/missing-zero-grad"]
    assert ordered[0].explains == ("numeric/nonfinite", "curve/plateau")


def test_two_that_explain_each_other_both_stay():
    ordered = in_order([judged("a/x", explains=("b/*",)), judged("b/y", explains=("a/*",))])
    assert [j.explained_by for j in ordered] == [None, None]


def rule_of(check, name="optim/toy", **attributes):
    module = types.ModuleType("toy")
    module.__doc__ = "Toy\n\nWhat it is:\ntoy"
    module.__dict__.update({"check": check, "LEVEL": "error", "STEP": 0, "ZH": "玩具"} | attributes)
    return Rule(name, module)


def test_an_absent_need_is_not_checked():
    def check(calls: list[LossCall]):
        yield finding()
    check.__annotations__ = {"calls": list[LossCall]}
    _, verdict = ask(rule_of(check), Recording())
    assert verdict.verdict == "not-checked" and "torch loss function" in verdict.why.en
    _, verdict = ask(rule_of(check), Recording([loss_call()]))
    assert verdict.verdict == "found"


def test_a_signal_says_itself_why_it_is_absent():
    @dataclass
    class Pulse:
        @classmethod
        def of(cls, recording):
            return Absent(same("no pulse"))

    def check(pulse):
        yield finding()
    check.__annotations__ = {"pulse": Pulse}
    assert ask(rule_of(check), Recording())[1].why.en == "no pulse"


def test_a_rule_that_fails_is_not_checked_and_said():
    def check(calls):
        raise KeyError("gone")
        yield
    check.__annotations__ = {"calls": list[LossCall]}
    said, verdict = ask(rule_of(check), Recording([loss_call()]))
    assert said == [] and verdict.verdict == "not-checked" and "KeyError" in verdict.why.en


def test_several_places_are_one_finding():
    other = Site("train.py", 9)

    def check(calls):
        yield finding(first_step=5)
        yield Finding(cause=same("c"), fix=same("f"), where=other, first_step=2)
    check.__annotations__ = {"calls": list[LossCall]}
    said, _ = ask(rule_of(check), Recording([loss_call()]))
    assert len(said) == 1 and said[0].finding.where == other and said[0].finding.also == (SITE,)


@pytest.mark.parametrize("comment, suppressed", [
    ("# traindx: ignore[optim/toy]", True), ("# traindx: ignore", True), ("# traindx: ignore[optim/*, data/x]", True),
    ("# traindx: ignore[data/x]", False), ("# noqa", False),
])
def test_a_comment_on_the_guilty_line_suppresses(comment, suppressed):
    def check(calls):
        yield Finding(cause=same("c"), fix=same("f"), where=Site("t.py", 1, "", f"step() {comment}"))
    check.__annotations__ = {"calls": list[LossCall]}
    report = judge(Recording([loss_call()]), [rule_of(check)])
    assert (len(report.suppressed), len(report.findings)) == ((1, 0) if suppressed else (0, 1))


def test_names_are_chosen_by_patterns():
    names = list(all_rules())
    assert matching(["loss/double-softmax"], names) == {"loss/double-softmax"}
    assert matching(["loss"], names) == {name for name in names if name.startswith("loss/")}
    with pytest.raises(UnknownRule) as caught:
        matching(["loss/doubl-softmax"], names)
    assert "loss/double-softmax" in caught.value.args[1]


def test_a_page_is_cut_at_its_headings():
    page = parse_page("Title.\n\nFix:\nDo this: that.\n\nSource:\nA book.", ("Fix", "Source"))
    assert (page.title, page.sections) == ("Title", {"Fix": "Do this: that.", "Source": "A book."})


@pytest.mark.parametrize("what, said", [
    (Text("the model", "模型"), "模型在 3 步之后"), (Text("Net", "Net"), "Net 在 3 步之后"), ("我的 模型", "我的 模型 在 3 步之后")])
def test_a_field_keeps_its_space_behind_code_alone(what, said):
    """What came from the user is left as it is."""
    assert Text("{what} after {n}", "{what} 在 {n} 步之后").fill(what=what, n=3).zh == said
    assert Text("of {what}: {op} {is_}", "在 {what} 里：{op} {is_}").fill(
        what=Text("the model", "模型"), op=Text("division", "除法"), is_=Text("of 0", "的输入是 0")).zh == "在模型里：除法的输入是 0"


def test_texts_are_filled_in_both_languages_at_once():
    text = Text("{what} of {n}", "{n} 的{what}").fill(what=Text("part", "部分"), n=3)
    assert (text.say("en"), text.say("zh")) == ("part of 3", "3 的部分")


@pytest.mark.parametrize("value, words", [(3, "3"), (3.0, "3"), (0.00123456, "0.00123"), (1234567.0, "1.23e+06"), (6941.7, "6940"), (123456.0, "123456"), (math.inf, "inf"), (math.nan, "NaN")])
def test_numbers_are_written_as_people_do(value, words):
    assert number(value) == words


@pytest.mark.parametrize(("count", "said"), [(0, "0 boxes are"), (1, "1 box is"), ("1", "1 box is"), (2, "2 boxes are"), (1.5, "1.5 boxes are")])
def test_a_count_chooses_its_word(count, said):
    assert Text("{n} box{n:|es} {n:is|are}", "{n} 个").fill(n=count) == Text(said, f"{count} 个")


def test_a_format_stays_a_format():
    assert Text("{n:.2f} {n!r:>5}", "{n:>3}").fill(n=1) == Text("1.00     1", "  1")


@pytest.mark.parametrize(("said", "wanted"), [
    (amounts.size(3.34e8), "334 MB"), (amounts.size(112e9), "112 GB"), (amounts.size(17), "17 B"), (amounts.size(math.inf), "inf TB"),
    (amounts.binary_size(64 * 2**20), "64 MiB"), (amounts.binary_size(1_304), "1.27 KiB"), (amounts.binary_size(2**50), "1024 TiB"),
    (amounts.rate(6941.7), "6,940"), (amounts.rate(97.53), "97.5"), (amounts.rate(1_234_567), "1,230,000"), (amounts.rate(math.nan), "NaN"),
    (amounts.duration(12e-6), "12 us"), (amounts.reading("peak_memory_bytes", 3.34e8), "334 MB"),
    (amounts.reading("samples_per_second", 2970.2), "2,970 / s"), (amounts.reading("loss", 0.33612), "0.336")])
def test_amounts_are_written_as_people_do(said, wanted):
    assert said == wanted


def test_the_language_comes_from_the_setting_then_the_locale(monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert language_from(None) == "zh" and language_from("en") == "en"
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert language_from(None) == "en"


def test_observations_are_all_decodable():
    assert {"LossCall", "Window", "OpTrace", "LoaderMade"} <= set(Observation.kinds)
