"""Gradients are clipped on some ranks only.

What it is:
A call of clip_grad_norm_ or clip_grad_value_ runs on some ranks and not on others. From the first clip that bites, the ranks step by different
gradients.

Why it is silent:
The wrapper averages in the backward; what happens to the gradients after it is each rank's own affair.

What you see:
Weights that drift apart; the saved model is that of one rank.

Look-alikes:
A clip that only logs (with an infinite limit) changes nothing. Under FSDP the clip is a collective of its own: calling it on one rank hangs.

Fix:
Clip on every rank, outside any condition on the rank.

Before:
    if rank == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
After:
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)

Experiment:
Compare a checksum of the weights across the ranks after one step, with the clip and without.

Source:
One of the faults in TrainCheck's public list (OSDI 2025); PyTorch documentation of DistributedDataParallel.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.program import Event, Window
from traindx.core.recording import Recording
from traindx.core.text import Text
from traindx.signals.ranks import Copies
from traindx.signals.where import pointing

ZH = """只有部分进程裁剪了梯度

是什么：
clip_grad_norm_ 或 clip_grad_value_ 只在一部分进程上调用。从第一次真正起作用的裁剪开始，各进程就按不同的梯度更新了。

为什么不报错：
包装在反向传播里求平均；之后对梯度做什么，是每个进程自己的事。

你会看到：
各进程的权重越走越远；保存下来的只是其中一个进程的模型。

容易混淆的情况：
只为记录范数的裁剪（上限无穷大）什么也不改。FSDP 下裁剪本身要各进程一起做，只在一个进程上调用会卡住。

怎么改：
每个进程都裁剪，不要放在判断 rank 的条件里。

改前：
    if rank == 0:
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
改后：
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)

对照实验：
带裁剪和不带裁剪各走一步，比较各进程权重的校验和。

来源：
TrainCheck 公开清单中的一条（OSDI 2025）；PyTorch DistributedDataParallel 文档。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("rank/params-diverged", "optim/clip-*")

SHARE = 0.05  # of the steps by which counts may differ: ranks that end at different steps

CAUSE = Text("{function} ran in {most} of {steps} step{steps:|s} on rank {ranks} and in {fewest} on rank {others}: the ranks step by "
             "different gradients.",
             "{steps} 步里，{function} 在进程 {ranks} 上运行了 {most} 次，在进程 {others} 上运行了 {fewest} 次：各进程按不同的梯度更新。")
FIX = Text("Clip on every rank.", "每个进程都裁剪。")
STEPS = Text("steps with a clip, rank by rank", "各进程裁剪过的步数")
EQUAL = Text("equal on every rank", "各进程相同")
DISTANCE = Text("greatest difference between ranks over the root mean square of the weights", "各进程之间的最大差值与权重均方根之比")


def check(replicas: Copies, recording: Recording) -> Iterator[Finding]:
    for replica in replicas:
        if replica.apart is None or not replica.shares_gradients:
            continue
        clips = {rank: _clips(recording.ranks[rank]) for rank in replica.ranks}
        counts = {rank: len_ for rank, (len_, _) in clips.items()}
        steps = max(count for _, count in replica.counts)
        most, fewest = max(counts.values()), min(counts.values())
        if most - fewest <= max(1, SHARE * steps):
            continue
        ranks = tuple(rank for rank, count in counts.items() if count == most)
        event = next(event for rank in ranks if (event := clips[rank][1]) is not None)
        where, also = pointing(event.site, replica.seen.step_site)
        yield Finding(
            cause=CAUSE.fill(function=event.detail, most=most, fewest=fewest, steps=steps, ranks=_listed(ranks),
                             others=_listed([rank for rank, count in counts.items() if count == fewest])),
            fix=FIX, where=where, also=also, ranks=ranks, first_step=max(1, replica.apart - 1),
            evidence=(Evidence(STEPS, ", ".join(f"{rank}: {count}" for rank, count in counts.items()), EQUAL),
                      Evidence(DISTANCE, replica.distance, "0", step=replica.steps[-1])))


def _clips(recording: Recording) -> tuple[int, Event | None]:
    """In how many windows a clip came before the step; the first of them."""
    found, first = 0, None
    for window in recording.of(Window):
        clip = next((event for event in window.events if event.what == "clip"), None)
        if clip is not None:
            found += window.count
            first = first or clip
    return found, first


def _listed(ranks: list[int] | tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks))
