"""The six monitors on a small net that can be broken: which of them speak, and when?"""
from __future__ import annotations

from functools import cache

from traindx.core.text import Text, joined, number
from traindx.figures import Axis, Band, Chart, Figure, Role, Series
from traindx.labs.lab import Choice, Lab, Outcome, State, Table, seed
from traindx.labs.six_monitors.alarms import Alarm, alarms
from traindx.labs.six_monitors.runs import FAULTS, LAYERS, STEPS, Curves, watch
from traindx.signals.monitors import SIX, Quantity

EVERY, LEAST = 2, 1e-9  # what is 0 is drawn at LEAST: a logarithmic axis has no 0
ROLES: tuple[Role, ...] = ("main", "other", "third", "fourth")
BAND = Text("usual: {low} … {high} (rule of thumb)", "正常范围：{low} … {high}（经验值）")
record = cache(watch)


def compute(state: State) -> Outcome:
    curves = record(str(state["fault"]), int(state["seed"]))
    found = alarms(curves)
    if found:
        names = [alarm.quantity.title for alarm in found]
        verdict = Text("{n} of the six speak (measured): {names}. {first}", "六个监控量里有 {n} 个告警（实测）：{names}。{first}")
        verdict = verdict.fill(n=len(found), names=joined(names),
                               first=FAULTS[str(state["fault"])].meaning)
    else:
        verdict = Text("All six are as they should be over {steps} step{steps:|s} (measured): loss {before} → {after}.",
                       "{steps} 步里，六个监控量全都正常（实测）：损失 {before} → {after}。")
        verdict = verdict.fill(steps=STEPS, before=number(curves["train_loss"][0][0]), after=number(curves["train_loss"][0][-1]))
    return Outcome(verdict, "error" if found else "fine", tuple(_chart(quantity, curves) for quantity in SIX), (_table(curves, found),))


def _chart(quantity: Quantity, curves: Curves) -> Figure:
    lines, steps = curves[quantity.name], range(0, STEPS, EVERY)
    names = [Text("layer {k}", "第 {k} 层").fill(k=place + 1) for place in range(LAYERS)] if len(lines) > 1 else [quantity.title]
    series = tuple(Series(name, steps, [max(value, LEAST) if value == value else value for value in line[::EVERY]], role)
                   for name, line, role in zip(names, lines, ROLES))
    usual = quantity.band
    band = Band(usual.low, usual.high, BAND.fill(low=number(usual.low), high=number(usual.high))) if usual else None
    drawn = [value for each in series for value in each.y if value < float("inf")]
    return Chart(_capital(quantity.title), Axis(Text("step", "步")), Axis(quantity.title, log=True, range=_range(drawn, quantity)), series,
                 band=band)


def _range(drawn: list[float], quantity: Quantity) -> tuple[float, float]:
    """All that is drawn and the band; one decade at least, so that what stands still looks still."""
    ends = [*drawn, quantity.band.low, quantity.band.high] if quantity.band else drawn
    low, high = min(ends) / 1.3, max(ends) * 1.3
    wider = max(1.0, (10 * low / high) ** 0.5)
    return low / wider, high * wider


def _capital(title: Text) -> Text:
    return Text(title.en[0].upper() + title.en[1:], title.zh)


def _table(curves: Curves, found: list[Alarm]) -> Table:
    said = {alarm.quantity.name: alarm for alarm in found}
    rows: list[tuple[Text | str, ...]] = []
    for quantity in SIX:
        values = [value for line in curves[quantity.name] for value in line if abs(value) < float("inf")]
        band = f"{number(quantity.band.low)} … {number(quantity.band.high)}" if quantity.band else "—"
        alarm = said.get(quantity.name)
        rows.append((_capital(quantity.title), f"{number(min(values))} … {number(max(values))}", band,
                     alarm.what if alarm else Text("as it should be", "正常"), alarm.meaning if alarm else "—"))
    return Table((Text("monitor", "监控量"), Text("seen (measured)", "看到的（实测）"), Text("usual (rule of thumb)", "正常范围（经验值）"),
                  Text("reading", "读数"), Text("what it may mean", "可能说明")), tuple(rows))


LAB = Lab(
    15, "six_monitors", Text("Six monitors on a run that can be broken", "六个监控量，一次可以弄坏的训练"),
    about=Text("One number, the loss, tells that something is wrong; six tell what. A net of four layers (8-24-24-24-1) really learns "
               "256 samples here, and one fault at a time can be put in. The bands are rules of thumb: outside is worth a look, no verdict.",
               "只看损失，只知道出了问题；六个量一起看，才知道是什么问题。"
               "这里有一个四层网络（8-24-24-24-1），真的在学 256 个样本，每次可以放进一个毛病。"
               "正常范围都是经验值：出了范围值得看一眼，但不是判决。"),
    see=Text("A sound run: losses fall, gradient norm, activation std and update ratio stay inside their bands, weights grow a little.",
             "一次健康的训练：损失下降，梯度范数、激活标准差、参数更新比例都在正常范围里，权重略有增长。"),
    break_it=Text("Choose a fault, and look at which monitor speaks first.", "选一个毛病，看哪个监控量最先出声。"),
    then=Text("Each fault has its own pattern. A rate too small is seen in the update ratio, not in the gradients; vanishing signals fall from "
              "layer to layer; dead units lie at 0; a bad batch is one spike and over; overfitting is seen in the validation loss alone.",
              "每个毛病都有自己的样子。学习率太小，看参数更新比例，梯度倒是正常；梯度消失，激活一层比一层小；神经元死亡，激活停在 0；"
              "坏 batch 只有一个尖峰；过拟合只有验证损失看得出来。"),
    rules=("optim/lr-too-high", "optim/lr-too-low", "init/dead-units", "init/gradient-vanishing", "init/activation-collapse",
           "optim/missing-zero-grad", "curve/spike", "curve/overfitting", "numeric/gradient-explosion"),
    knobs=(Choice("fault", Text("What is wrong", "毛病"), tuple((name, fault.name) for name, fault in FAULTS.items()), "none"), seed(3)),
    compute=compute)
