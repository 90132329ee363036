"""A trained toy as a chart, one or two sentences and, where the loss does not show the fault, the evidence that does."""
from __future__ import annotations

import math
from dataclasses import dataclass

from traindx.core.rules import all_rules
from traindx.core.text import EMPTY, Text, number
from traindx.figures import Axis, Chart, Role, Series
from traindx.labs.lab import Table
from traindx.messages import ORIGIN
from traindx.toys.training import Points, Toy, Trained, Which
from traindx.tree import leaf_of

ALIKE = 1.25  # ratio of the two ends below which no eye tells the curves apart
NAMES: dict[Which, Text] = {"bad": Text("faulty program", "带病的程序"), "good": Text("sound program", "健康的程序")}
ROLES: dict[Which, Role] = {"bad": "bad", "good": "good"}
VALIDATION = Text("{name}, validation", "{name}，验证")
STEP, LOSS = Text("step", "步"), Text("training loss", "训练损失")

DIVERGED = Text("Diverged at step {step}: from there on the loss is NaN or infinite.", "在第 {step} 步发散：从这里起，损失是 NaN 或无穷大。")
HIGHER = Text("The faulty program ends at {bad}, the sound one at {good} (measured, mean of the last tenth).",
              "带病的程序最后停在 {bad}，健康的程序到 {good}（实测，最后十分之一的平均）。")
LOWER = Text("The faulty program ends lower: {bad} against {good} (measured, mean of the last tenth). A low training loss does not say "
             "that all is well.",
             "带病的程序反而更低：{bad} 对 {good}（实测，最后十分之一的平均）。训练损失低，不等于没问题。")
SAME = Text("Both end near {good} (measured, mean of the last tenth): the training loss does not show this fault. What shows it stands below.",
            "两条曲线最后都在 {good} 附近（实测，最后十分之一的平均）：训练损失看不出这个毛病，要看下面的证据。")
STOPPED = Text("The faulty program ends at step {step}: {error}.", "带病的程序停在第 {step} 步：{error}。")
POINT = Text("The faulty program never updates a parameter: there is one loss of it, {bad} (measured), and no curve. The sound one ends "
             "at {good}.",
             "带病的程序从没更新过参数：它只有一个损失值 {bad}（实测），连不成曲线。健康的程序到 {good}。")
ALONE = Text("The sound program computes no loss that could be drawn; the faulty one ends at {bad} (measured).",
             "健康的程序没有可画的损失；带病的程序停在 {bad}（实测）。")
NO_LOSS = Text("There is no training loss to draw: {why}. What shows the fault stands below.", "没有训练损失可画：{why}。要看下面的证据。")
NO_STEP = Text("the program never comes to an optimizer step", "程序一步参数更新也没有做")
RAISED = Text("the program ends with {error}", "程序以 {error} 结束")
NO_CALL = Text("none of its steps computes a loss", "它的每一步都没有计算损失")
NOT_FOUND = Text("With this seed traindx does not find the fault.", "换成这个种子，traindx 没有查出这个毛病。")
HEADS = (Text("evidence", "证据"), Text("value", "数值"), Text("sound", "正常时"), Text("origin", "来源"))
AT_LINE = Text("bad.py, line {line}: {code}", "bad.py 第 {line} 行：{code}")


@dataclass(frozen=True)
class Drawing:
    """``chart`` is None where there is no loss. ``cause``: what traindx says of the faulty program; ``see``: the rule page's words."""

    rule: str
    seed: int
    chart: Chart | None
    said: Text
    cause: Text
    place: Text
    evidence: Table | None
    see: Text


def draw(toy: Toy) -> Drawing:
    """Pure: the same toy gives the same drawing."""
    found = toy.found
    rows = tuple((what, value, expected, ORIGIN[origin]) for what, value, expected, origin in found.evidence) if found else ()  # type: ignore[index]
    return Drawing(toy.rule, toy.seed, chart_of(toy), said_of(toy), found.cause if found else NOT_FOUND,
                   AT_LINE.fill(line=found.line, code=found.code) if found and found.line else EMPTY,
                   Table(HEADS, rows) if rows else None, leaf_of(all_rules()[toy.rule]).see)


def series_of(toy: Toy, which: Which) -> Series:
    """The training loss of one of the two programs."""
    return _series(NAMES[which], toy.of(which).loss, ROLES[which])


def _series(name: Text, points: Points, role: Role, dashed: bool = False) -> Series:
    return Series(name, [x for x, _ in points], [y for _, y in points], role, "line" if len(points) > 1 else "points", dashed)


def chart_of(toy: Toy) -> Chart | None:
    """Both curves; validation dashed, where the programs have one."""
    curves = []
    for which in ("good", "bad"):
        done = toy.of(which)
        if done.loss:
            curves.append(series_of(toy, which))
        if done.validation:
            curves.append(_series(VALIDATION.fill(name=NAMES[which]), done.validation, ROLES[which], dashed=True))
    if not toy.bad.loss:
        return None
    values = [y for series in curves for y in series.y if math.isfinite(y)]
    log = bool(values) and min(values) > 0
    title = all_rules()[toy.rule].title
    return Chart(title, Axis(STEP), Axis(LOSS, log=log), tuple(curves))


def said_of(toy: Toy) -> Text:
    """What the two curves show, in numbers."""
    bad, good = toy.bad, toy.good
    if not bad.loss:
        return NO_LOSS.fill(why=_why_none(bad))
    if (step := series_of(toy, "bad").diverged_at()) is not None:
        return DIVERGED.fill(step=number(step))
    low, high = end_of(good.loss), end_of(bad.loss) or 0.0
    if bad.error.en:
        return STOPPED.fill(step=bad.steps, error=_short(bad.error))
    if low is None:
        return ALONE.fill(bad=number(high))
    return POINT.fill(bad=number(high), good=number(low)) if len(bad.loss) == 1 else _compared(high, low)


def _short(error: Text) -> Text:
    """The first sentence of an exception."""
    return Text(_first(error.en), _first(error.zh))


def _first(words: str, most: int = 120) -> str:
    first = words.partition("\n")[0].partition(". ")[0].rstrip(".。")
    return first if len(first) <= most else first[:most] + "…"


def _compared(bad: float, good: float) -> Text:
    text = SAME if alike(bad, good) else HIGHER if bad > good else LOWER
    return text.fill(bad=number(bad), good=number(good))


def alike(bad: float, good: float) -> bool:
    if bad > 0 and good > 0:
        return max(bad, good) / min(bad, good) < ALIKE
    return abs(bad - good) < (ALIKE - 1) * max(abs(bad), abs(good)) or bad == good


def end_of(points: Points) -> float | None:
    """The mean of the last tenth, over finite values."""
    values = [y for _, y in points if math.isfinite(y)]
    last = values[-max(1, len(values) // 10):]
    return sum(last) / len(last) if last else None


def _why_none(done: Trained) -> Text:
    if done.error.en:
        return RAISED.fill(error=_short(done.error))
    return NO_CALL if done.steps else NO_STEP
