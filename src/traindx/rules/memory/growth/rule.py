"""Outputs of all past steps are kept.

What it is:
Every step's output (already cut off from its graph) is stored and never let go: predictions gathered for a plot, features for later.
Memory grows with the number of steps, not with the size of the model.

Why it is silent:
It works until there is no memory left.

What you see:
Memory that rises in a straight line over the epochs.

Look-alikes:
Predictions gathered over one evaluation and then freed. A replay buffer of limited size. Numbers in a log.

Fix:
Keep what you need of it: a number, the last ones only, or a file.

Before:
    outputs.append(model(x).detach())
After:
    outputs = collections.deque(maxlen=100)

Experiment:
Watch the memory over the steps with and without the line.

Source:
A count of the outputs that are still alive, step by step.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.memory import Census, ResultsAlive
from traindx.core.text import Text, number
from traindx.signals.where import pointing

ZH = """每一步的输出都留着不放

是什么：
每一步的输出（已经断开计算图）都存了下来，一直不释放：攒着画图用的预测、留待以后用的特征。内存随步数增长，而不是随模型大小增长。

为什么不报错：
在内存用完之前，一切正常。

你会看到：
内存随着训练轮数直线上升。

容易混淆的情况：
在一次验证里攒下预测，用完就释放。容量有限的回放缓冲区。日志里的数字。

怎么改：
只留下需要的部分：一个数、最近的几个，或者写进文件。

改前：
    outputs.append(model(x).detach())
改后：
    outputs = collections.deque(maxlen=100)

对照实验：
保留和去掉这一行，各看一遍内存随步数的变化。

来源：
逐步清点还活着的输出。
"""
LEVEL = "warning"
STEP = 6

FEWEST = 48  # outputs, of as many steps
HEAVY = 64e6  # bytes that have gathered (rule of thumb); below it a note
NEARLY_ALL = 0.95

CAUSE = Text("The outputs of {count} of {made} forward{made:|s} on this line are still in memory, {size} MB of them, and their number "
             "grows with every step.",
             "这一行做了 {made} 次前向，其中 {count} 次的输出还留在内存里，共 {size} MB，而且每一步都在增加。")
FIX = Text("Do not store whole outputs: keep a number, a few of them (deque(maxlen=...)), or write them to a file.",
           "不要存整个输出：存一个数，或只留几个（deque(maxlen=...)），或写进文件。")
ALIVE = Text("outputs of earlier steps that are alive", "前面各步的输出中还活着的")
FEW = Text("a few, and no more as time goes on", "只有几个，而且不随时间增加")
RESIDENT = Text("memory in use, from the first count to the last", "内存占用，从第一次清点到最后一次")


def check(results: list[ResultsAlive] | None) -> Iterator[Finding]:
    for line in results or []:
        final = max(line.censuses[-2:], key=lambda census: census.outputs)
        if final.outputs > final.graphs and final.output_steps >= FEWEST and _all_kept(line.censuses, final):
            yield _finding(line, final)
            return


def _all_kept(censuses: tuple[Census, ...], final: Census) -> bool:
    """From first to last nothing was let go."""
    return final.outputs >= FEWEST and all(c.outputs >= NEARLY_ALL * c.made for c in censuses if c.step <= final.step)


def _finding(line: ResultsAlive, final: Census) -> Finding:
    where, also = pointing(line.kept_at, line.site)
    before, after = (number(census.resident / 1e6, 4) for census in (line.censuses[0], final))
    return Finding(
        cause=CAUSE.fill(count=final.outputs, made=final.made, size=number(final.bytes / 1e6)), fix=FIX, where=where, also=also,
        evidence=(Evidence(ALIVE, f"{final.outputs} / {final.made}", FEW, step=final.step), Evidence(RESIDENT, f"{before} -> {after}", unit="MB")),
        first_step=line.step, level="warning" if final.bytes >= HEAVY else "note")
