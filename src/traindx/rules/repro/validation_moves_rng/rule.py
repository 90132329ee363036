"""Validation draws from the training's random numbers.

What it is:
The evaluation forward draws from torch's global generator (dropout left on, sampling, noise). Training takes its shuffles and its
dropout from the same generator, so validating more or less often changes the training itself.

Why it is silent:
Every stream of random numbers is as good as any other.

What you see:
A run that turns out differently when you only change how often it validates.

Look-alikes:
Evaluation that is deterministic, or that draws from a generator of its own, leaves the training as it was.

Fix:
Give the evaluation a generator of its own, or put the state back.

Before:
    samples = model.sample(z=torch.randn(16, 8))
After:
    with torch.random.fork_rng():
        samples = model.sample(z=torch.randn(16, 8))

Experiment:
Skip one validation and compare the next training loss: it is another one.

Source:
PyTorch documentation of torch.random.fork_rng.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.seeds import EvaluationDraws
from traindx.core.text import Text

ZH = """验证用掉了训练的随机数

是什么：
验证的前向计算从 torch 的全局随机数生成器里取数（没关的 dropout、采样、噪声）。训练的打乱顺序和 dropout 也取自同一个生成器，
所以验证得多一次少一次，训练本身就会不一样。

为什么不报错：
换一串随机数，看上去没有区别。

你会看到：
只改了验证的频率，训练结果却变了。

容易混淆的情况：
验证本身是确定的，或者用自己的生成器取数，就不会影响训练。

怎么改：
给验证单独一个生成器，或者用完把状态还原。

改前：
    samples = model.sample(z=torch.randn(16, 8))
改后：
    with torch.random.fork_rng():
        samples = model.sample(z=torch.randn(16, 8))

对照实验：
少做一次验证，比较下一个训练损失：会变。

来源：
PyTorch torch.random.fork_rng 文档。
"""
LEVEL = "note"
STEP = 6

CAUSE = Text("The forward here draws from torch's global generator while it evaluates{shuffles}: how often you validate changes the training.",
             "这里的前向，验证时会从 torch 的全局生成器取随机数{shuffles}：多久验证一次，会影响训练本身。")
SHUFFLES = Text(", from which the training's order comes", "，而训练的打乱顺序也来自它")
FIX = Text("Wrap the evaluation in torch.random.fork_rng(), or hand it a generator of its own.",
           "把验证包在 torch.random.fork_rng() 里，或者给它单独的生成器。")
STATE = Text("state of the generator after the forward", "前向之后生成器的状态")
MOVED, STILL = Text("moved", "变了"), Text("as before", "不变")


def check(draws: list[EvaluationDraws]) -> Iterator[Finding]:
    for draw in draws:
        if draw.moved:
            shuffles = SHUFFLES if draw.shuffles else Text("", "")
            yield Finding(cause=CAUSE.fill(shuffles=shuffles), fix=FIX, where=draw.site,
                          evidence=(Evidence(STATE, MOVED, STILL, step=draw.step),), first_step=draw.step)
            return
