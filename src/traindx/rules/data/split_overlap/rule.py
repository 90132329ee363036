"""Validation contains samples that were trained on.

What it is:
Some of the very rows that the model is evaluated on were in its training batches: rows repeated before the split, two independent
random splits, index ranges that overlap, or the same model carried through several folds.

Why it is silent:
Nothing compares the two sets. The score is even better than it should be.

What you see:
A validation score that is too good, above all for rare classes, and a disappointment on truly new data.

Look-alikes:
Evaluating on the training set as well, beside a separate validation set, is no fault. Nor are rows that say so little that equal ones
turn up by chance (truth tables, short token sequences), scores computed on all data for a plot, or cross-validation with a new model
for each fold.

Fix:
Split first, by the identity of the sample; repeat, balance and augment the training part only.

Before:
    x, y = oversample(x, y); train, val = split(x, y)
After:
    train, val = split(x, y); train = oversample(*train)

Experiment:
Leave the shared rows out of the evaluation: an honest score is lower.

Source:
Kaufman et al., Leakage in data mining (2012). Rows are compared by a 64-bit hash of their content: measured.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import Fed
from traindx.core.text import Text, number
from traindx.signals.feeding import RICH, Feed, Feeding, sites

ZH = """验证集里有训练过的样本

是什么：
用来评估模型的样本，有一部分就出现在训练 batch 里：先重复样本再划分、两次独立的随机划分、下标区间重叠，或同一个模型接连跑完几折。

为什么不报错：
没有任何代码去比较这两个集合，分数反而更好看。

你会看到：
验证分数好得过头，少数类尤其明显；换成真正的新数据就大失所望。

容易混淆的情况：
除了独立的验证集之外，顺便在训练集上也算一次分数，不是错。信息量太小、本来就会碰巧相同的样本（真值表、很短的词元序列）、为画图在全部数据上跑一遍、
每一折都用新模型的交叉验证，也都不算。

怎么改：
先按样本身份划分，再只对训练部分做重复、平衡和增强。

改前：
    x, y = oversample(x, y); train, val = split(x, y)
改后：
    train, val = split(x, y); train = oversample(*train)

对照实验：
评估时去掉共有的样本，诚实的分数会更低。

来源：
Kaufman 等，Leakage in data mining（2012）。样本按内容的 64 位哈希比较，属实测。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("data/duplicates", "curve/*", "data/conflicting-labels")

LEAST_ROWS = 5
LEAST_SHARE = 0.01

CAUSE = Text("{trained} of {distinct} different row{distinct:|s} evaluated here ({share} %) had been trained on before.",
             "这里评估了 {distinct} 个不同的样本，其中 {trained} 个（{share} %）先前已经训练过。")
FIX = Text("Split before anything repeats or mixes rows, and keep the index sets apart.",
           "先划分，再做会重复或混合样本的处理，并保证两边的下标不相交。")
NEW_MODEL = Text("Build a new model and a new optimizer for each fold: this one was trained on these rows in an earlier fold.",
                 "每一折都新建模型和优化器：这个模型在前面的折里已经训练过这些样本。")
SHARED = Text("evaluated rows that training had seen, by content", "评估样本里训练见过的（按内容比较）")
SAYS = Text("what a row says at least", "一个样本的信息量至少有")
NONE = Text("none", "没有")
NO_CHANCE = Text("above 64 bits, equal rows are not chance", "超过 64 bit，相同就不是碰巧")
SUBSET = Text("every evaluated row was trained on, and no other evaluation uses new rows",
              "评估的每个样本都训练过，而且没有别的评估用到新样本")


def check(feeding: Feeding) -> Iterator[Finding]:
    for feed in feeding:
        for group in feed.evaluations:
            if _comparable(feed, group) and (_partly(feed, group) or _wholly(feed, group) or _carried_over(group)):
                yield _finding(feed, group)


def _comparable(feed: Feed, group: Fed) -> bool:
    """Rows that cannot be equal by chance, and an evaluation that is not a part of the training step."""
    train = feed.train
    apart = group.passes <= 2 or 3 * group.passes < train.batches + train.skipped
    return (apart and min(group.bits, train.bits) >= RICH and feed.coverage >= 0.5
            and group.trained >= max(LEAST_ROWS, LEAST_SHARE * group.distinct) and not _by_nature(feed, group)
            and not _taken_later(group) and not _fills_up(feed, group))


def _taken_later(group: Fed) -> bool:
    """Training had gone round its rows, and knew none of these: it was given them afterwards (pseudo-labels, queries, a replay)."""
    return group.rounds >= 2 and group.known_at_first < 0.05 * group.trained


def _fills_up(feed: Feed, group: Fed) -> bool:
    """Training changes its rows at random, and meets one as it is now and then: so the training rows themselves, when they are looked at,
    are known one after the other, by the share that was known at first of those that are left in each pass."""
    at_first = group.known_at_first / max(group.distinct, 1)
    return group.passes >= 2 and feed.train.known < 0.9 and _share(group) >= 0.6 * (1 - (1 - at_first) ** group.passes)


def _by_nature(feed: Feed, group: Fed) -> bool:
    """Whole numbers (tokens, codes) recur in natural data: the overlap must exceed what repeats inside the training part."""
    train = feed.train
    if not (group.whole and train.whole):
        return False
    if not train.epoch_rows:
        return group.bits < 8 * RICH
    return _share(group) < 2 * (1 - train.epoch_distinct / train.epoch_rows) + 0.05


def _share(group: Fed) -> float:
    return group.trained / max(group.distinct, 1)


def _partly(feed: Feed, group: Fed) -> bool:
    if _share(group) >= 0.8 * feed.coverage or group.trained >= 0.95 * feed.train.distinct:
        return False  # an evaluation on the training data, or on all data
    mixed = group.full > 0 and group.clean > 0 and 5 * group.middle <= group.full + group.clean
    return bool(group.loader) or not mixed  # one place that evaluates both splits in turn


def _wholly(feed: Feed, group: Fed) -> bool:
    """A loader of its own over some of the training rows, and no evaluation on new ones."""
    train = feed.train
    repeats = train.epoch_distinct < 0.5 * train.epoch_rows  # a split of copies leaves every row on both sides
    others = [other for other in feed.evaluations if other is not group and other.distinct >= 10]
    return bool(_share(group) >= 0.9 and group.loader and group.loader != train.loader and group.dataset != train.dataset
                and group.distinct >= 20 and (group.distinct <= 0.8 * train.distinct or repeats) and group.passes >= 2
                and not any(_share(other) < 0.02 for other in others))


def _carried_over(group: Fed) -> bool:
    """The rows belong to an earlier training set than the present one: a model that goes on from fold to fold."""
    return bool(group.loader) and group.earlier >= max(10, 0.5 * group.distinct)


def _finding(feed: Feed, group: Fed) -> Finding:
    earlier = _carried_over(group)
    whole = _share(group) >= 0.9 and not earlier
    places = sites(group.loader_site, group.site, feed.train.loader_site, feed.train.site)
    return Finding(
        cause=CAUSE.fill(trained=group.trained, distinct=group.distinct, share=number(100 * _share(group))), fix=NEW_MODEL if earlier else FIX,
        where=places[0] if places else None, also=places[1:],
        evidence=(Evidence(SHARED, group.trained, NONE), Evidence(SAYS, round(group.bits), NO_CHANCE, "formula", "bit")),
        first_step=group.step, confidence="likely" if whole else "certain", because=SUBSET if whole else Text("", ""))
