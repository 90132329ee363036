"""Logging takes a part of every step.

What it is:
Writing scalars, histograms, images or files takes time, and the step waits for it. Done in every step, it is paid in every step.

Why it is silent:
The logs are right. Nobody times them.

What you see:
Steps that get shorter as soon as logging is commented out. On a GPU, logging also reads values, and waits for all queued work.

Look-alikes:
A scalar in every step costs some microseconds, and is worth it. Images, histograms and pictures of matplotlib cost a thousand times as much.

Fix:
Log every so many steps; images rarely; large files from another thread.

Before:
    writer.add_images("batch", images, step)
After:
    if step % 500 == 0:
        writer.add_images("batch", images[:8], step)

Experiment:
``traindx speed`` leaves logging out in every other block of steps: the ratio is what it costs.

Source:
PyTorch performance tuning guide (avoid unnecessary CPU-GPU synchronisation); ``traindx speed`` measures it.
"""
from __future__ import annotations

ZH = """写日志占了每步的一部分

是什么：
写数值、直方图、图片、文件都要时间，训练步会等它写完。每步都写，就每步都付出这份时间。

为什么不报错：
日志本身是对的，没有人去给它计时。

你会看到：
把写日志的那几行注释掉，每步马上变短。在 GPU 上，写日志还要读数值，得等所有排队的计算做完。

容易混淆的情况：
每步写一个数只要几微秒，值得写。图片、直方图、matplotlib 的图要贵上千倍。

怎么改：
隔若干步再写，图片少写，大文件交给别的线程写。

改前：
    writer.add_images("batch", images, step)
改后：
    if step % 500 == 0:
        writer.add_images("batch", images[:8], step)

对照实验：
``traindx speed`` 隔一段就把写日志去掉：两者用时之比就是它的开销。

来源：
PyTorch 性能调优指南（避免不必要的 CPU 与 GPU 同步）；由 ``traindx speed`` 实测。
"""
LEVEL = "warning"
STEP = 6
JUDGED_BY = "speed"
