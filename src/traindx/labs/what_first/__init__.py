"""What to change first: an order by experience, not by measurement, and the next thing on it that is not done yet."""
from __future__ import annotations

from dataclasses import dataclass

from traindx.core.text import EMPTY, Text, number, same
from traindx.figures import Axis, Chart, Role, Series
from traindx.labs.lab import Choice, Lab, Outcome, Slider, State, Table

KINDS = (("image", Text("images", "图像")), ("text", Text("text", "文本")), ("table", Text("tables", "表格")))


@dataclass(frozen=True)
class Change:
    """``gain`` is the length of its bar by kind of task: subjective, 100 is the most."""

    short: Text  # under its bar
    name: Text
    do: Text
    gain: tuple[float, float, float]


CHANGES = (
    Change(Text("data", "数据"), Text("look at the data", "看数据"),
           Text("Look at 100 random samples with their labels, and at duplicates across the splits.",
                "随机抽 100 条，连标签一起看；再查划分之间有没有重复。"), (100, 100, 100)),
    Change(Text("bugs", "bug"), Text("overfit one batch", "过拟合一个 batch"),
           Text("Regularisation off, a few samples, a few hundred steps: the loss must go to 0.",
                "关掉正则，只用几个样本，跑几百步：损失必须降到 0。"), (85, 85, 80)),
    Change(Text("lr", "学习率"), Text("sweep the learning rate", "扫学习率"),
           Text("From 1e-6 to 1e-1 on a logarithmic grid, 100 steps each.", "从 1e-6 到 1e-1 按对数取点，每个跑 100 步。"), (65, 70, 55)),
    Change(Text("more data", "更多数据"), Text("more, cleaner data", "更多、更干净的数据"),
           Text("Mend labels, add what is rare, augment images.", "改错标签，补上少见的类别，图像加增强。"), (60, 65, 70)),
    Change(Text("regularise", "正则化"), Text("regularise", "正则化"),
           Text("Weight decay, dropout, early stopping: only once it overfits.", "权重衰减、dropout、早停：等它会过拟合了再加。"), (40, 25, 45)),
    Change(Text("size", "模型"), Text("a larger model", "加大模型"),
           Text("Twice the width, or a pretrained one.", "宽度翻倍，或者换预训练模型。"), (35, 45, 15)),
    Change(Text("schedule", "调度"), Text("schedule, warm-up", "调度和预热"),
           Text("Cosine, with a warm-up where the start is rough.", "余弦调度；开头不稳就加预热。"), (25, 35, 10)),
    Change(Text("optimizer", "优化器"), Text("another optimizer", "换优化器"),
           Text("AdamW is good enough to begin with.", "先用 AdamW 就够了。"), (12, 15, 8)),
    Change(Text("layers", "激活、层数"), Text("activation, layers", "激活函数、层数"), Text("Last of all.", "放在最后。"), (8, 8, 5)))


def next_of(done: int) -> Change | None:
    """What comes after the first ``done`` of the list."""
    return CHANGES[done] if done < len(CHANGES) else None


def compute(state: State) -> Outcome:
    kind, done = [name for name, _ in KINDS].index(str(state["kind"])), int(state["done"])
    coming = next_of(done)
    verdict = NEXT.fill(name=coming.name, do=coming.do) if coming else ALL
    return Outcome(verdict, "warning" if coming and done < 3 else "fine", (_bars(kind, done),), (_table(kind, done),))


NEXT = Text("Next: {name}. {do} (Order and lengths are an opinion, not a measurement.)",
            "下一步：{name}。{do}（顺序和长短是主观判断，不是实测。）")
DONE, COMING = Text("done", "做过了"), Text("next", "下一步")
ALL = Text("All of it is done. Run the baseline again in a clean environment, with several seeds. (An opinion, not a measurement.)",
           "全都做过了。换一个干净的环境，用几个种子重跑一遍基线。（主观判断，不是实测。）")


def _bars(kind: int, done: int) -> Chart:
    parts: tuple[tuple[Text, Role, range], ...] = (
        (DONE, "muted", range(done)), (COMING, "good", range(done, min(done + 1, len(CHANGES)))),
        (Text("later", "以后再说"), "main", range(done + 1, len(CHANGES))))
    curves = tuple(Series(name, [at + 1 for at in places], [CHANGES[at].gain[kind] for at in places], role, "bars")
                   for name, role, places in parts if len(places))
    ticks = tuple(change.short for change in CHANGES)
    return Chart(Text("How much each change usually brings (subjective)", "每个改动通常能带来多少效果（主观排序，不是实测）"),
                 Axis(EMPTY, range=(0.4, len(CHANGES) + 0.6), names=ticks),
                 Axis(Text("effect, 100 = the most", "效果，100 = 最大"), range=(0, 105)), curves)


def _table(kind: int, done: int) -> Table:
    rows = tuple((str(at + 1), change.name, number(change.gain[kind]), DONE if at < done else COMING if at == done else EMPTY)
                 for at, change in enumerate(CHANGES))
    return Table((same("#"), Text("change", "改什么"), Text("effect (subjective)", "效果（主观）"), Text("state", "进度")), rows)


LAB = Lab(
    16, "what_first", Text("What to change first", "先改什么"),
    about=Text("Beginners lose most time on what matters least. The bars are an order by experience, not a measurement: data and bugs first, "
               "then the learning rate, and the optimizer and the activation last. Begin with the first.",
               "新手最常把时间耗在影响很小的东西上。柱子的长短是凭经验排的，不是实测：先数据和 bug，再学习率，优化器和激活函数放最后。"
               "从第一根改起。"),
    see=Text("Nothing done yet: the first bar is next.", "什么都还没做：第一根柱子就是下一步。"),
    break_it=Text("Move “done so far” along, and change the kind of task.", "拖动「做到哪一步」，再换一种任务。"),
    then=Text("The next thing moves on, and the order stays. What differs between tasks is how much a larger model or a schedule brings.",
              "下一步跟着往后走，大的顺序不变。任务之间的差别，在于加大模型、学习率调度能带来多少。"),
    rules=("data/labels-misaligned", "data/split-overlap", "optim/lr-too-high", "optim/lr-too-low"),
    knobs=(Slider("done", Text("Done so far", "做到哪一步"), tuple(map(float, range(len(CHANGES) + 1))), 0.0),
           Choice("kind", Text("Kind of task", "任务"), KINDS, "image")),
    compute=compute)
