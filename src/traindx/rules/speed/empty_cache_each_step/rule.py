"""The GPU cache is emptied in every step.

What it is:
``torch.cuda.empty_cache()`` is called inside the training loop. It hands cached memory back to the driver, and the next step asks for it
again: each time the GPU is waited for, and allocation becomes slow.

Why it is silent:
Results are the same. The call is meant to save memory, but the step's own peak stays what it is.

What you see:
Slower steps, and the same out-of-memory error as before.

Look-alikes:
Once an epoch, before an evaluation of another size, it can help against fragmentation. Without a GPU it does nothing.

Fix:
Leave the call out, or make it once between phases.

Before:
    optimizer.step()
    torch.cuda.empty_cache()
After:
    optimizer.step()

Experiment:
Time a hundred steps with and without.

Source:
PyTorch documentation of CUDA semantics, "Memory management" (the caching allocator).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.kernels import CacheEmptied, KernelSettings
from traindx.core.recording import Recording
from traindx.core.text import Text

ZH = """每一步都清空显存缓存

是什么：
训练循环里每步都调用 ``torch.cuda.empty_cache()``。它把缓存的显存还给驱动，下一步又要重新申请：每次都要等 GPU，分配也变慢。

为什么不报错：
结果一样。本意是省显存，但这一步自己的峰值并没有变。

你会看到：
每步变慢，显存不足的错误照样出现。

容易混淆的情况：
每轮一次、在另一种尺寸的评估之前调用，有时能减少碎片。没有 GPU 时它什么也不做。

怎么改：
去掉这个调用，或者只在阶段之间调用一次。

改前：
    optimizer.step()
    torch.cuda.empty_cache()
改后：
    optimizer.step()

对照实验：
有和没有它，各跑一百步计时。

来源：
PyTorch 文档 CUDA semantics 中「Memory management」一节（缓存分配器）。
"""
LEVEL = "note"
STEP = 6

STEPS = 8
OFTEN = 0.5  # of the steps since the first call

CAUSE = Text("torch.cuda.empty_cache() was called in {steps} of {of} steps{device}.",
             "{of} 步里有 {steps} 步调用了 torch.cuda.empty_cache(){device}。")
NO_GPU = Text(" (this run used no GPU: here it cost nothing)", "（这次没有用 GPU，所以不花时间）")
FIX = Text("Leave it out: the cache is reused by the next step.", "去掉它：缓存会留给下一步用。")
CALLS = Text("calls", "调用次数")


def check(lines: list[CacheEmptied], settings: KernelSettings | None, recording: Recording) -> Iterator[Finding]:
    for seen in lines:
        of = recording.steps - seen.first_step + 1
        if seen.steps >= STEPS and seen.steps >= OFTEN * of:
            device = NO_GPU if settings is not None and not settings.cuda else Text("", "")
            yield Finding(cause=CAUSE.fill(steps=seen.steps, of=max(of, seen.steps), device=device), fix=FIX, where=seen.site,
                          evidence=(Evidence(CALLS, seen.calls, "0"),), first_step=seen.first_step)
