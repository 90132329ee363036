"""Step 1: the data and their labels. What the rules saw, and what only a person can see."""
from __future__ import annotations

from traindx.core.exams import StepResult
from traindx.core.findings import Evidence
from traindx.core.text import Text, number
from traindx.core.trials import Gauge
from traindx.experiments.case import Case

LOOKING = Text("labels of the first batch", "第一个 batch 的标签")
PASSED = Text("no rule found a fault in the data that were seen ({steps} step{steps:|s})", "看到的数据里（{steps} 步），没有规则查出问题")
FLOOR = Text("lowest loss that the labels of one batch allow (identical inputs, different labels)",
             "一个 batch 的标签所允许的最低损失（输入相同、标签不同时大于 0）")
ZERO = Text("0 where no two equal inputs have different labels", "没有矛盾标签时为 0")
NEXT = Text("Look at 100 random samples with their labels yourself: wrong labels and twins show to the eye first.",
            "自己抽 100 个样本连同标签看一遍：标错的、重复的，眼睛最先看出来。")


def examine(case: Case) -> StepResult:
    result = StepResult(1, "passed", PASSED.fill(steps=len(case.plain.steps)), next=NEXT)
    trace = case.bench.one(LOOKING, case.bench.plain.measuring(Gauge("label_floor")).for_steps(1))
    floor = (trace.facts.get("label_floor") or {}).get("floor")
    if isinstance(floor, (int, float)):
        result.evidence.append(Evidence(FLOOR, float(number(floor)), ZERO))
    return result
