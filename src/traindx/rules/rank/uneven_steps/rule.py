"""The ranks make different numbers of steps.

What it is:
Every step needs all ranks: they average their gradients together. Here one rank has fewer batches than another. From the end of its epoch on, its
steps meet those of another epoch on the other ranks, and at the end the others wait for a step that never comes.

Why it is silent:
As long as both go on, any two steps fit each other. Only the end shows it, as a hang or a closed connection.

What you see:
A training that hangs, or breaks off with a closed connection or a timeout, at the end of an epoch.

Look-alikes:
The join context, which is made for uneven inputs. A rank that stopped because of an error of its own. Work that only one rank does after the
training.

Fix:
Give every rank the same number of batches: DistributedSampler pads by itself, ``drop_last=True`` cuts; or train under ``with model.join():``.

Before:
    part = data[rank::world]
    loader = DataLoader(part, batch_size=16)
After:
    loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data))

Experiment:
Print len(loader) on every rank.

Source:
PyTorch tutorial on distributed training with uneven inputs (the Join context).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Ended
from traindx.core.observed.data import LoaderMade
from traindx.core.observed.ranks import WrapperUse
from traindx.core.recording import Recording
from traindx.core.text import Text
from traindx.signals.ranks import Replica, Replicas, is_cut_off
from traindx.signals.where import pointing

ZH = """各进程走的步数不同

是什么：
每一步都需要全部进程一起对梯度求平均。这里有个进程的 batch 比别的少：从它这一轮结束起，它的步就和别人上一轮的步对到了一起；到最后，别的进程在等永远不来的一步。

为什么不报错：
只要大家都还在走，任意两步都能配上。只有到最后才露馅：卡住，或者连接断开。

你会看到：
训练在某一轮末尾卡住，或者报连接关闭、超时。

容易混淆的情况：
join 上下文，本来就是给数量不等的输入用的。某个进程因为自己的错误停下。训练之后只有一个进程才做的工作。

怎么改：
让每个进程的 batch 一样多：DistributedSampler 会自动补齐，``drop_last=True`` 会截掉；或者在 ``with model.join():`` 里训练。

改前：
    part = data[rank::world]
    loader = DataLoader(part, batch_size=16)
改后：
    loader = DataLoader(data, batch_size=16, sampler=DistributedSampler(data))

对照实验：
在每个进程上打印 len(loader)。

来源：
PyTorch 关于输入数量不等时分布式训练的教程（Join 上下文）。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("rank/params-diverged",)

CAUSE = Text("Rank {ranks} came to its end after {fewest} step{fewest:|s} while rank {others} went on to another: each step needs every rank.",
             "进程 {ranks} 走了 {fewest} 步就结束了，进程 {others} 却还要走下一步：每一步都需要全部进程。")
FIX = Text("Give every rank the same number of batches (DistributedSampler, drop_last=True), or train under `with model.join():`.",
           "让每个进程的 batch 一样多（DistributedSampler、drop_last=True），或者在 `with model.join():` 里训练。")
STEPS = Text("optimizer steps, rank by rank", "各进程的步数")
BATCHES = Text("batches of the loaders, rank by rank", "各进程取到的 batch 数")
EQUAL = Text("equal on every rank", "各进程相同")


def check(replicas: Replicas, recording: Recording) -> Iterator[Finding]:
    for replica in replicas.sharing:
        if any(use.joins for rank in replica.ranks for use in recording.ranks[rank].of(WrapperUse)):
            continue
        ends = {rank: recording.ranks[rank].last(Ended) for rank in replica.ranks}
        done = tuple(rank for rank, end in ends.items() if end is not None and end.how == "finished")
        steps = dict(replica.counts)
        fewest = min((steps[rank] for rank in done), default=0)
        more = tuple(rank for rank in replica.ranks if (is_cut_off(ends[rank]) if rank not in done else steps[rank] > fewest))
        short = tuple(rank for rank in done if rank not in more)
        if short and more:
            yield _finding(replica, recording, short, more)


def _finding(replica: Replica, recording: Recording, short: tuple[int, ...], more: tuple[int, ...]) -> Finding:
    steps = dict(replica.counts)
    batches = {rank: sum(loader.batches for loader in recording.ranks[rank].of(LoaderMade)) for rank in replica.ranks}
    loaders = recording.ranks[short[0]].of(LoaderMade)
    where, also = pointing(loaders[0].site if loaders else None, replica.seen.step_site)
    evidence = [Evidence(STEPS, _each(steps), EQUAL)] + ([Evidence(BATCHES, _each(batches), EQUAL)] if any(batches.values()) else [])
    return Finding(
        cause=CAUSE.fill(ranks=", ".join(map(str, short)), others=", ".join(map(str, more)), fewest=min(steps[rank] for rank in short)),
        fix=FIX, where=where, also=also, ranks=short, evidence=tuple(evidence), first_step=max(1, min(steps.values())))


def _each(counts: dict[int, int]) -> str:
    return ", ".join(f"{rank}: {count}" for rank, count in counts.items())
