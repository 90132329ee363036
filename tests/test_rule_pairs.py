"""Every rule's bad.py and good.py against every rule: exactly the marked lines are found, and nothing else is loud."""
from __future__ import annotations

import re

import pytest

from conftest import dump
from traindx.core.rules import SECTIONS, SECTIONS_ZH, all_pages, all_rules

EXPECT = re.compile(r"#\s*expect:\s*(\S+)")
ALLOW = re.compile(r"^#\s*allow:\s*(.+)$", re.MULTILINE)  # symptoms that are true of the program too, folded or not
NAMES = list(all_rules())


def copy_of(rule, which, tmp_path):
    script = tmp_path / f"{which}.py"
    script.write_text(rule.source_of(which))
    return script


def marks(source):
    return [(line, match[1]) for line, text in enumerate(source.splitlines(), 1) if (match := EXPECT.search(text))]


@pytest.mark.parametrize("name", NAMES)
def test_the_faulty_program_is_found_first_and_at_its_line(name, diagnose, tmp_path):
    rule = all_rules()[name]
    source = rule.source_of("bad")
    [(line, expected)] = marks(source)
    assert expected == name
    report = diagnose(copy_of(rule, "bad", tmp_path))
    allowed = {word for line in ALLOW.findall(source) for word in line.replace(",", " ").split()}
    said = [j.rule for j in report.findings if j.level != "note" or j.rule == name]
    assert said and said[0] == name, dump(report) + report.metadata["output"]
    found = report.findings[[j.rule for j in report.findings].index(name)]
    assert line in [site.line for site in (found.finding.where, *found.finding.also) if site], dump(report)
    assert set(said) - {name} - allowed - {j.rule for j in report.findings if j.explained_by == name} == set(), dump(report)


@pytest.mark.parametrize("name", NAMES)
def test_the_healthy_program_is_quiet(name, diagnose, tmp_path):
    rule = all_rules()[name]
    report = diagnose(copy_of(rule, "good", tmp_path))
    assert [j.rule for j in report.findings if j.level != "note" or j.rule == name] == [], dump(report)
    assert next(v for v in report.verdicts if v.rule == name).verdict == "clear", report.metadata["output"]


@pytest.mark.parametrize("name", list(all_pages()))
def test_the_page_has_every_section_in_both_languages(name):
    rule = all_pages()[name]
    assert list(rule.page("en").sections) == list(SECTIONS)
    assert list(rule.page("zh").sections) == list(SECTIONS_ZH)
    for language in ("en", "zh"):
        assert all(rule.page(language).sections.values())
        assert len(rule.page(language).title) <= 72
    assert any("一" <= letter <= "鿿" for letter in rule.page("zh").title)
    assert rule.level in ("error", "warning", "note") and 0 <= rule.step <= 6


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_show_the_same_code_before_and_after(name):
    """Only comments are translated."""
    rule = all_rules()[name]
    english = code_in(rule.page("en").sections["Fix"], "Before:|After:")
    assert code_in(rule.page("zh").sections["怎么改"], "改前：|改后：") == english and len(english) == 2 and all(english)


def code_in(section, heads):
    parts = re.split(rf"^(?:{heads})$", section, flags=re.MULTILINE)[1:]
    return [[re.sub(r"\s*# .*", "", line) for line in part.splitlines() if line.strip()] for part in parts]


@pytest.mark.parametrize("name", NAMES)
def test_chinese_prose_is_set_as_chinese(name):
    """A half-width space between Chinese and Latin; full-width punctuation; 「」 for quotes."""
    prose = "\n".join(line for line in all_rules()[name].module.ZH.splitlines() if not line.startswith("    "))
    wrong = r"[一-鿿][A-Za-z0-9`]|[A-Za-z0-9`][一-鿿]|[一-鿿][,;:!?]|[一-鿿] [一-鿿]|[（）：，。；] |[“”]|\d%|非有限|重现|批大小"
    assert re.findall(wrong, re.sub(r"\[[^\]]*\]", "", prose)) == []
