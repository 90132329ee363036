"""Programs with a planted bottleneck: each named, at its line; the one without is called compute-bound.

Effects are many times larger than what a busy machine does to them; nothing here compares two times that are alike. That nothing
else is named beside them is for `benchmarks/speed.py planted`: it holds where a step takes the same time each time.
"""
from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from speed_driver import speeding
from traindx.speed import answering

PROGRAMS = Path(__file__).parent.parent / "benchmarks" / "speed_programs"
VERDICTS = {"slow_decode": {"input-bound"}, "python_collate": {"input-bound"}, "loader_in_loop": {"input-bound"},
            "tiny_kernels": {"overhead-bound"}, "logging_images": {"overhead-bound"}, "compute_bound": {"compute-bound"},
            "graph_growth": {"overhead-bound"},
            "slow_get_batch": {"input-bound"}, "slow_generator": {"input-bound"}, "compute_bound_by_hand": {"compute-bound"}}


def marked(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if "# expect: " in line:
            return line.split("# expect: ")[1].strip(), number
    return None


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.py")), ids=lambda path: path.stem)
def test_it_is_named_with_its_line(path, tmp_path, monkeypatch):
    for name, value in (("ROUNDS", 7), ("LOOK_SECONDS", 0.3), ("BLOCK_SECONDS", 0.03)):
        monkeypatch.setattr(answering, name, value)
    speed = speeding(Path(shutil.copy(path, tmp_path)), tmp_path)  # one of them writes a file
    speed.diagnose()
    report, expected = speed.report, marked(path)
    said = [(judged.rule, judged.finding.where.line) for judged in report.findings]
    assert report.verdict in VERDICTS.get(path.stem, {report.verdict})
    assert expected is None or expected in said
    assert sum(report.profiled.shares.values()) == pytest.approx(1.0), report.profiled.why.en
