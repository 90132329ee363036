"""The training waits for its data.

What it is:
A large part of every step passes in waiting for the next batch: reading, decoding or augmenting samples takes longer than
training on them, and nothing does it ahead of time.

Why it is silent:
Waiting costs time, not accuracy.

What you see:
A GPU (or a CPU) that is idle much of the time, and epochs that do not get faster with a faster model.

Look-alikes:
The first batch of an epoch always waits (workers start). Waits below two milliseconds are not worth the trouble, and a run of a
few seconds is not worth it either. Nor does time count in which the machine ran other programs, or a validation that waits in a
run that otherwise trains.

Fix:
Load in parallel, or do the slow part once.

Before:
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
After:
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4, persistent_workers=True)

Experiment:
Repeat one batch: the time per step that remains is what the training itself takes.

Source:
PyTorch performance tuning guide (asynchronous data loading).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.data import LoaderMade
from traindx.core.observed.speed import LoaderTime
from traindx.core.text import Text, number

ZH = """训练在等数据

是什么：
每一步都有很大一部分时间在等下一个 batch：读取、解码、增强样本比拿它们训练还慢，又没有提前准备。

为什么不报错：
等待只费时间，不影响精度。

你会看到：
GPU（或 CPU）经常闲着；换更快的模型，每轮也快不起来。

容易混淆的情况：
每轮的第一个 batch 总要等一下（要启动 worker）。不到两毫秒的等待不值得处理，只跑几秒的程序也不值得。机器忙着跑别的程序的时间不算；整个运行主要在训练，
只有验证在等数据，也不算。

怎么改：
并行加载，或者把慢的部分一次做完存起来。

改前：
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
改后：
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4, persistent_workers=True)

对照实验：
反复使用同一个 batch：剩下的每步时间才是训练本身要用的。

来源：
PyTorch 性能调优指南（异步数据加载）。
"""
LEVEL = "warning"
STEP = 6
EXPLAINS = ("speed/loader-defaults",)

SHARE = 0.3  # of the time (rule of thumb)
WORTH = 10.0  # seconds of waiting in this run; below it a note
SHORTEST = 0.002  # seconds a batch
BATCHES = 16

CAUSE = Text("{share} % of the time passes in waiting for batches: {wait} ms of the {step} ms from one batch to the next{workers}.",
             "{share} % 的时间都在等 batch：相邻两个 batch 之间的 {step} ms 里，有 {wait} ms 在等{workers}。")
ALONE = Text(" (num_workers=0: they are made in between, by the training's own process)", "（num_workers=0：由训练进程自己在两步之间准备）")
SOME = Text(" (with {count} worker{count:|s})", "（已有 {count} 个 worker）")
FIX = Text("Set num_workers (with persistent_workers=True), and move slow work out of the dataset: do it once and keep the result.",
           "设置 num_workers（并加上 persistent_workers=True），再把慢的工作移出数据集：只做一次，把结果存下来。")
WAIT = Text("share of the time from batch to batch that is waiting", "相邻 batch 之间等待所占的比例")
TOTAL = Text("waiting in this run", "本次运行的等待总时长")


def check(times: list[LoaderTime], loaders: list[LoaderMade]) -> Iterator[Finding]:
    made = {loader.id: loader for loader in loaders}
    for each in sorted(times, key=lambda each: -each.waiting):
        loader = made.get(each.loader)
        if loader and each.batches >= BATCHES and each.waiting > SHARE * each.seconds and each.own_waiting > SHORTEST * each.batches:
            yield _finding(each, loader)
            return


def _finding(each: LoaderTime, loader: LoaderMade) -> Finding:
    share = each.waiting / each.seconds
    return Finding(
        cause=CAUSE.fill(share=round(100 * share), wait=number(1000 * each.waiting / each.batches),
                         step=number(1000 * each.seconds / each.batches),
                         workers=SOME.fill(count=loader.workers) if loader.workers else ALONE),
        fix=FIX, where=loader.site or loader.iter_site, also=tuple(s for s in (each.fetch_site, loader.iter_site) if s is not None),
        evidence=(Evidence(WAIT, round(share, 3), f"< {SHARE}"), Evidence(TOTAL, round(each.own_waiting, 2), f"< {WORTH:.0f}", unit="s")),
        first_step=loader.step, level="warning" if each.own_waiting > WORTH and each.waiting > SHARE * each.elapsed else "note")
