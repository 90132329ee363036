"""What every report on an exam says."""
from __future__ import annotations

import re

from traindx.core.exams import ExamReport, StepResult
from traindx.core.text import EMPTY, Text, joined, number, same

STEP_NAMES: tuple[tuple[str, Text], ...] = (
    ("overfit", Text("overfit one batch", "在一个 batch 上过拟合")), ("data", Text("data and labels", "数据和标签")),
    ("output", Text("loss and output", "损失和输出")), ("lr", Text("learning rate", "学习率")),
    ("init", Text("initialisation and normalisation", "初始化和归一化")), ("numerics", Text("numerics", "数值")),
    ("capacity", Text("capacity", "容量")), ("resume", Text("resume", "断点续训")))
STEP_NAME = Text("{step} {name}", "{step} {name}")
VERDICTS = {"passed": Text("passed", "通过"), "failed": Text("failed", "未通过"), "not-checked": Text("not checked", "没查")}
NEXT = Text("Next", "下一步")
SANDBOXES = {
    "overlay": Text("an overlay of the project (nothing of yours was written)", "叠在项目上面的一层（没有写过你的任何文件）"),
    "copy": Text("a copy of the project (nothing of yours was written)", "项目的副本（没有写过你的任何文件）"),
    "guard": Text("a copy of the project, guarded at the Python level only", "项目的副本，只在 Python 层面设防")}
TRIALS = Text("{count} run{count:|s} in {seconds} s", "{count} 次运行，用时 {seconds} 秒")
ONE_TRIAL = Text("1 run in {seconds} s", "1 次运行，用时 {seconds} 秒")
INTERRUPTED = Text("stopped by Ctrl-C: what was done is shown", "按 Ctrl-C 中止：以下是已经做完的部分")
REPEATABLE = {True: Text("two runs with the same seeds are equal to the last bit", "种子相同的两次运行逐位相同"),
              False: Text("two runs with the same seeds differ", "种子相同的两次运行结果不同"), None: EMPTY}
PINNED = Text("the batch was held by {how}", "固定 batch 的办法：{how}")
HOW = {"loader": Text("the DataLoader", "DataLoader"), "inputs": Text("the inputs and the target", "模型输入和损失目标"),
       "generators": Text("rewinding the random generators", "每步倒回随机数生成器"),
       "constant": Text("the program itself: it never changes", "程序自己：batch 从来不变")}
RAN_IN = Text("ran in {where}", "运行环境：{where}")
SEEDS = Text("{count} seed{count:|s}: final loss {low} .. {high}, standard deviation {spread}; a gain under {noise} is inside the noise",
             "{count} 个种子：最终损失 {low} .. {high}，标准差 {spread}；小于 {noise} 的提升都在噪声之内")
NOISE = Text("a gain under {noise} is inside the noise", "小于 {noise} 的提升都在噪声之内")


STEP_HEAD = Text("{step} {name}: {verdict}", "{step} {name}：{verdict}")
STOP = Text(". ", "。")
SKIPPED = Text("Not checked: {names}: {why}", "没查：{names}。{why}")
_CURVES = (
    (r"(?P<n>\d+) samples", Text("{n} sample{n:|s}", "{n} 个样本")), ("one batch", Text("one batch", "一个 batch")),
    (r"learning rate x (?P<n>\S+)", Text("learning rate x {n}", "学习率 × {n}")), (r"seed (?P<n>\d+)", Text("seed {n}", "种子 {n}")),
    (r"as written, seed (?P<n>\d+)", Text("as written, seed {n}", "原样，种子 {n}")),
    (r"changed, seed (?P<n>\d+)", Text("changed, seed {n}", "改动后，种子 {n}")), ("as written", Text("as written", "原样")),
    ("changed", Text("changed", "改动后")),
    (r"activation std, step (?P<n>\d+)", Text("activation std, step {n}", "激活标准差，第 {n} 步")),
    ("inputs zero", Text("inputs zero", "输入置零")), ("final loss", Text("final loss", "最终损失")),
    ("unbroken", Text("unbroken", "不中断")), ("resumed", Text("resumed", "续训")),
    ("training", Text("training", "训练")), ("validation", Text("validation", "验证")))


def curve_name(name: str) -> Text:
    """The name of a curve (a key of the JSON) as a reader sees it."""
    for pattern, text in _CURVES:
        if match := re.fullmatch(pattern, name):
            return text.fill(**match.groupdict())
    return same(name)


def not_checked(report: ExamReport) -> list[Text]:
    """The steps that were not checked, those with the same reason together."""
    names: dict[Text, list[Text]] = {}
    for step in report.steps:
        if step.verdict == "not-checked":
            names.setdefault(step.why, []).append(STEP_NAME.fill(step=step.step, name=name_of(step)))
    return [SKIPPED.fill(names=joined(some), why=why) for why, some in names.items()]


def how_it_ran(report: ExamReport) -> list[Text]:
    """Number of runs, whether they repeat, how the batch was held, where they ran."""
    count = (ONE_TRIAL if report.trials == 1 else TRIALS).fill(count=report.trials, seconds=round(report.seconds))
    parts = [count, REPEATABLE[report.repeatable]]
    if report.pinned_by:
        parts.append(PINNED.fill(how=HOW.get(report.pinned_by, same(report.pinned_by))))
    if report.sandbox in SANDBOXES:
        parts.append(RAN_IN.fill(where=SANDBOXES[report.sandbox]))
    return [part for part in parts if part.en]


def name_of(step: StepResult) -> Text:
    return STEP_NAMES[step.step][1]


def seeds_of(report: ExamReport) -> Text:
    if report.seeds is None:
        return EMPTY
    seeds = report.seeds
    return SEEDS.fill(count=len(seeds.final), low=number(min(seeds.final)), high=number(max(seeds.final)),
                      spread=number(seeds.spread), noise=number(seeds.noise))
