"""Seeds are set, but kernels are chosen by a race.

What it is:
``torch.backends.cudnn.benchmark`` lets cuDNN time several algorithms and take the fastest. Which one wins may differ from run to run, and
so may the last bits of every result, although all generators are seeded.

Why it is silent:
All algorithms are right; they only add up in another order.

What you see:
On a GPU, two runs with one seed agree at first and drift apart after some hundred steps.

Look-alikes:
Without seeds nothing is promised anyway. On a CPU the setting changes nothing.

Fix:
Switch it off where runs must be comparable bit by bit, and ask for deterministic algorithms.

Before:
    torch.backends.cudnn.benchmark = True
After:
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)

Experiment:
Run twice on the GPU and compare the loss of step 1000 to the last digit.

Source:
PyTorch notes on reproducibility (cuDNN benchmarking).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.kernels import KernelSettings
from traindx.core.text import Text, same
from traindx.signals.where import pointing

ZH = """设了种子，算法却靠比速度来选

是什么：
``torch.backends.cudnn.benchmark`` 让 cuDNN 给几种算法计时，选最快的那个。每次运行胜出的可能不同，于是就算生成器都设了种子，结果的最后几位也可能不同。

为什么不报错：
每种算法都是对的，只是相加的顺序不同。

你会看到：
在 GPU 上用同一个种子跑两次，开头一致，几百步之后渐渐分开。

容易混淆的情况：
没设种子，本来就没有承诺。在 CPU 上这个开关不起作用。

怎么改：
需要逐位一致时把它关掉，并要求使用确定性算法。

改前：
    torch.backends.cudnn.benchmark = True
改后：
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True)

对照实验：
在 GPU 上跑两遍，比较第 1000 步的损失是否每一位都相同。

来源：
PyTorch 关于可复现性的说明（cuDNN benchmarking）。
"""
LEVEL = "note"
STEP = 6

CAUSE = Text("Seeds are set, but cudnn.benchmark is on{device}: runs with one seed can differ in the last digits.",
             "种子设了，cudnn.benchmark 却开着{device}：同一个种子跑两次，最后几位可能不同。")
NO_GPU = Text(" (this run used no GPU, where alone it matters)", "（只在 GPU 上有影响，这次没有用 GPU）")
FIX = Text("Set it to False and call torch.use_deterministic_algorithms(True) where runs must agree bit by bit.",
           "需要逐位一致时，把它设为 False，并调用 torch.use_deterministic_algorithms(True)。")
SETTING = same("torch.backends.cudnn.benchmark")


def check(settings: KernelSettings) -> Iterator[Finding]:
    if settings.benchmark and settings.seeded_at is not None and not settings.forced:
        where, also = pointing(settings.set_at, settings.seeded_at)
        yield Finding(cause=CAUSE.fill(device=Text("", "") if settings.cuda else NO_GPU), fix=FIX, where=where, also=also,
                      evidence=(Evidence(SETTING, True, "False"),))
