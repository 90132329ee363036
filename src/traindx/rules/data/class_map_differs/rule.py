"""Training and validation number the classes differently.

What it is:
The map from class names to numbers is built twice, in an order that nobody fixed: from a set, a folder listing, or the labels that
happen to be in each split. Class 3 in training is another class in validation.

Why it is silent:
Both maps are valid, and both hold numbers in range. Training itself is sound.

What you see:
Training accuracy is high, validation accuracy near zero, and yet the model is sure of itself: for each class it always says the same
wrong one.

Look-alikes:
A model that has not learned confuses classes too, but many with one, and not each with a partner of its own.

Fix:
Build the map once, from sorted names, and use it for every split.

Before:
    names = {name: i for i, name in enumerate(set(labels))}   # in each split
After:
    names = {name: i for i, name in enumerate(sorted(set(all_labels)))}   # once

Experiment:
Rename the validation labels by the confusion table: accuracy jumps to that of training.

Source:
The guesses by class counted on the program's own logits; attributes of its datasets. Python documentation of sets (order is not defined).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.confusion import ClassNumbers, Guess, Guesses
from traindx.core.text import Text, number
from traindx.signals.where import pointing

ZH = """训练和验证的类别编号不一致

是什么：
从类别名到编号的映射建了两次，而顺序没有固定：来自集合、文件夹列表，或者各个划分里碰巧出现的标签。训练里的 3 号类，到了验证里是另一个类。

为什么不报错：
两份映射都合法，编号都在范围内。训练本身没有问题。

你会看到：
训练准确率很高，验证准确率接近零，模型却很有把握：同一个类，总是错成同一个别的类。

容易混淆的情况：
没学好的模型也会混淆类别，但那是许多类混成一个，而不是每个类都有自己固定的「搭档」。

怎么改：
只建一次映射，用排好序的类别名，所有划分都用它。

改前：
    names = {name: i for i, name in enumerate(set(labels))}   # 每个划分各建一次
改后：
    names = {name: i for i, name in enumerate(sorted(set(all_labels)))}   # 只建一次

对照实验：
按混淆表给验证标签改个编号：准确率会跳到和训练一样。

来源：
在程序自己的 logits 上按类别统计预测；读取数据集的属性。Python 集合文档（不保证顺序）。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "data/labels-misaligned", "data/conflicting-labels", "record/*")

LEARNED = 0.7  # share of a class that training guesses right, and that validation gives to its partner
COUNT = 5  # samples of a class

SWAPPED = Text("Validation gives {share} % of class {label} to class {guess}, {classes} class{classes:|es} in all are renamed like this; "
               "training knows them ({known} %).",
               "验证时，第 {label} 类有 {share} % 判成了第 {guess} 类，像这样换了编号的类别共有 {classes} 个；训练时却认得它们（{known} %）。")
MAPS = Text("{attribute} numbers {name} as {one} in training and as {other} in validation.",
            "{attribute} 在训练里把 {name} 编为 {one}，在验证里编为 {other}。")
FIX = Text("Build the map from names to numbers once, from sorted names, and share it between the splits.",
           "把名称排好序，名称到编号的映射只建一次，各个划分共用。")
RIGHT = Text("accuracy in validation; with the classes renamed", "验证准确率；把编号换回来之后")
ORDER = Text("order of the classes in training; in validation", "训练里的类别顺序；验证里的")


def check(guesses: list[Guesses] | None, numbers: list[ClassNumbers] | None) -> Iterator[Finding]:
    for one in numbers or []:
        for other in numbers or []:
            if one.training and not other.training and (name := differing(one, other)):
                yield _by_names(one, other, name)
                return
    known = _known(guesses or [])
    for seen in guesses or []:
        if seen.group == "eval" and (renamed := swapped(seen, known)):
            yield _by_guesses(seen, renamed, known)


def differing(one: ClassNumbers, other: ClassNumbers) -> str:
    """A name that both number, differently; the split that evaluates may lack some names."""
    alike = one.attribute == other.attribute and one.dataset_class == other.dataset_class and one.loader != other.loader
    if not alike or not set(other.names) <= set(one.names):
        return ""
    return next((name for i, name in enumerate(other.names) if one.names.index(name) != i), "")


def _known(guesses: list[Guesses]) -> dict[int, float]:
    """Share that training guesses right, by class."""
    return {guess.label: guess.share for seen in guesses if seen.group == "train" for guess in seen.guesses
            if guess.guess == guess.label and guess.count >= COUNT}


def swapped(seen: Guesses, known: dict[int, float]) -> list[Guess]:
    """Classes that training knows and that evaluation gives to one other each; two at least, no two to the same."""
    moved = [guess for guess in seen.guesses if guess.guess != guess.label and guess.share >= LEARNED and guess.count >= COUNT
             and known.get(guess.label, 0.0) >= LEARNED and known.get(guess.guess, 0.0) >= LEARNED]
    return moved if len(moved) >= 2 and len({guess.guess for guess in moved}) == len(moved) else []


def _by_guesses(seen: Guesses, renamed: list[Guess], known: dict[int, float]) -> Finding:
    first = max(renamed, key=lambda guess: guess.count)
    where, also = pointing(*seen.numbered_at[:2], seen.loader_site, seen.site)
    mended = seen.right + sum(guess.share * guess.count for guess in renamed)
    return Finding(
        cause=SWAPPED.fill(share=f"{100 * first.share:.0f}", label=first.label, guess=first.guess, classes=len(renamed),
                           known=f"{100 * known[first.label]:.0f}"), fix=FIX, where=where, also=also, confidence="likely",
        because=Text("read from the guesses, not from the maps", "由预测推断，没有直接看到映射"), first_step=seen.step,
        evidence=(Evidence(RIGHT, f"{number(seen.right / seen.total)}; {number(min(1.0, mended / seen.total))}", step=seen.step),))


def _by_names(one: ClassNumbers, other: ClassNumbers, name: str) -> Finding:
    where, also = pointing(other.set_at, other.loader_site, one.loader_site)
    return Finding(
        cause=MAPS.fill(attribute=one.attribute, name=name, one=one.names.index(name), other=other.names.index(name)), fix=FIX, where=where,
        also=also, evidence=(Evidence(ORDER, "; ".join(", ".join(each.names[:6]) for each in (one, other))),), first_step=other.step)
