"""What only ``traindx speed`` names: the page's faulty program is named at its line, by what the timed run counts; its twin is not."""
from __future__ import annotations

from speed_driver import forked
from traindx.core.rules import RUN, all_pages
from traindx.core.trials import Budget, Gauge, Program, Trial
from traindx.speed.findings import findings_of
from traindx.speed.verdict import Measured

PAGES = sorted(name for name, page in all_pages().items() if page.judged_by != RUN)
SETTINGS = {"kind": "profile", "rounds": 0, "seconds": 60, "first": 2, "look_seconds": 0.0, "variants": []}


def profile_of(name, which, folder):
    (folder / "train.py").write_text(all_pages()[name].source_of(which))
    trace = forked(Trial(Program("train.py", cwd=str(folder)), (), (Gauge("timing", SETTINGS),), Budget(10**9, 100)), folder, 200)
    return trace.facts["profile"]


def found(profile, **shares):
    """As if the step were made up so: nothing here depends on how busy the machine is."""
    ops = sum(profile["operations"]["by_phase"].values())
    seen = Measured(20, {"input": 0.0, "host": 0.0, "sync": 0.0, "compute": 0.0, "optimizer": 0.0, "logging": 0.0, **shares}, ops=ops)
    return {judged.rule: judged for judged in findings_of(profile, seen, "overhead-bound")}


def line_of(name):
    return next(at for at, line in enumerate(all_pages()[name].source_of("bad").splitlines(), 1) if f"# expect: {name}" in line)


def test_the_pages_are_those_of_the_speed_command():
    assert PAGES == ["speed/logging-every-step", "speed/many-small-operations", "speed/python-between-operations"]
    assert {all_pages()[name].judged_by for name in PAGES} == {"speed"}


def test_logging(tmp_path):
    name = "speed/logging-every-step"
    profile = profile_of(name, "bad", tmp_path)
    [row] = profile["calls"]["logging"]
    assert row["calls"] == profile["steps"] and row["site"]["line"] == line_of(name)
    judged = found(profile, logging=row["seconds"] / profile["steps"])[name]
    assert judged.finding.where.line == line_of(name) and judged.title == all_pages()[name].title
    assert "logging" not in profile_of(name, "good", tmp_path)["calls"]


def test_small_operations(tmp_path):
    name = "speed/many-small-operations"
    profile = profile_of(name, "bad", tmp_path)
    judged = found(profile, compute=1.0)[name]
    assert judged.finding.where.line == line_of(name) and judged.title == all_pages()[name].title
    good = profile_of(name, "good", tmp_path)
    assert sum(good["operations"]["by_phase"].values()) < 0.3 * sum(profile["operations"]["by_phase"].values())


def test_python(tmp_path):
    name = "speed/python-between-operations"
    judged = found(profile_of(name, "bad", tmp_path), host=1.0)[name]
    assert judged.finding.where.line == line_of(name) and judged.title == all_pages()[name].title
