"""Strong weight decay also acts on norm layers and embeddings.

What it is:
A parameter group with strong weight decay holds scales of norm layers or embeddings, which decay was not made for.

Why it is silent:
``model.parameters()`` hands over everything alike, and the training works all the same.

What you see:
Scales of norm layers that drift below 1, rare tokens whose vectors shrink between their appearances.

Look-alikes:
The default decay of AdamW (0.01), which hardly matters there; recipes that decay everything on purpose.

Fix:
Make two groups: matrices with decay, vectors and embeddings without.

Before:
    AdamW(model.parameters(), weight_decay=0.1)
After:
    AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}])

Experiment:
The same run with decay 0 on these groups: compare the validation loss.

Source:
Common practice in published training code for transformers (two groups by dimension); a rule of thumb.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text, number
from traindx.signals.learning import Learners

ZH = """较强的权重衰减也作用在归一化层和嵌入上

是什么：
一个权重衰减较强的参数组里，还放着归一化层的缩放或嵌入，衰减本不是为它们设计的。

为什么不报错：
``model.parameters()`` 把所有参数一视同仁地交出去，训练照样能跑。

你会看到：
归一化层的缩放慢慢低于 1；少见的词元，它的向量在两次出现之间越缩越小。

容易混淆的情况：
AdamW 默认的 0.01，影响很小；有意对所有参数都做衰减的方案。

怎么改：
分成两组：矩阵带衰减，向量和嵌入不带。

改前：
    AdamW(model.parameters(), weight_decay=0.1)
改后：
    AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}])

对照实验：
把这些参数的衰减设为 0 再跑一次，比较验证损失。

来源：
公开的 transformer 训练代码的常见做法（按维数分两组），属于经验值。
"""
LEVEL = "note"
STEP = 3

EMBEDDINGS = ("Embedding", "EmbeddingBag")
STRONG = 0.05  # above the default of AdamW

CAUSE = Text("Weight decay {decay} also acts on {count} tensor{count:|s} of norm layers and embeddings ({names}).",
             "权重衰减（{decay}）也作用到了归一化层和嵌入的 {count} 个张量上（{names}）。")
FIX = Text("Put them into a group of their own with weight_decay=0.", "把它们单独放进一个 weight_decay=0 的参数组。")
SHARE = Text("tensors of norm layers and embeddings in groups with decay", "带衰减的参数组里，归一化层和嵌入的张量数")


def check(learners: Learners) -> Iterator[Finding]:
    for made in learners.stepped():
        for ids, settings in zip(made.parameters, made.settings):
            decay = _number(settings.get("weight_decay", "0"))
            special = [p for id in ids if id in learners.names and _special((p := learners.names[id][1]).module_class)]
            names = [p.name for p in special]
            if decay >= STRONG and names and not (_split(made.settings) and all(p.module_class in EMBEDDINGS for p in special)):
                shown = ", ".join(names[:3]) + (" ..." if len(names) > 3 else "")
                yield Finding(cause=CAUSE.fill(decay=number(decay), count=len(names), names=shown), fix=FIX, where=made.site,
                              evidence=(Evidence(SHARE, len(names), Text("0", "0"), origin="rule of thumb"),), confidence="suspected",
                              because=Text("it may be meant", "也可能是有意的"))
                return


def _special(module_class: str) -> bool:
    return "Norm" in module_class or module_class in EMBEDDINGS


def _split(settings: Sequence[Mapping[str, str]]) -> bool:
    """One group is without decay: the program chose, and groups by number of dimensions leave embeddings (often tied) in decay."""
    return any(_number(group.get("weight_decay", "0")) == 0 for group in settings)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
