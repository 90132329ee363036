"""The loader is built anew again and again.

What it is:
A DataLoader is constructed (or its iterator started) inside the loop, every epoch or every step. Its workers are launched each
time, the dataset is copied to them each time, and nothing that was prefetched survives.

Why it is silent:
The batches are right.

What you see:
A pause at the start of every epoch, or steps that take many times longer than they should.

Look-alikes:
Cross-validation makes one loader a fold. A curriculum changes the dataset and needs a new loader. Without workers and once an
epoch, building one costs next to nothing.

Fix:
Build the loader once, before the loop, and iterate over it.

Before:
    for step in range(steps):
        x, y = next(iter(DataLoader(dataset, batch_size=32, shuffle=True)))
After:
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    for x, y in loader:

Experiment:
Time the loop with the loader built outside.

Source:
PyTorch documentation of DataLoader (persistent_workers).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Ended
from traindx.core.observed.data import LoaderMade
from traindx.core.text import Text

ZH = """反复重建 DataLoader

是什么：
DataLoader 是在循环里构造的（或者每次都重新开始迭代），每轮甚至每步一次。每次都要重新启动 worker、重新把数据集复制过去，
预取好的数据也全都丢掉。

为什么不报错：
拿到的 batch 是对的。

你会看到：
每轮开始时都要停一下，或者每一步比应有的慢很多倍。

容易混淆的情况：
交叉验证每折一个 loader。课程学习换了数据集，需要新的 loader。没有 worker、每轮只建一次，几乎没有开销。

怎么改：
在循环之前建好一次，然后遍历它。

改前：
    for step in range(steps):
        x, y = next(iter(DataLoader(dataset, batch_size=32, shuffle=True)))
改后：
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    for x, y in loader:

对照实验：
把 loader 移到循环外，再计时一遍。

来源：
PyTorch DataLoader 文档（persistent_workers）。
"""
LEVEL = "warning"
STEP = 6

MANY = 8  # starts for a batch or two each: once a step
EPOCHS = 3  # loaders of one line with workers of their own
WORTH = 0.1  # of the run's time spent in starting them (rule of thumb); below it a note

CAUSE = Text("{count} DataLoader{count:|s} were built on this line, for {batches} batch{batches:|es} in all{workers}.",
             "这一行一共构造了 {count} 个 DataLoader，总共只取了 {batches} 个 batch{workers}。")
CAUSE_ITER = Text("This DataLoader was started {count} time{count:|s} for {batches} batch{batches:|es} in all{workers}.",
                  "这个 DataLoader 重新开始了 {count} 次，总共只取了 {batches} 个 batch{workers}。")
WORKERS = Text("; each start launches {workers} worker{workers:|s}", "；每次都要启动 {workers} 个 worker")
FIX = Text("Build it once before the loop and iterate over it (persistent_workers=True keeps its workers).",
           "在循环之前构造一次，然后遍历它（persistent_workers=True 可以保留 worker）。")
STARTS = Text("time spent in starting loaders", "启动 loader 花的时间")


def check(loaders: list[LoaderMade], end: Ended | None) -> Iterator[Finding]:
    by_line: dict[tuple[str, int], list[LoaderMade]] = {}
    for loader in loaders:
        if loader.site is not None:
            by_line.setdefault((loader.site.file, loader.site.line), []).append(loader)
    for alike in by_line.values():
        starts, batches = sum(one.iterations for one in alike), sum(one.batches for one in alike)
        workers = max(one.workers for one in alike)
        once_a_step = starts >= MANY and batches < 2 * starts and all(_has_more(one) for one in alike)
        once_an_epoch = len(alike) >= EPOCHS and workers > 0 and len({(one.dataset_class, one.dataset_size) for one in alike}) == 1
        if once_a_step or once_an_epoch:
            yield _finding(alike, starts, batches, workers, end)


def _has_more(loader: LoaderMade) -> bool:
    return loader.dataset_size is not None and loader.dataset_size > 2 * (loader.batch_size or 1)


def _finding(alike: list[LoaderMade], starts: int, batches: int, workers: int, end: Ended | None) -> Finding:
    seconds = sum(one.start_seconds for one in alike)
    first = alike[0]
    cause = CAUSE if len(alike) > 1 else CAUSE_ITER
    worth = workers > 0 and end is not None and seconds > WORTH * end.seconds
    where, also = (first.site, (first.iter_site,)) if len(alike) > 1 else (first.iter_site, (first.site,))
    return Finding(
        cause=cause.fill(count=starts, batches=batches, workers=WORKERS.fill(workers=workers) if workers else Text("", "")), fix=FIX,
        where=where, also=tuple(s for s in also if s is not None), evidence=(Evidence(STARTS, round(seconds, 3), unit="s"),),
        first_step=first.step, level="warning" if worth else "note")
