"""The gallery: faulty programs in many clothes (tests/faulty, marked ``# expect: family/slug``), healthy ones that tempt (tests/healthy).

A faulty program with lines ``# twin: OLD => NEW`` has a twin in which NEW stands for OLD: the same program, mended. It must be quiet.
"""
from __future__ import annotations

from pathlib import Path

import pytest

from conftest import dump, loud
from test_rule_pairs import ALLOW, marks

HERE = Path(__file__).parent
FAULTY = sorted((HERE / "faulty").glob("*.py"))
HEALTHY = sorted((HERE / "healthy").glob("*.py"))
TWIN = "# twin: "
MENDED = [script for script in FAULTY if TWIN in script.read_text()]


def prepared(script, tmp_path):
    """A copy outside the repository; programs that need a package that is not there are skipped."""
    source = script.read_text()
    for line in source.splitlines():
        if line.startswith("# needs:"):
            for package in line.removeprefix("# needs:").split():
                pytest.importorskip(package)
    copy = tmp_path / script.name
    copy.write_text(source)
    return copy, source


def mended(source):
    """The source with every replacement that its ``# twin:`` lines ask for; one that finds nothing to replace is a mistake."""
    lines = source.splitlines()
    body = "\n".join(line for line in lines if not line.startswith(TWIN))
    for line in lines:
        if line.startswith(TWIN):
            old, new = line.removeprefix(TWIN).split(" => ")
            assert body.count(old) == 1, old
            body = body.replace(old, new)
    return body


@pytest.mark.parametrize("script", FAULTY, ids=lambda path: path.stem)
def test_the_cause_is_named_first_and_at_its_line(script, diagnose, tmp_path):
    copy, source = prepared(script, tmp_path)
    expected = marks(source)
    report = diagnose(copy)
    assert loud(report)[:1] == [expected[0][1]], dump(report) + report.metadata["output"]
    finding = report.findings[0].finding
    assert expected[0][0] in [site.line for site in (finding.where, *finding.also) if site], dump(report)
    allowed = {word for line in ALLOW.findall(source) for word in line.replace(",", " ").split()}
    unexplained = {j.rule for j in report.findings if j.level != "note" and j.explained_by is None}
    assert unexplained - allowed == {expected[0][1]}, dump(report)


@pytest.mark.parametrize("script", MENDED, ids=lambda path: path.stem)
def test_its_mended_twin_is_quiet(script, diagnose, tmp_path):
    copy, source = prepared(script, tmp_path)
    copy.write_text(mended(source))
    report = diagnose(copy)
    assert "Traceback" not in report.metadata["output"], report.metadata["output"]
    assert loud(report) == [], dump(report)


@pytest.mark.parametrize("script", HEALTHY, ids=lambda path: path.stem)
def test_a_healthy_program_is_quiet(script, diagnose, tmp_path):
    copy, _ = prepared(script, tmp_path)
    report = diagnose(copy)
    assert "Traceback" not in report.metadata["output"], report.metadata["output"]
    assert loud(report) == [], dump(report)
    assert report.remarks == []
