"""Twelve learning rates, 60 steps each, on a quadratic: how many of them fly off?"""
from __future__ import annotations

from functools import cache

import torch

from traindx.core.text import Text, number
from traindx.figures import Axis, Chart, Mark, Role, Series
from traindx.labs.lab import Lab, Outcome, Slider, State, Switch, Table, grid

STEPS, COUNT = 60, 12
DECADES = 4  # the twelve rates span this many, up to the highest
DIRECTIONS = 5
CONDITIONS = grid(1, 1e4, 13, log=True)
LINE = 1 / 3  # the reference of the chapter, a rule of thumb
TOP = 1e10  # what flew further is drawn here


def rates(highest: float) -> tuple[float, ...]:
    return grid(highest / 10**DECADES, highest, COUNT, log=True)


def curvatures(condition: float, normalised: bool) -> tuple[float, ...]:
    """Of the five directions, 1 to ``condition``. A feature c times as wide has c² times the curvature: normalising makes all 1."""
    return (1.0,) * DIRECTIONS if normalised or condition == 1 else grid(1, condition, DIRECTIONS, log=True)


@cache
def final_losses(highest: float, condition: float, normalised: bool) -> tuple[float, ...]:
    """½ Σ h x² after 60 steps from x = (1, .., 1), divided by its start, for each of the twelve rates."""
    bends = torch.tensor(curvatures(condition, normalised), dtype=torch.float64)
    steps = torch.tensor(rates(highest), dtype=torch.float64)[:, None]
    places = torch.ones(COUNT, DIRECTIONS, dtype=torch.float64)
    for _ in range(STEPS):
        places = places - steps * bends * places
    return tuple(((bends * places.square()).sum(1) / bends.sum()).tolist())


def share_lost(losses: tuple[float, ...]) -> float:
    """Of runs that end above their start: the infeasible ones."""
    return sum(not loss <= 1 for loss in losses) / len(losses)


def compute(state: State) -> Outcome:
    highest, condition, normalised = float(state["highest"]), float(state["condition"]), bool(state["normalised"])
    losses = final_losses(highest, condition, normalised)
    share = share_lost(losses)
    verdict = Text("{lost} of 12 rates fly off, {share} % (measured). A rate is feasible below 2 / h = {limit} (formula). ",
                   "12 个学习率飞了 {lost} 个，占 {share} %（实测）。能跑的学习率要小于 2 / h = {limit}（公式）。")
    verdict = verdict.fill(lost=round(share * COUNT), share=number(100 * share, 2), limit=number(2 / max(curvatures(condition, normalised))))
    return Outcome(verdict + (MANY if share > LINE else FEW), "error" if share > LINE else "fine",
                   (_runs(highest, losses), _shares(highest, condition, normalised)), (_table(highest, losses),))


MANY = Text("That is more than the line at 1/3: do not sweep on, look for the fault (inputs not normalised, wrong scale of the "
            "initialisation, a wrong loss), or move the range.",
            "超过了 1/3 这条线：别再往下扫了，先查问题（输入没归一化、初始化尺度不对、损失写错），或者换一段搜索区间。")
FEW = Text("That is below the line at 1/3: this range is fit to be searched.", "没超过 1/3 这条线：这段区间可以放心搜。")


def _runs(highest: float, losses: tuple[float, ...]) -> Chart:
    drawn = [(rate, min(loss, TOP) if loss == loss else TOP) for rate, loss in zip(rates(highest), losses)]
    kinds: tuple[tuple[Text, Role, bool], ...] = ((Text("runs", "能跑"), "good", True),
                                                  (Text("flies off (drawn at 10^10 at most)", "飞了（最高画到 10^10）"), "bad", False))
    series = [Series(name, [x for x, y in drawn if (y <= 1) == well], [y for _, y in drawn if (y <= 1) == well], role, "points")
              for name, role, well in kinds]
    return Chart(Text("Each rate after 60 steps", "每个学习率跑 60 步以后"), Axis(Text("learning rate", "学习率"), log=True),
                 Axis(Text("loss / loss at the start", "损失 ÷ 起点的损失"), log=True, range=(1e-10, TOP * 10)), tuple(series),
                 (Mark("y", 1.0, Text("start", "起点")),))


def _shares(highest: float, condition: float, normalised: bool) -> Chart:
    shares = [100 * share_lost(final_losses(highest, each, normalised)) for each in CONDITIONS]
    return Chart(Text("Share of the twelve that flies off", "12 个学习率里飞了多少"),
                 Axis(Text("largest curvature / smallest", "最大曲率 ÷ 最小曲率（病态程度）"), log=True),
                 Axis(Text("infeasible, %", "不可行比例，%"), range=(-3, 105)),
                 (Series(Text("infeasible", "不可行"), CONDITIONS, shares, "main", "line+points"),),
                 (Mark("x", condition, Text("here", "现在"), "other", knob="condition"),
                  Mark("y", 100 * LINE, Text("1/3: a rule of thumb of ours", "1/3：我们的经验线"), "bad")))


def _table(highest: float, losses: tuple[float, ...]) -> Table:
    rows = tuple((number(rate), number(loss), Text("runs", "能跑") if loss <= 1 else Text("flies off", "飞了"))
                 for rate, loss in zip(rates(highest), losses))
    return Table((Text("learning rate", "学习率"), Text("loss / start after 60 steps", "60 步后损失 ÷ 起点"), Text("result", "结果")), rows)


LAB = Lab(
    14, "infeasible", Text("Twelve learning rates: how many fly off?", "扫 12 个学习率：飞了几个？"),
    about=Text("Google's Deep Learning Tuning Playbook calls a setting infeasible when its training diverges, and asks to count these before "
               "anything else is read from a search. Here twelve rates run 60 steps of gradient descent each on a quadratic in five "
               "directions. The slider makes it ill-conditioned: some directions become far steeper than others. The line at 1/3 is a rule of "
               "thumb of ours; the playbook only says \"a large share\".",
               "Google 的《Deep Learning Tuning Playbook》把跑不起来、发散的配置叫「不可行点」，要求读任何实验结果之前先数一数它们占多少。"
               "这里的 12 个学习率，每个都在一个五维的二次函数上做 60 步梯度下降。滑块让这个问题变得病态：有的方向比别的方向陡得多。"
               "1/3 那条线是我们的经验线；原书只说「很大比例」，没有给数字。"),
    see=Text("With a condition of 10, two of the twelve fly off: a healthy sweep has a few.",
             "病态程度取 10，12 个里飞了 2 个：健康的扫描本来就会飞掉几个。"),
    break_it=Text("Drag the condition up to 10000. Then switch on the normalised inputs.", "把病态程度拖到 10000，再打开「输入归一化」。"),
    then=Text("Nearly all of them fly off, though not one rate was changed: the fault lies in the problem, not in the rates. "
              "With the inputs normalised all come back.",
              "学习率一个没动，却几乎全飞了：错在问题本身，不在学习率。输入一归一化，全都回来了。"),
    rules=("optim/lr-too-high", "curve/diverging", "data/not-normalised", "init/gain-mismatch"),
    knobs=(Slider("condition", Text("Condition: largest / smallest curvature", "病态程度：最大曲率 ÷ 最小曲率"), CONDITIONS, CONDITIONS[3]),
           Switch("normalised", Text("Inputs normalised", "输入归一化")),
           Slider("highest", Text("Highest rate of the sweep", "扫描里最大的学习率"), (0.1, 1.0, 10.0), 1.0)),
    compute=compute, sources=("https://github.com/google-research/tuning_playbook",))
