"""Every step trains on the same batch.

What it is:
The loop draws the first batch anew in each step: next(iter(loader)) inside the loop, a generator that is seeded in each call, a start
index that never moves. The rest of the data is never used.

Why it is silent:
The batch is a fine batch, and its loss falls to zero faster than ever.

What you see:
A training loss near zero, and a validation loss that rises from the start.

Look-alikes:
Full-batch training, where one batch is all there is, and a deliberate overfitting test, which takes one batch before the loop and keeps it.

Fix:
Iterate over the loader, or make the random generator once, outside.

Before:
    def get_batch(): rng = np.random.default_rng(seed); ...
After:
    rng = np.random.default_rng(seed)
    def get_batch(): ...

Experiment:
Draw a new batch in each step: the training loss falls more slowly and the validation loss with it.

Source:
Batches are compared by a 64-bit hash of their content: measured.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.fed import Fed, Reseeded
from traindx.core.text import Text
from traindx.signals.feeding import Feed, Feeding, sites

ZH = """每一步都在训练同一个 batch

是什么：
循环里每一步都重新取到第一个 batch：在循环里写 next(iter(loader))、每次调用都给随机数生成器设同一个种子，或者起始下标从不移动。其余数据根本没用上。

为什么不报错：
这个 batch 本身没问题，它的损失降到 0 比平时还快。

你会看到：
训练损失接近 0，验证损失从一开始就往上走。

容易混淆的情况：
全量 batch（一个 batch 就是全部数据）；以及有意做的过拟合测试：在循环之前取一个 batch，一直用它。

怎么改：
直接遍历 loader；随机数生成器只在外面建一次。

改前：
    def get_batch(): rng = np.random.default_rng(seed); ...
改后：
    rng = np.random.default_rng(seed)
    def get_batch(): ...

对照实验：
每一步取新的 batch：训练损失降得慢一些，验证损失也跟着降。

来源：
batch 按内容的 64 位哈希比较，属实测。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "data/duplicates", "data/split-overlap", "data/not-shuffled", "data/class-imbalance", "data/labels-misaligned",
            "speed/loader-in-loop", "data/class-never-seen")

LEAST = 16  # steps in a row

CAUSE = Text("The same {rows} row{rows:|s} were drawn anew in {run} step{run:|s} in a row{why}.",
             "连续 {run} 步取到的都是同样的 {rows} 个样本{why}。")
SEEDED = Text(": {function} is given the seed {seed} in each step ({place})", "：每一步都用种子 {seed} 调用 {function}（{place}）")
ITERATED = Text(": a new iterator over the loader is made in each step, the dataset holds {size} sample{size:|s}",
                "：每一步都新建一个 loader 迭代器，而数据集有 {size} 个样本")
EVALUATED = Text(", although the program evaluates on {rows} other row{rows:|s}", "，而程序评估时用的是另外 {rows} 个样本")
FIX = Text("Make the iterator or the generator once, outside the loop, and take the next batch from it in each step.",
           "迭代器或随机数生成器只在循环外建一次，每一步从中取下一个 batch。")
RUN = Text("longest run of equal batches, in steps", "相同 batch 连续出现的最长步数")


def check(feeding: Feeding, reseeded: list[Reseeded] | None) -> Iterator[Finding]:
    for feed in feeding:
        train = feed.train
        looked_at = max(train.batches, 1)
        if train.run < max(LEAST, 0.3 * looked_at) or train.run_held > 0.2 * train.run or train.batch_size < 2:
            continue
        found = _seeded(train, reseeded or []) or _iterated(train) or _few(feed)
        if found is not None:
            yield found


def _seeded(train: Fed, reseeded: list[Reseeded]) -> Finding | None:
    """Seeding in (nearly) each step explains the sameness, and says that other batches were meant."""
    steps = train.batches + train.skipped
    for line in reseeded:
        if line.steps >= 0.5 * steps and line.calls >= line.steps and line.site is not None:
            why = SEEDED.fill(function=line.function, seed=line.seed, place=line.site.short)
            return _finding(train, why, sites(line.site, train.iter_site, train.site))
    return None


def _iterated(train: Fed) -> Finding | None:
    if not train.loader or train.dataset_size is None or train.dataset_size < 2 * train.batch_size:
        return None
    if train.iterations < 0.8 * train.run or (train.iter_site is not None and ".fit(" in train.iter_site.code):
        return None  # a trainer told to repeat few batches does so on purpose
    return _finding(train, ITERATED.fill(size=train.dataset_size), sites(train.iter_site, train.loader_site, train.site))


def _few(feed: Feed) -> Finding | None:
    """No loader: far more rows are evaluated than were ever trained on, and they are not a held-out part of a small table."""
    train = feed.train
    others = sum(group.distinct - group.trained for group in feed.evaluations)
    if train.loader or train.distinct > 128 or others < 4 * train.distinct or train.skipped:
        return None
    return _finding(train, EVALUATED.fill(rows=others), sites(train.site))


def _finding(train: Fed, why: Text, places: tuple[Site, ...]) -> Finding:
    return Finding(cause=CAUSE.fill(rows=train.batch_size, run=train.run, why=why), fix=FIX, where=places[0] if places else None,
                   also=places[1:], evidence=(Evidence(RUN, train.run, "1"),), first_step=max(1, train.run_last - train.run + 1))
