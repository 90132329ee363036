"""The loader works only between the steps (num_workers=0).

What it is:
With the default of no workers the training process makes each batch itself, after the step, while the model stands still.

Why it is silent:
It is the default, and right for small tensors in memory.

What you see:
A tenth of the time or more goes into making batches.

Look-alikes:
Data that is ready in memory gains nothing from workers: then the waiting is a small share, and nothing is said.

Fix:
Let workers prepare batches while the model trains; on a GPU also pin_memory=True.

Before:
    loader = DataLoader(dataset, batch_size=32)
After:
    loader = DataLoader(dataset, batch_size=32, num_workers=2, persistent_workers=True)

Experiment:
Time an epoch with num_workers 0, 1, 2 and 4.

Source:
PyTorch documentation of torch.utils.data (single- and multi-process data loading).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.data import LoaderMade
from traindx.core.observed.speed import LoaderTime
from traindx.core.text import Text

ZH = """数据只在两步之间由训练进程加载（num_workers=0）

是什么：
默认没有 worker：每走完一步，训练进程才自己去准备下一个 batch，这段时间模型只能等着。

为什么不报错：
这是默认设置；数据不大、又都在内存里时，这样也没错。

你会看到：
有一成甚至更多的时间花在准备 batch 上。

容易混淆的情况：
数据已经在内存里时，用 worker 没有好处：等待所占的比例很小，也就不会提示。

怎么改：
让 worker 在模型训练的同时准备 batch；用 GPU 时再加上 pin_memory=True。

改前：
    loader = DataLoader(dataset, batch_size=32)
改后：
    loader = DataLoader(dataset, batch_size=32, num_workers=2, persistent_workers=True)

对照实验：
num_workers 分别取 0、1、2、4，各计时一轮。

来源：
PyTorch torch.utils.data 文档（单进程与多进程加载）。
"""
LEVEL = "note"
STEP = 6

SHARE = 0.1  # of the time (rule of thumb)
SHORTEST = 0.002  # seconds a batch
BATCHES = 16

CAUSE = Text("This loader has no workers, and {share} % of the time goes into making its batches while the model stands still.",
             "这个 loader 没有 worker：{share} % 的时间，模型都停着等它准备 batch。")
FIX = Text("Try num_workers=2 with persistent_workers=True, and time an epoch.",
           "试试 num_workers=2 加 persistent_workers=True，计时一轮，比一比。")
WAIT = Text("share of the time from batch to batch that is waiting", "相邻 batch 之间等待所占的比例")


def check(times: list[LoaderTime], loaders: list[LoaderMade]) -> Iterator[Finding]:
    made = {loader.id: loader for loader in loaders if loader.workers == 0}
    for each in sorted(times, key=lambda each: -each.waiting):
        loader = made.get(each.loader)
        if loader and each.batches >= BATCHES and each.waiting > SHARE * each.seconds and each.own_waiting > SHORTEST * each.batches:
            share = each.waiting / each.seconds
            yield Finding(cause=CAUSE.fill(share=round(100 * share)), fix=FIX, where=loader.site or loader.iter_site,
                          evidence=(Evidence(WAIT, round(share, 3), f"< {SHARE}"),), first_step=loader.step)
            return
