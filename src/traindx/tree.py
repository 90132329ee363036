"""The diagnosis tree as data: symptom, question, cause. It is made from the rules: a new one finds its place by itself.

A cause hangs under a symptom because its rule says so: by EXPLAINS, or because its family is that symptom. The question
between them is that of the rule's family.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

from traindx.core.rules import SECTIONS, SECTIONS_ZH, Rule, all_rules
from traindx.core.text import Text
from traindx.experiments.plans import PLANS

QUESTIONS: dict[str, Text] = {
    "shape": Text("Does every tensor have the shape you think? (broadcasting, batch dimension)",
                  "每个张量的形状都是你想的那样吗？（广播、batch 维）"),
    "optim": Text("Is the loop in order? (zero_grad, backward, clip, step, learning rate)",
                  "训练循环的次序对吗？（清空梯度、反向传播、裁剪、更新、学习率）"),
    "loss": Text("Do the loss and the model's output fit together?", "损失函数和模型输出对得上吗？"),
    "mode": Text("Is the model in the right mode? (train / eval, dropout, BatchNorm)",
                 "模型的模式对吗？（训练还是推理、dropout、BatchNorm）"),
    "data": Text("Are the data and their labels what you think they are?", "数据和标签真是你以为的那样吗？"),
    "init": Text("Do signals keep their size from layer to layer?", "信号经过一层层之后，量级还在吗？"),
    "numeric": Text("Are the numbers precise and finite?", "数值够精确吗，都是有限值吗？"),
    "memory": Text("Is something kept that should be let go?", "有没有该放手却一直留着的东西？"),
    "record": Text("Is the number that you read the right one? (metric, best checkpoint)", "你读到的那个数对吗？（指标、最好的检查点）"),
    "repro": Text("Can the run be repeated?", "这次训练能复现吗？"),
    "speed": Text("Where does the time go?", "时间花在哪里了？"),
    "rank": Text("Do all processes do the same?", "各个进程做的是同一件事吗？"),
    "curve": Text("Is it only how the curve looks?", "会不会只是曲线的样子？")}


@dataclass(frozen=True)
class Leaf:
    """A cause: its rule, what one sees, and the experiment that would prove it (None: there is none)."""

    rule: str
    title: Text
    see: Text
    experiment: Text | None


@dataclass(frozen=True)
class Question:
    """``step`` is the first step of the exam at which one of its causes is judged."""

    family: str
    step: int
    text: Text
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True)
class Symptom:
    """``shown_by``: the rules that are this symptom; ``families``: patterns of rules that belong to it directly."""

    name: str
    text: Text
    shown_by: tuple[str, ...] = ()
    families: tuple[str, ...] = ()


SYMPTOMS: tuple[Symptom, ...] = (
    Symptom("flat", Text("The training loss does not fall, or stops high", "训练损失不降，或者停在高处"), ("curve/plateau",), ("optim/*",)),
    Symptom("explodes", Text("The loss goes up, explodes or becomes NaN", "损失往上走、爆炸，或者变成 NaN"),
            ("curve/diverging", "numeric/nonfinite", "numeric/gradient-explosion"), ("numeric/*",)),
    Symptom("oscillates", Text("The loss jumps up and down", "损失忽上忽下"), ("curve/oscillating", "curve/spike")),
    Symptom("validation-bad", Text("Validation is much worse than training, or changes from call to call",
                                   "验证比训练差很多，或者每次结果不一样"),
            ("curve/overfitting", "curve/train-val-gap"), ("mode/*",)),
    Symptom("too-good", Text("The result is too good to be true", "结果好得可疑"), (),
            ("data/*overlap*", "data/*everything*", "data/target-in-input", "data/duplicates", "record/*")),
    Symptom("useless", Text("The loss looks right, but what the model does is not", "损失看着正常，模型的表现却不对"), (),
            ("data/eos-*", "data/class-map-*", "data/*-differently", "loss/target-shift-*", "record/*", "repro/load-*")),
    Symptom("start", Text("The first loss is not what it should be", "第一步的损失就不对"), ("loss/initial-loss-off",)),
    Symptom("not-repeatable", Text("Two runs differ, or resuming changes the curve", "两次运行不一样，或者续训后曲线变了"), (), ("repro/*",)),
    Symptom("slow", Text("It is slow", "太慢"), (), ("speed/*",)),
    Symptom("memory", Text("Memory grows or runs out", "内存一直涨，或者不够用"), (), ("memory/*",)),
    Symptom("ranks", Text("Several processes do not agree", "多个进程之间对不上"), (), ("rank/*",)))


def questions_of(symptom: Symptom) -> list[Question]:
    """The causes of a symptom by family, in the order in which the exam would come to them."""
    by_family: dict[str, list[Rule]] = {}
    for rule in all_rules().values():
        if _belongs(rule, symptom):
            by_family.setdefault(rule.family, []).append(rule)
    found = [Question(family, min(rule.step for rule in rules), QUESTIONS[family], tuple(map(leaf_of, rules)))
             for family, rules in by_family.items()]
    return sorted(found, key=lambda question: question.step)


def _belongs(rule: Rule, symptom: Symptom) -> bool:
    if rule.name in symptom.shown_by or rule.level == "note":
        return any(fnmatch(rule.name, pattern) for pattern in symptom.families) and rule.name not in symptom.shown_by
    explains = any(fnmatch(shown, pattern) for pattern in rule.explains for shown in symptom.shown_by)
    return explains or any(fnmatch(rule.name, pattern) for pattern in symptom.families)


def leaf_of(rule: Rule) -> Leaf:
    see = Text(rule.page("en").sections.get(SECTIONS[2], ""), rule.page("zh").sections.get(SECTIONS_ZH[2], ""))
    plan = PLANS.get(rule.experiment or "")
    return Leaf(rule.name, rule.title, see, plan.title if plan else None)


def all_leaves() -> Iterator[Leaf]:
    """Every cause that hangs somewhere in the tree, once."""
    seen: set[str] = set()
    for symptom in SYMPTOMS:
        for question in questions_of(symptom):
            for leaf in question.leaves:
                if leaf.rule not in seen:
                    seen.add(leaf.rule)
                    yield leaf
