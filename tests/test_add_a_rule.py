"""A rule is three files: a folder dropped beside the others is found, judged and documented, and nothing else is edited."""
from __future__ import annotations

import sys

import pytest

import traindx.rules
from traindx.core import rules as catalogue
from traindx.core.judge import judge

RULE = '''"""The learning rate is thirteen.

What it is:
Someone set lr = 13.

Fix:
Choose another number.
"""
from collections.abc import Iterator

from traindx.core.findings import Finding
from traindx.core.observed.program import OptimizerMade
from traindx.core.text import Text

ZH = """学习率是 13

是什么：
有人把学习率设成了 13。

怎么改：
换一个数。
"""
LEVEL = "warning"
STEP = 3


def check(made: list[OptimizerMade]) -> Iterator[Finding]:
    for optimizer in made:
        if optimizer.settings[0]["lr"] == "13":
            yield Finding(cause=Text("The lr is 13.", "学习率是 13。"), fix=Text("Change it.", "改掉。"), where=optimizer.site)
'''
SCRIPT = '''import torch
weight = torch.zeros(2, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr={lr})  # expect: superstition/unlucky-rate
for _ in range(3):
    optimizer.zero_grad()
    ((weight - 1) ** 2).sum().backward()
'''


@pytest.fixture
def dropped(tmp_path, monkeypatch):
    folder = tmp_path / "superstition" / "unlucky_rate"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "__init__.py").touch()
    (folder / "rule.py").write_text(RULE)
    (folder / "bad.py").write_text(SCRIPT.format(lr=13))
    (folder / "good.py").write_text(SCRIPT.format(lr=0.1).replace("# expect", "# was"))
    monkeypatch.setattr(traindx.rules, "__path__", [*traindx.rules.__path__, str(tmp_path)])
    catalogue.all_rules.cache_clear()
    yield catalogue.all_rules()["superstition/unlucky-rate"]
    catalogue.all_rules.cache_clear()
    for name in [name for name in sys.modules if "superstition" in name]:
        del sys.modules[name]


def test_three_files_make_a_rule(dropped, observe):
    assert dropped.title.zh == "学习率是 13" and dropped.page("en").sections["Fix"] == "Choose another number."
    bad = judge(observe(dropped.source_of("bad")), [dropped])
    assert [(j.rule, j.finding.where.line) for j in bad.findings] == [("superstition/unlucky-rate", 3)]
    assert judge(observe(dropped.source_of("good")), [dropped]).findings == []


def test_a_folder_that_lacks_a_file_is_left_out_and_said(dropped):
    (dropped.folder / "bad.py").unlink()
    catalogue.all_rules.cache_clear()
    with pytest.warns(catalogue.IncompleteRule, match=r"superstition/unlucky-rate is left out: .* has no bad.py"):
        rules = catalogue.all_rules()
    assert "loss/double-softmax" in rules and "superstition/unlucky-rate" not in rules


@pytest.mark.filterwarnings("error")
def test_no_folder_of_ours_lacks_a_file():
    catalogue.all_rules.cache_clear()
    assert catalogue.all_rules()
