"""Accumulated gradients are thrown away.

What it is:
Gradients of several batches are gathered for one step, but part of them is cleared before any step has used it: ``zero_grad()`` runs
for every batch instead of once for every step, or what is left over at the end of an epoch is cleared at the start of the next.

Why it is silent:
Clearing is always allowed. The steps that do run have gradients, only fewer than were computed.

What you see:
The curve of a smaller batch than intended, noisier and slower, at the full price in time. In a window of k batches with the loss
divided by k, the steps are also k times too small.

Look-alikes:
A discriminator, a critic or a frozen net that only passes gradients on receives some that nobody needs: there a step of another
optimizer used the same backward. Batches skipped for a NaN, an infinite gradient under a GradScaler or a large norm are skipped on
purpose. A backward for inspection alone is never used at all.

Fix:
Clear right after the step, and nowhere else; step once more for what is left at the end of an epoch.

Before:
    optimizer.zero_grad()
    (criterion(model(x), y) / k).backward()
    if (i + 1) % k == 0:
        optimizer.step()
After:
    (criterion(model(x), y) / k).backward()
    if (i + 1) % k == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()

Experiment:
Keep every gradient until the next step: the loss falls faster for the same number of batches.

Source:
Counted for each backward: used by a step in at least one parameter, or cleared in all of them. Under a twentieth lost is a note, a
rule of thumb for what hardly shows.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding, Level
from traindx.core.observed.gradients import PassUse
from traindx.core.text import Text

ZH = """累积的梯度有一部分白算了

是什么：
把几个 batch 的梯度攒起来更新一次，但其中一部分还没用上就清掉了：``zero_grad()`` 每个 batch 都执行，而不是每次更新执行一次；或者一轮末尾剩下的梯度，在下一轮开头清掉了。

为什么不报错：
清空梯度随时都合法。真正执行的更新也有梯度，只是比算出来的少。

你会看到：
效果像是用了比预想更小的 batch：更抖、更慢，时间却一点没省。如果 k 个 batch 一个窗口、损失又除以 k，那么每一步还小了 k 倍。

容易混淆的情况：
只负责传递梯度的判别器、critic 或冻结网络也会收到没人需要的梯度：这时另一个优化器已经用到同一次反向传播。因为 NaN、GradScaler 发现溢出、范数太大而跳过的 batch，是有意跳过。只为查看梯度而做的反向传播，它的梯度从来不会用到。

怎么改：
只在更新之后立刻清空；一轮结束时，剩余的梯度再更新一次。

改前：
    optimizer.zero_grad()
    (criterion(model(x), y) / k).backward()
    if (i + 1) % k == 0:
        optimizer.step()
改后：
    (criterion(model(x), y) / k).backward()
    if (i + 1) % k == 0 or i + 1 == len(loader):
        optimizer.step()
        optimizer.zero_grad()

对照实验：
每份梯度都留到下一次更新：同样多的 batch，损失降得更快。

来源：
逐次核对反向传播：更新时哪怕只有一个参数用到了它，就不算丢；所有参数上的都清掉了，才算丢。丢失不到二十分之一时几乎看不出影响，只作提示（经验值）。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("curve/plateau", "curve/oscillating", "optim/lr-too-low", "optim/zero-grad-before-step", "optim/accumulation-not-averaged")
EXPERIMENT = "keep-gradients"

CAUSE = Text(
    "The gradients of {lost} out of {all} backward{all:|s} at {backward} were cleared before any step used them{place}.",
    "{backward} 的 {all} 次反向传播里，有 {lost} 次的梯度还没用上就清掉了{place}。")
FIX = Text("Clear only after a step, and step for what is left at the end of an epoch.",
           "只在更新之后清空；每轮末尾剩下的梯度，也要更新一次。")
LOST = Text("backwards whose gradients no step used", "梯度没有用到任何更新里的反向传播")
LOST_ASKED, SMALL = 2, 0.05


def check(passes: list[PassUse]) -> Iterator[Finding]:
    for each in passes:
        if each.used and each.lost >= LOST_ASKED and each.lost > each.excused:
            yield _finding(each)


def _finding(each: PassUse) -> Finding:
    total = each.used + each.lost + each.excused
    share = each.lost / total
    level: Level | None = "note" if share < SMALL else None
    wiped = each.wiped_at
    sites = [site for site in (wiped, each.step_site, each.site) if site]
    place = Text(f" ({wiped.short})", f"（{wiped.short}）") if wiped else Text("", "")
    return Finding(
        cause=CAUSE.fill(lost=each.lost, all=total, backward=each.site.short if each.site else "backward()", place=place),
        fix=FIX,
        where=sites[0] if sites else None,
        also=tuple(sites[1:]),
        evidence=(Evidence(LOST, f"{each.lost}/{total}", "0", step=each.first_lost),),
        first_step=each.first_lost,
        level=level)
