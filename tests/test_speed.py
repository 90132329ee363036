"""``traindx speed`` without timing anything: statistics, verdicts, the search, findings and reports, on numbers that were recorded or made up."""
from __future__ import annotations

import dataclasses
import itertools
import json
import random
import statistics

import pytest

from traindx.cli import main
from traindx.core.amounts import duration
from traindx.core.codec import decode, encode
from traindx.core.observed import Site
from traindx.core.speed import (
    DEVICE,
    IDLE,
    KINDS,
    SHARES,
    Baseline,
    BatchPoint,
    Change,
    DeviceTime,
    Interval,
    Load,
    Operator,
    Profiled,
    SpeedReport,
    Spent,
)
from traindx.core.text import Text, same
from traindx.reporters import speed as terminal
from traindx.reporters import speed_html
from traindx.reporters.layout import width, wrap_code
from traindx.speed import answering
from traindx.speed.asking import Answer
from traindx.speed.changes import candidates, result_of
from traindx.speed.findings import findings_of
from traindx.speed.reading import baseline_of, lines_of, measured_of, seconds_of
from traindx.speed.search import Setting, search
from traindx.speed.source import carried_at
from traindx.speed.statistics import interval_of, largest_difference, median, outcome_of, quantile, ratios_of
from traindx.speed.verdict import Measured, elasticity_of, judge

CONTRACT = {"baseline", "shares", "verdict", "findings", "trials"}
QUIET = Load(4, 0.5, 0.0)


# -- statistics ---------------------------------------------------------------------------------------------------------

def test_median_and_quantiles_are_those_of_the_standard_library():
    draw = random.Random(1)
    for count in (1, 2, 7, 10):
        values = [draw.random() for _ in range(count)]
        assert median(values) == pytest.approx(statistics.median(values))
    values = [draw.random() for _ in range(9)]
    assert quantile(values, 0.1) == pytest.approx(statistics.quantiles(values, n=10, method="inclusive")[0])
    with pytest.raises(ValueError, match="median of nothing"):
        median([])


def test_the_interval_covers_the_true_median_about_as_often_as_it_says():
    """Over all samples of 5 of three values the exact answer is known for none, so many draws stand for it."""
    draw, inside = random.Random(2), 0
    for number in range(60):
        found = interval_of([1.2 * draw.lognormvariate(0, 0.1) for _ in range(15)], seed=number)
        inside += found.low <= 1.2 <= found.high
    assert inside >= 52
    assert interval_of([]) is None
    alike = interval_of([1.5] * 7)
    assert (alike.ratio, alike.low, alike.high, alike.pairs, alike.won) == (1.5, 1.5, 1.5, 7, 7)


def test_verdicts_of_pairs():
    faster, slower, unclear = Interval(1.4, 1.3, 1.5, 9, 9), Interval(0.7, 0.6, 0.8, 9, 0), Interval(1.05, 0.98, 1.2, 9, 6)
    assert [outcome_of(one, QUIET) for one in (faster, slower, unclear)] == ["faster", "slower", "no-clear-difference"]
    assert outcome_of(Interval(1.01, 1.005, 1.015, 9, 9), QUIET) == "no-clear-difference"  # certain, and too little to matter
    assert outcome_of(Interval(1.4, 1.3, 1.5, 6, 6), QUIET) is None
    for busy in (Load(4, 4.5, 0.0), Load(4, 1.0, 1.5)):
        assert outcome_of(faster, busy) is None and outcome_of(faster, busy, any_load=True) == "faster"


def test_ratios_are_of_rounds_that_timed_both():
    blocks = [{"": 2.0, "held": 1.0}, {"": 3.0, "unread": 3.0}, {"": 4.0, "held": 1.0}]
    assert ratios_of(blocks, "", "held") == [2.0, 4.0] and ratios_of(blocks, "", "unread") == [1.0]


def test_losses_are_compared_by_their_largest_difference():
    assert largest_difference([1.0, 2.0], [1.0, 2.2]) == pytest.approx(0.2 / 2.2)
    assert largest_difference([], [1.0]) is None
    assert largest_difference([float("nan")], [1.0]) == float("inf") and largest_difference([float("nan")], [float("nan")]) == 0.0


@pytest.mark.parametrize(("columns", "lines"), [
    (80, ["DataLoader(..., num_workers=2, persistent_workers=True)"]),
    (40, ["DataLoader(..., num_workers=2,", "           persistent_workers=True)"]),
    (20, ["DataLoader(...,", "           num_workers=2,", "           persistent_workers=True)"])])
def test_a_line_to_paste_is_never_cut(columns, lines):
    assert wrap_code("DataLoader(..., num_workers=2, persistent_workers=True)", columns) == lines
    assert wrap_code("x = first, second, third", 10) == ["x = first, second, third"], "outside of brackets a break would end the statement"


# -- the verdict --------------------------------------------------------------------------------------------------------

def seen(gains=None, **given):
    seconds = dict.fromkeys(SHARES, 0.0) | given.pop("seconds")
    return Measured(20, seconds, **(gains or {}), **given)


GAIN, NONE = Interval(2.0, 1.8, 2.2, 9, 9), Interval(1.01, 0.97, 1.05, 9, 5)


@pytest.mark.parametrize(("what", "verdict"), [
    (seen({"held": GAIN}, seconds={"input": 0.05, "compute": 0.05}), "input-bound"),
    (seen({"held": NONE}, seconds={"input": 0.05, "compute": 0.05}), "compute-bound"),  # the wait was hidden: nothing is gained
    (seen(seconds={"input": 0.05, "compute": 0.05}), "input-bound"),  # could not be held
    (seen(seconds={"input": 0.01, "compute": 0.05}), "compute-bound"),
    (seen({"unread": GAIN}, seconds={"sync": 0.05, "compute": 0.05}, device="cuda"), "sync-bound"),
    (seen({"unread": NONE}, seconds={"sync": 0.05, "compute": 0.05}, device="cuda"), "compute-bound"),  # the wait was for arithmetic
    (seen({"unlogged": GAIN}, seconds={"logging": 0.05, "compute": 0.05}), "overhead-bound"),
    (seen(seconds={"host": 0.06, "compute": 0.04}), "overhead-bound"),
    (seen({"held": GAIN, "unlogged": GAIN}, seconds={"input": 0.05, "logging": 0.03, "compute": 0.02}), "input-bound"),
    (seen({"held": GAIN, "unlogged": GAIN}, seconds={"input": 0.03, "logging": 0.05, "compute": 0.02}), "overhead-bound"),
    (seen(seconds={"compute": 0.01}, ops=1000, elements=64, elasticity=0.05), "overhead-bound"),
    (seen(seconds={"compute": 0.01}, ops=1000, elements=64, call=4e-6), "overhead-bound"),
    (seen(seconds={"compute": 0.1}, ops=1000, elements=64, call=40e-6), "overhead-bound"),  # the same on a machine ten times slower
    (seen(seconds={"compute": 1.0}, ops=100, elements=64, call=4e-6), "compute-bound"),  # calls do not take so long
    (seen(seconds={"compute": 0.01}, ops=1000, elements=64), "compute-bound"),  # what a call takes is not known
    (seen(seconds={"compute": 1.0}, ops=100, elements=64, call=4e-6, grown=(10, 400)), "overhead-bound"),  # however long an operation takes
    (seen({"held": GAIN}, seconds={"input": 0.05, "compute": 0.05}, grown=(10, 400)), "input-bound"),
    (seen(seconds={"compute": 0.01}, ops=1000, elements=64, elasticity=0.9), "compute-bound"),
    (seen(seconds={"compute": 0.01}, ops=20, elements=10**6, elasticity=0.05), "compute-bound"),  # weights, not calls
    (Measured(3, {"compute": 0.1}), "not-measured"), (Measured(20), "not-measured")])
def test_the_verdict(what, verdict):
    found, why = judge(what)
    assert found == verdict and why.en and why.zh and "{" not in why.en + why.zh


def test_elasticity_is_of_the_step_in_the_batch():
    assert elasticity_of(1.0, 2.0) == pytest.approx(1.0) and elasticity_of(1.0, 1.0) == 0.0
    assert [duration(s) for s in (2.0, 0.0034, 12e-6, 5e-9)] == ["2 s", "3.4 ms", "12 us", "5 ns"]


# -- the search ---------------------------------------------------------------------------------------------------------

def searched(speed, current=None, most=8, cuda=False):
    """What the search finds, and how many settings it asked for; ``speed(setting)`` is relative to the program's own."""
    asking, answer, asked = search(current or Setting(0), most, cuda), None, 0
    while True:
        try:
            setting = asking.send(answer)
        except StopIteration as end:
            return end.value, asked
        answer, asked = speed(setting), asked + 1


def pipeline(item, train, cores, start=0.0):
    """Speed of a step with n workers: whichever is slower, making a batch in one of them or training on it; cores are shared."""
    def seconds(setting):
        if not setting.workers:
            return item + train
        working = min(setting.workers, cores)
        return max(item / working, train) * (1 + start * setting.workers) * (1.0 if (setting.prefetch or 2) == 2 else 0.99)
    return lambda setting: seconds(Setting(0)) / seconds(setting)


@pytest.mark.parametrize(("item", "train", "cores", "start"), itertools.product((0.5, 4, 20), (1, 3), (1, 2, 4, 6, 16), (0.0, 0.02, 0.1)))
def test_it_comes_close_to_the_best_of_the_full_grid(item, train, cores, start):
    speed = pipeline(item, train, cores, start)
    best, asked = searched(speed, most=cores)
    grid = [speed(Setting(workers, prefetch)) for workers in range(cores + 1) for prefetch in (2, 4, 8)]
    assert (speed(best) if best else 1.0) >= 0.9 * max(grid)
    assert asked <= 8


def test_it_keeps_the_programs_own_where_nothing_is_better():
    assert searched(lambda setting: 0.8)[0] is None
    assert searched(lambda setting: 0.9, current=Setting(4))[0] is None
    assert searched(lambda setting: 1.5 if setting.pin else 1.2, cuda=True, most=1)[0] == Setting(1, None, True)


# -- from facts to words --------------------------------------------------------------------------------------------------

def place(line, function="<module>", file="train.py", code="x = 1"):
    return encode(Site(file, line, function, code))


def profile(**changes):
    found = {
        "steps": 10, "step_seconds": [0.1] * 10, "samples": 100,
        "seconds": {"input": 0.7, "forward": 0.1, "loss": 0.0, "backward": 0.1, "optimizer": 0.05, "sync": 0.01, "transfer": 0.0, "logging": 0.0,
                    "evaluation": 0.0, "host": 0.04},
        "calls": {"sync": [{"site": place(30), "calls": 10, "seconds": 0.01}]},
        "lines": [{"phase": "input", "site": place(9, "__getitem__"), "calls": "PIL.decode", "count": 60},
                  {"phase": "input", "site": place(9, "__getitem__"), "calls": "", "count": 5},
                  {"phase": "input", "site": place(14, "collate"), "calls": "", "count": 5},
                  {"phase": "forward", "site": place(20), "calls": "torch.linear", "count": 10},
                  {"phase": "host", "site": place(33), "calls": "matplotlib.savefig", "count": 3},
                  {"phase": "host", "site": place(34), "calls": "", "count": 1}],
        "loader": {"batches": 10, "num_workers": 0, "made": [], "begun": [], "fetch_site": None, "made_site": None},
        "backward": {"site": place(22), "seconds": [0.01] * 10, "nodes": [12, 12, 12]}, "first_nodes": [12, 12],
        "operations": {"by_phase": {"forward": 10, "backward": 20, "optimizer": 4, "input": 300}, "outside_seconds": 0.0, "elements": 1000,
                       "lines": [{"site": place(20), "count": 8}]}}
    return found | changes


def test_shares_lines_and_what_a_logging_library_does_in_python():
    seconds = seconds_of(profile())
    assert sum(seconds.values()) == pytest.approx(0.1) and seconds["input"] == pytest.approx(0.07)
    assert seconds["logging"] == pytest.approx(0.003) and seconds["host"] == pytest.approx(0.001)
    outside = seconds_of(profile(operations={**profile()["operations"], "outside_seconds": 0.0005}))
    assert outside["compute"] == pytest.approx(0.0205) and outside["host"] == pytest.approx(0.0005)
    first, *_ = lines_of(profile())
    assert (first.site.line, first.calls) == (9, "PIL.decode") and first.share == pytest.approx(0.7 * 65 / 70)
    assert [line.site.line for line in lines_of(profile(), ("input",))] == [9, 14]


def test_what_was_measured():
    answer = Answer({"profile": profile(), "program": {"device": "cpu", "batch": 8, "dtype": "float32"}, "bare": [0.1] * 9 + [0.2],
                     "blocks": [{"": 0.1, "held": 0.05}] * 7})
    measured = measured_of(answer, 0.7)
    assert measured.held.ratio == 2.0 and measured.ops == 34 and measured.elements == 1000 and measured.unread is None
    assert judge(measured)[0] == "input-bound"
    baseline = baseline_of(answer)
    assert baseline.samples_per_second == pytest.approx(8 / 0.11) and baseline.precision == "float32"
    assert baseline_of(Answer({})) is None


def found_in(verdict="input-bound", fetching=None, **changes):
    shown = profile(**changes)
    return {judged.rule: judged for judged in findings_of(shown, measured_of(Answer({"profile": shown, "program": {"device": "cpu"}})), verdict,
                                                          fetching)}


def test_findings_name_the_line():
    found = found_in()
    slow, read = found["speed/input-bound"], found["speed/sync-every-step"]
    assert (slow.level, slow.finding.where.line) == ("warning", 9) and "PIL.decode" in slow.finding.cause.en
    assert (read.level, read.finding.where.line) == ("note", 30) and "on a GPU each read waits" in read.finding.cause.en
    assert "memory/graph-kept" not in found and "speed/many-small-operations" not in found
    assert found_in("compute-bound")["speed/input-bound"].level == "note"
    assert not any(word in text for word in ("below", "下面") for text in (slow.finding.fix.en, slow.finding.fix.zh)), "with --quick nothing is tried"


@pytest.mark.parametrize(("share", "gain", "said"), [(0.07, None, False), (0.07, GAIN, False), (0.4, NONE, False), (0.4, None, True), (0.4, GAIN, True)])
def test_fetching_is_named_only_where_it_holds_the_training_up(share, gain, said):
    shown = profile()
    measured = seen({"held": gain} if gain else None, seconds={"input": share, "compute": 1 - share})
    found = {judged.rule for judged in findings_of(shown, measured, "compute-bound")}
    assert ("speed/input-bound" in found) == said


@pytest.mark.parametrize(("measured", "said"), [(Measured(0), "no step could be looked at"), (Measured(1, {"compute": 0.1}), "1 step could be looked at")])
def test_a_program_that_ends_early_is_told_so_in_a_sentence(measured, said):
    verdict, why = judge(measured)
    assert verdict == "not-measured" and said in why.en and why.en.endswith("more data.") and why.zh.endswith("。")


def test_a_collate_function_has_another_remedy():
    lines = [{"phase": "input", "site": place(14, "my_collate"), "calls": "", "count": 9}]
    assert "torch.stack" in found_in(lines=lines)["speed/input-bound"].finding.fix.en


def test_a_loader_that_is_begun_in_every_step():
    begun = [{"site": place(12), "starts": 10, "seconds": 0.5}]
    lines = [{"phase": "input", "site": place(12), "calls": "torch.__next__", "count": 50}]
    found = found_in(loader={**profile()["loader"], "begun": begun}, lines=lines)
    assert found["speed/loader-in-loop"].finding.where.line == 12 and "speed/input-bound" not in found
    once = found_in(loader={**profile()["loader"], "begun": [{"site": place(12), "starts": 1, "seconds": 0.5}]}, lines=lines)
    assert "speed/loader-in-loop" not in once and once["speed/input-bound"].finding.where.line == 12


def test_a_graph_that_grows_is_told_with_the_line_that_carries_it(tmp_path):
    file = tmp_path / "train.py"
    file.write_text("h = 0\nfor x in range(3):\n    y = x\n    h = f(x, h)\n")
    grown = {"backward": {"site": place(4), "seconds": [], "nodes": [400, 440, 480]}, "first_nodes": [12, 24, 36],
             "grown": {"name": "h", "file": str(file)}}
    judged = found_in(**grown)["memory/graph-kept"]
    assert judged.finding.where.line == 4 and judged.finding.where.code == "h = f(x, h)"
    steady = {**grown, "backward": {"site": place(4), "seconds": [], "nodes": [36, 36, 36]}}
    assert "memory/graph-kept" not in found_in(**steady)
    shuffled = {**grown, "backward": {"site": place(4), "seconds": [], "nodes": [400, 36, 480]}}  # of batches of different lengths
    assert "memory/graph-kept" not in found_in(**shuffled)


def test_where_a_variable_is_carried(tmp_path):
    file = tmp_path / "model.py"
    file.write_text("class A:\n    def __init__(self):\n        self.h = 0\n    def forward(self, x):\n        self.h = self.h + x\n"
                    "total = 0\nfor x in y:\n    total = 0\n    total += x\n")
    assert carried_at(str(file), "self.h").line == 5 and carried_at(str(file), "total").line == 9
    assert carried_at(str(file), "nowhere") is None and carried_at(str(tmp_path / "no.py"), "x") is None


def test_small_operations_are_told_where_they_are_the_overhead():
    seconds = profile()["seconds"] | {"input": 0.0}
    judged = found_in("overhead-bound", seconds=seconds)["speed/many-small-operations"]
    assert judged.finding.where.line == 20 and "8 operations" in judged.finding.cause.en


# -- changes --------------------------------------------------------------------------------------------------------------

def test_candidates_fit_the_program():
    program = {"optimizer": "SGD", "device": "cpu", "bf16": False, "convolutions": False, "batch": 32, "fused": True}
    found = {one.name: one for one in candidates(program)}
    assert found["bf16"].unfit.en.startswith("this processor has no bfloat16") and found["channels_last"].unfit.en and found["fused"].unfit.en
    assert "linear rule" in found["larger-batch"].remark.en and "batch_size=64" in found["larger-batch"].diff.en
    assert "square-root rule" in {one.name: one for one in candidates({"optimizer": "AdamW"})}["larger-batch"].remark.en
    fit = {one.name: one for one in candidates({**program, "bf16": True, "convolutions": True, "fused": False})}
    assert not any(fit[name].unfit.en for name in ("bf16", "channels_last", "fused", "compile"))


def answer_for(name, base, changed, losses=(1.0, 0.9), seconds=(0.1, 0.1), state="applied", pairs=9):
    return Answer({"blocks": [{"": base, name: changed}] * pairs, "first": {"losses": list(losses), "seconds": list(seconds)},
                   "states": {name: {"name": name, "state": state, "why": {"en": "No such kernel.", "zh": "没有这种内核。"}}}}, QUIET)


def test_a_change_is_judged_with_its_losses():
    fused = candidates({"optimizer": "Adam"})[0]
    found = result_of(fused, answer_for("fused", 0.1, 0.08), [[1.0, 0.9]], False)
    assert found.outcome == "faster" and found.loss_same and found.interval.ratio == pytest.approx(1.25) and found.why.en == ""
    assert not result_of(fused, answer_for("fused", 0.1, 0.08, losses=(1.0, 0.8)), [[1.0, 0.9]], False).loss_same
    noisy = result_of(fused, answer_for("fused", 0.1, 0.08, losses=(1.0, 0.8)), [[1.0, 0.9], [1.0, 0.83]], False)
    assert noisy.loss_same  # two plain runs differ by as much
    assert result_of(fused, answer_for("fused", 0.1, 0.12), [], False).outcome == "slower"
    few = result_of(fused, answer_for("fused", 0.1, 0.08, pairs=3), [], False)
    assert few.outcome is None and "only 3 pairs" in few.why.en
    none = result_of(fused, answer_for("fused", 0.1, 0.08, state="not-applicable"), [], False)
    assert none.interval is None and "No such kernel" in none.why.en


def test_compiling_is_paid_back_or_not():
    compiled = next(one for one in candidates({}) if one.name == "compile")
    paid = result_of(compiled, answer_for("compile", 0.1, 0.05, seconds=(10.05, 0.05)), [], False)
    assert paid.start_seconds == pytest.approx(10.0) and "it pays after 20" in paid.remark.en
    assert "does not pay" in result_of(compiled, answer_for("compile", 0.1, 0.11), [], False).remark.en


# -- reports --------------------------------------------------------------------------------------------------------------

def a_report():
    shown = profile()
    measured = measured_of(Answer({"profile": shown, "program": {"device": "cpu"}, "blocks": [{"": 0.1, "held": 0.04}] * 7}))
    site = Site("a/very/long/path/to/the/package/of/the/user/train.py", 31, "__getitem__", "image = decode(open(self.files[index], 'rb').read())" * 2)
    report = SpeedReport("train.py", Baseline(0.1, (0.09, 0.12), 40, 32, 4096, "float32", "AMD EPYC", 2, "Net", 1_234_567), measured.shares)
    report.verdict, report.why = judge(measured)
    report.held, report.lines, report.input_lines = measured.held, [Spent("input", site, 0.6, "PIL.decode")], [Spent("input", site, 0.9)]
    report.batch_curve = [BatchPoint(1, 0.1), BatchPoint(2, 0.15), BatchPoint(4, 0.3)]
    report.findings = findings_of(shown, measured, report.verdict)
    fused, *_, larger, _ = candidates({"optimizer": "AdamW", "batch": 32})
    report.data = [Change("num_workers=2", Text("loader: num_workers=2", "loader：num_workers=2"), Interval(1.4, 1.3, 1.5, 9, 9), "faster",
                          load=QUIET, diff=same("+ DataLoader(..., num_workers=2)"), seconds=(0.1, 0.07))]
    report.compute = [result_of(fused, answer_for("fused", 0.1, 0.08), [[1.0, 0.9]], False), result_of(larger, answer_for(
        "larger-batch", 0.1, 0.1), [], False), Change("bf16", same("bf16"), why=Text("not tried: none", "没试：没有"))]
    report.profiled = Profiled(8, 0.12, {**dict.fromkeys(KINDS, 0.0), "operators": 0.7, "gaps": 0.3}, (
        Operator("aten::convolution_backward", 0.31, 6.0), Operator("autograd::engine::evaluate_function: ConvolutionBackward0", 0.2, 6.0)))
    report.remarks, report.seconds = [Text("A remark.", "一句话。")], 61.0
    return report


STEPS_ONLY = """
import torch
layer = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
for _ in range(100000):
    optimizer.zero_grad()
    layer(torch.randn(256, 64)).pow(2).mean().backward()
    optimizer.step()
"""


def on_a_gpu():
    report = a_report()
    gpu = DeviceTime({"computing": 0.12, "copying": 0.03, "idle": 0.85}, {"launch": 0.8, "sync": 0.02, "input": 0.02, "transfer": 0.01},
                     {"HtoD": 0.03, "DtoH": 0.0, "DtoD": 0.0}, 1536.0, 2.1e-6, 1540.0, 0.008)
    report.profiled = dataclasses.replace(report.profiled, device=gpu)
    return report


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("made", [a_report, on_a_gpu])
def test_the_report_fits_eighty_columns(language, made):
    text = terminal.render(made(), language)
    assert all(width(line) <= 80 for line in text.splitlines()), [line for line in text.splitlines() if width(line) > 80]
    assert ("80%" in text and "1,536" in text) == (made is on_a_gpu)
    for words in ("320", "1,234,567", "torch.profiler", "aten::convolution_backward", "num_workers=2", "fused=True", "train.py:31", "speed/input-bound"):
        assert words in text
    assert ("faster" in text and "input-bound" in text) if language == "en" else ("更快" in text and "卡在数据" in text)


def test_the_json_keeps_its_contract():
    found = json.loads(terminal.render_json(a_report(), "en"))
    assert found.keys() >= CONTRACT and found["schema"] == 1 and list(found["shares"]) == list(SHARES)
    assert found["baseline"].keys() >= {"samples_per_second", "step_seconds", "precision", "batch", "hardware"}
    assert sum(found["shares"].values()) == pytest.approx(1.0) and found["verdict"] == "input-bound"
    faster = found["trials"][0]
    assert faster.keys() >= {"change", "ratio", "interval", "pairs", "won", "loss_same", "verdict"}
    assert (faster["change"], faster["ratio"], faster["interval"], faster["verdict"]) == ("num_workers=2", 1.4, [1.3, 1.5], "faster")
    assert decode(Site, found["findings"][0]["where"]).line == 9
    profiled = json.loads(terminal.render_json(on_a_gpu(), "en"))["torch_profiler"]
    assert profiled["measured"] and list(profiled["shares"]) == list(KINDS) and profiled["operators"][0]["calls"] == 6.0
    assert list(profiled["device"]["shares"]) == list(DEVICE) and list(profiled["device"]["idle"]) == list(IDLE)
    silent = json.loads(terminal.render_json(SpeedReport("x.py", profiled=Profiled(why=same("of the test"))), "en"))
    assert silent["torch_profiler"] == {"measured": False, "why": "of the test"}
    empty = json.loads(terminal.render_json(SpeedReport("x.py"), "zh"))
    assert empty["verdict"] == "not-measured" and empty["baseline"] is None and empty["torch_profiler"] is None and empty["shares"]["input"] is None


def test_the_page_draws_shares_lines_curve_and_intervals():
    page = speed_html.render(a_report(), "zh")
    assert page.count("<svg") == 6 and speed_html.render(on_a_gpu(), "zh").count("<svg") == 7 and "卡在数据" in page and "num_workers=2" in page and "@@" not in page and "http" not in page.replace(
        "http://www.w3.org", "")
    assert "<svg" not in speed_html.render(SpeedReport("x.py"), "en").partition("<body")[2]


# -- Ctrl-C ------------------------------------------------------------------------------------------------------------------

def test_ctrl_c_keeps_what_is_done(tmp_path, monkeypatch, capsys):
    """Pressed in the second trial: the first one and the baseline are told, and the status is that of a signal."""
    done = iter([Change("fused", same("fused optimizer"), why=same("not tried: of the test"))])

    def trying(self, candidate):
        for change in done:
            return change
        raise KeyboardInterrupt
    monkeypatch.setattr(answering.Speeding, "_try", trying)
    (tmp_path / "train.py").write_text(STEPS_ONLY)
    monkeypatch.chdir(tmp_path)
    assert main(["speed", "--lang", "en", "--json", "-", "train.py"]) == 130
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert found["interrupted"] and [trial["change"] for trial in found["trials"] if trial["step"] == "compute"] == ["fused"] and found["baseline"]["step_seconds"] > 0
    assert "Stopped by Ctrl-C" in said.err


# -- bad input --------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize(("words", "said"), [
    ((), "needs a script"), (("nowhere.py",), "no such script"), (("--seconds", "0", "x.py"), "must be a number above 0"),
    (("--max-workers", "two", "x.py"), "must be a whole number"), (("--only", "bf15", "x.py"), "Known: fused"), (("--sped", "x.py"), "--help")])
def test_bad_input_is_told(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if "x.py" in words:
        (tmp_path / "x.py").write_text("pass")
    assert main(["speed", "--lang", "en", *words]) == 2
    assert said in capsys.readouterr().err
