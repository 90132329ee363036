"""The data contain NaN or infinity.

What it is:
A batch of inputs or targets holds values that are not finite: empty cells of a table, a division by a zero standard deviation, log(0).

Why it is silent:
NaN passes through every layer without an error; one such batch turns all weights to NaN.

What you see:
A loss that is NaN from some step on, at a different step with each shuffle. Or, where the program leaves such batches out, a training
that learns slowly: a few bad rows take most batches with them.

Look-alikes:
Missing values that the model masks or replaces itself do not reach the loss and are left alone; so is a program
that leaves out a few batches.

Fix:
Fill or drop the missing values before training, and give constant columns a standard deviation of 1.

Before:
    x = (x - x.mean(0)) / x.std(0)
After:
    x = (x - x.mean(0)) / x.std(0).clamp(min=1e-6)

Experiment:
Put 0 in place of what is not finite: the loss stays finite.

Source:
IEEE 754: every operation on NaN gives NaN. The values themselves: measured.
"""
from __future__ import annotations

import math
from collections.abc import Iterator

from traindx.core.amounts import percent
from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import NonFiniteFed
from traindx.core.recording import Recording
from traindx.core.text import Text
from traindx.signals.feeding import sites

ZH = """数据里有 NaN 或无穷大

是什么：
某个 batch 的输入或目标里有不是有限数的值：表格的空格子、除以为 0 的标准差、log(0)。

为什么不报错：
NaN 能穿过每一层而不报错；一个这样的 batch 就把全部权重变成 NaN。

你会看到：
从某一步起损失是 NaN；换一种打乱次序，出现的步数也变。如果程序遇到这样的 batch 就跳过，那就是学得很慢：几行坏数据会连累大半的 batch。

容易混淆的情况：
模型自己会屏蔽或替换的缺失值到不了损失，不报；只跳过少数几个 batch 的程序也不报。

怎么改：
训练前填补或删掉缺失值；恒定的列把标准差当作 1。

改前：
    x = (x - x.mean(0)) / x.std(0)
改后：
    x = (x - x.mean(0)) / x.std(0).clamp(min=1e-6)

对照实验：
把 NaN 和无穷大换成 0：损失就一直是有限数。

来源：
IEEE 754：NaN 参与的任何运算仍得 NaN。数值本身属实测。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("numeric/*", "curve/*", "loss/constant", "loss/all-ignored", "init/*", "optim/*")
EXPERIMENT = "finite-inputs"

CAUSE = Text("The {what} of step {step} holds {nans} NaN and {infinities} infinite value{infinities:|s} (rows {rows} of a batch of "
             "{batch}, columns {columns}), and the loss is not finite from then on.",
             "第 {step} 步的{what}里有 {nans} 个 NaN、{infinities} 个无穷大（这个 batch 有 {batch} 行，它们在第 {rows} 行、第 {columns} "
             "列），此后损失不再是有限数。")
SKIPPED = Text("{skipped} of {batches} training batch{batches:|es} hold inputs that are not finite and were left out by the program: {share} of the "
               "training is lost to a few bad rows (in step {step}, rows {rows} of a batch of {batch}, columns {columns}).",
               "{batches} 个训练 batch 里有 {skipped} 个的输入含有 NaN 或无穷大，程序把它们整个跳过了：几行坏数据让 {share} 的训练白费"
               "（例如第 {step} 步，batch 有 {batch} 行，它们在第 {rows} 行、第 {columns} 列）。")
FEWEST, SHARE = 10, 0.2  # batches, and their share, that are more than a few left out
LEFT_OUT = Text("training batches left out for it", "因此被跳过的训练 batch")
WORDS = {"input": Text("input", "输入"), "target": Text("target", "目标")}
FIX = Text("Fill or drop these values before training, and look for the division or logarithm that made them.",
           "训练之前填补或删掉这些值，并找出产生它们的那次除法或对数。")
COUNT = Text("values that are not finite", "不是有限数的个数")


def check(found: list[NonFiniteFed] | None, recording: Recording) -> Iterator[Finding]:
    for fed in found or []:
        if _harms(fed, recording):
            yield _finding(fed)
        elif fed.skipped >= FEWEST and fed.skipped > SHARE * fed.batches:
            yield _of_skipped(fed)


def _harms(fed: NonFiniteFed, recording: Recording) -> bool:
    """The loss was sound before, and is not in this very step."""
    points = recording.series.get("loss" if fed.training else "val_loss", [])
    bad = next((step for step, value in points if not math.isfinite(value)), None)
    return bad is not None and (abs(bad - fed.step) <= 1 if fed.training else True)


def _of_skipped(fed: NonFiniteFed) -> Finding:
    places = sites(fed.loader_site, *fed.breaks[:1], fed.site)
    return Finding(
        cause=SKIPPED.fill(skipped=fed.skipped, batches=fed.batches, share=percent(fed.skipped / fed.batches), step=fed.step, batch=fed.batch,
                           **_in_the_batch(fed)),
        fix=FIX, where=places[0] if places else None, also=places[1:], level="warning", first_step=fed.step,
        evidence=(Evidence(LEFT_OUT, fed.skipped, "0"),))


def _in_the_batch(fed: NonFiniteFed) -> dict[str, str]:
    return {"rows": ", ".join(map(str, fed.rows)), "columns": ", ".join(map(str, fed.columns))}


def _finding(fed: NonFiniteFed) -> Finding:
    places = sites(fed.loader_site, *fed.breaks[:1], fed.site)
    return Finding(
        cause=CAUSE.fill(what=WORDS[fed.what], step=fed.step, nans=fed.nans, infinities=fed.infinities, batch=fed.batch,
                         **_in_the_batch(fed)), fix=FIX, where=places[0] if places else None, also=places[1:], first_step=fed.step,
        evidence=(Evidence(COUNT, fed.nans + fed.infinities, "0", step=fed.step),))
