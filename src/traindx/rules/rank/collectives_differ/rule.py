"""The ranks call different collectives.

What it is:
Collectives pair by their order: the n-th call of one rank meets the n-th of every other. Here the n-th calls differ: another function, another
size or type, another reduction. Mostly a call stands under a condition on the rank.

Why it is silent:
Where the sizes happen to fit, one tensor is reduced with another. Where they do not, the program hangs or breaks off somewhere else.

What you see:
Numbers that make no sense after a reduction; a hang, a closed connection, a timeout.

Look-alikes:
Calls in a group of some of the ranks. Sends and receives between two ranks. Gathering parts of different sizes.

Fix:
Call every collective on every rank, in the same order and with equal shapes; only what is done with the result may depend on the rank.

Before:
    if rank == 0:
        torch.distributed.all_reduce(total)
After:
    torch.distributed.all_reduce(total)
    if rank == 0:
        print(total)

Experiment:
TORCH_DISTRIBUTED_DEBUG=DETAIL makes PyTorch compare the calls itself.

Source:
PyTorch documentation of torch.distributed (collectives must be called by every rank of the group, in the same order).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.ranks import Collective
from traindx.core.text import Text
from traindx.signals.ranks import RankCalls
from traindx.signals.where import pointing

ZH = """各进程调用的集合通信对不上

是什么：
集合通信按次序配对：一个进程的第 n 次调用，对上其他进程的第 n 次。这里第 n 次调用不同：函数不同、大小或类型不同、归约方式不同。多半是某个调用写在了判断 rank 的条件里。

为什么不报错：
大小恰好合得上时，两个不相干的张量就归约到了一起。合不上时，程序会卡住，或者在别的地方断掉。

你会看到：
归约之后的数说不通；卡住、连接关闭、超时。

容易混淆的情况：
只在部分进程组成的组里调用。两个进程之间的收发。收集大小不同的各部分。

怎么改：
每个集合通信都在每个进程上调用，次序相同，形状相同；只有对结果的处理可以按 rank 区分。

改前：
    if rank == 0:
        torch.distributed.all_reduce(total)
改后：
    torch.distributed.all_reduce(total)
    if rank == 0:
        print(total)

对照实验：
设 TORCH_DISTRIBUTED_DEBUG=DETAIL，PyTorch 会自己比较这些调用。

来源：
PyTorch torch.distributed 文档（组里每个进程都必须按同样的次序调用集合通信）。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("rank/params-diverged", "rank/uneven-steps")

CAUSE = Text("Call {number} of a collective is {one} on rank {rank} and {other} on rank {second}: they meet each other.",
             "第 {number} 次集合通信，进程 {rank} 上是 {one}，进程 {second} 上却是 {other}：这两个对到了一起。")
FIX = Text("Call every collective on every rank, in the same order and with equal shapes.",
           "每一次集合通信，所有进程都要调用，次序和形状都要相同。")
CALLS = Text("this call, rank by rank", "各进程的这次调用")
EQUAL = Text("equal on every rank", "各进程相同")


def check(calls: RankCalls) -> Iterator[Finding]:
    for number in sorted(set.intersection(*(set(each) for each in calls.each.values()))):
        here = {rank: each[number] for rank, each in calls.each.items()}
        kinds = {rank: _kind(call) for rank, call in here.items()}
        if len(set(kinds.values())) == 1:
            continue
        first = min(here)
        second = next(rank for rank in here if kinds[rank] != kinds[first])
        guilty = _fewest(kinds)
        where, also = pointing(here[guilty[0]].site, *(call.site for call in here.values()))
        yield Finding(
            cause=CAUSE.fill(number=number, rank=first, one=_said(here[first]), second=second, other=_said(here[second])), fix=FIX,
            where=where, also=also, ranks=guilty, first_step=max(1, here[first].step),
            evidence=(Evidence(CALLS, "; ".join(f"{rank}: {_said(call)}" for rank, call in here.items()), EQUAL),))
        return


def _kind(call: Collective) -> tuple[str, int, str, str]:
    return call.name, call.numel, call.dtype, call.reduction


def _fewest(kinds: dict[int, tuple[str, int, str, str]]) -> tuple[int, ...]:
    """The ranks whose call is the rarest; with two ranks, all of them."""
    counts = {kind: list(kinds.values()).count(kind) for kind in kinds.values()}
    rarest = min(counts.values())
    return tuple(rank for rank, kind in kinds.items() if counts[kind] == rarest)


def _said(call: Collective) -> str:
    size = f" of {call.numel} {call.dtype}" if call.numel >= 0 else ""
    reduction = f" {call.reduction}" if call.reduction else ""
    place = f" ({call.site.short})" if call.site else ""
    return f"{call.name}{reduction}{size}{place}"
