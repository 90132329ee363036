"""Padding changes what is computed of the real tokens.

What it is:
Sequences are filled up to one length, and the model reads the filler like the rest: attention without a mask (or with one that is all
ones), a mean over all positions, the last state of a recurrent net that ran on through the filler.

Why it is silent:
Shapes fit, and the filler is a token like any other. Attention gives it weight, a mean counts it.

What you see:
The same sentence gets another answer in a batch with longer neighbours. Evaluation depends on the batch size; short inputs do worst.

Look-alikes:
Causal models read from the left, so filler on the right cannot reach what stands before it. Zeros that mean something (a board, a table)
also occur between other values; only a token that stands nowhere but at the ends counts as filler.

Fix:
Tell the model which positions are filler: a key padding mask, packed sequences, or a mean over the real positions only.

Before:
    self.encoder(h).mean(1)
After:
    self.encoder(h, src_key_padding_mask=pad); (h * ~pad[..., None]).sum(1) / (~pad).sum(1, keepdim=True)

Experiment:
Run a short row alone, once padded and once not: the outputs should agree.

Source:
A replay of the model's own forward on rows cut to their own length; PyTorch documentation of MultiheadAttention (key_padding_mask).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.padding import PaddingReplay
from traindx.core.text import Text, number
from traindx.signals.where import pointing

ZH = """填充影响了真实词元的计算

是什么：
序列补齐到同一长度，而模型把补进去的填充也当作内容来读：注意力没有掩码（或者掩码全是 1），对所有位置求平均，循环网络一直跑到填充的末尾才取最后状态。

为什么不报错：
形状都对得上，填充也只是一个普通词元。注意力会分给它权重，求平均也会把它算进去。

你会看到：
同一句话，和更长的句子放在一个 batch 里，答案就变了。评估结果随 batch 大小变化，短输入最差。

容易混淆的情况：
因果模型从左往右读，右边的填充影响不到前面。有含义的 0（棋盘、表格）也会出现在别的值之间；只有仅在行末出现的词元才算填充。

怎么改：
告诉模型哪些位置是填充：用 key padding mask、打包序列，或者只对真实位置求平均。

改前：
    self.encoder(h).mean(1)
改后：
    self.encoder(h, src_key_padding_mask=pad); (h * ~pad[..., None]).sum(1) / (~pad).sum(1, keepdim=True)

对照实验：
拿一行短输入单独跑，一次带填充，一次不带：输出应该一致。

来源：
把几行截到各自的长度，重放模型自己的前向；PyTorch MultiheadAttention 文档（key_padding_mask）。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("curve/train-val-gap", "curve/plateau", "optim/lr-too-low")

LOUD = 0.1  # standard deviations of the output (rule of thumb): less is drowned by what training itself moves
FIXED = 0.3  # where every batch has the same width, the same row is at least always wrong in the same way

CAUSE = Text("Cutting the filler {token} off short rows ({width} column{width:|s} to {length}) changes the output of the real tokens.",
             "把短行末尾的填充 {token} 截掉（从 {width} 列截到 {length} 列），真实词元的输出就变了。")
FIX = Text("Mask the filler (src_key_padding_mask, attention_mask, pack_padded_sequence) or average over real positions only.",
           "掩掉填充（src_key_padding_mask、attention_mask、pack_padded_sequence），或者只对真实位置求平均。")
CHANGE = Text("mean change of the output, in standard deviations over the rows", "输出的平均变化（以各行输出的标准差计）")


def check(replays: list[PaddingReplay]) -> Iterator[Finding]:
    for seen in replays:
        if seen.change is not None and seen.change > LOUD:
            yield _finding(seen)


def _finding(seen: PaddingReplay) -> Finding:
    assert seen.change is not None
    where, also = pointing(seen.op_site, seen.site)
    consistent = seen.widths == 1 and seen.change < FIXED
    return Finding(
        cause=CAUSE.fill(token=seen.token, width=seen.width, length=seen.length), fix=FIX, where=where, also=also,
        evidence=(Evidence(CHANGE, number(seen.change), "0", step=seen.step),), first_step=seen.step, level="note" if consistent else None)
