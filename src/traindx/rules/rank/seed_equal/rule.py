"""Every rank draws the same random numbers for its samples.

What it is:
The samples are changed at random while they are loaded (noise, crops, masks), and the generator that decides stands at the same place on every
rank: the n-th sample of each rank is changed in the same way.

Why it is silent:
The samples themselves differ, and each stream looks random.

What you see:
N ranks show the model only the variety of one; a slightly worse result that nobody traces back.

Look-alikes:
One seed on every rank is right for the weights, and harmless for dropout. Only what is drawn while samples are made counts.

Fix:
Seed by the rank too, after the model is built.

Before:
    torch.manual_seed(seed)
After:
    torch.manual_seed(seed + rank)

Experiment:
Print the first random number that a transform draws, on every rank.

Source:
PyTorch notes on reproducibility; judged by the generators' states before and after a batch is made.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text
from traindx.signals.ranks import RankDraws
from traindx.signals.where import pointing

ZH = """每个进程给样本抽的随机数都一样

是什么：
样本在加载时会随机改动（加噪声、裁切、遮挡），而起决定作用的随机数生成器在每个进程上都停在同一处：各进程的第 n 个样本，改法一模一样。

为什么不报错：
样本本身不同，单看每个进程也都很随机。

你会看到：
N 个进程只给了模型一个进程的多样性；结果略差，却没人想到是这里的问题。

容易混淆的情况：
每个进程用同一个种子，对初始权重是对的，对 dropout 也没有害处。只有做样本时抽的随机数才算。

怎么改：
建好模型之后，按 rank 再设一次种子。

改前：
    torch.manual_seed(seed)
改后：
    torch.manual_seed(seed + rank)

对照实验：
在每个进程上打印变换抽到的第一个随机数。

来源：
PyTorch 可复现性说明；依据是做一个 batch 前后随机数生成器的状态。
"""
LEVEL = "warning"
STEP = 1

CALLS = {"torch": "torch.manual_seed", "numpy": "numpy.random.seed", "random": "random.seed"}

CAUSE = Text("While batches were made, {names} began and ended in the same state on ranks {ranks}, in all {steps} step{steps:|s} that were "
             "compared: the samples of every rank are changed alike.",
             "准备 batch 时，{names} 在进程 {ranks} 上的起止状态都相同，比较过的 {steps} 步全都如此：各进程的样本改动得一模一样。")
FIX = Text("Seed by the rank as well, after the model is built: {call}(seed + rank).", "建好模型之后按 rank 再设一次种子：{call}(seed + rank)。")
STEPS = Text("steps with equal states", "状态相同的步数")


def check(draws: RankDraws) -> Iterator[Finding]:
    for group in draws.groups:
        if group.generators:
            where, also = pointing(group.draws.site, group.draws.loader_site)
            yield Finding(
                cause=CAUSE.fill(names=", ".join(group.generators), ranks=", ".join(map(str, group.ranks)), steps=group.steps),
                fix=FIX.fill(call=CALLS[group.generators[0]]), where=where, also=also, ranks=group.ranks,
                evidence=(Evidence(STEPS, group.steps, "0"),))
