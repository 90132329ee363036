"""A recurrent or attention layer runs over the batch instead of time.

What it is:
``nn.LSTM``, ``nn.GRU``, ``nn.MultiheadAttention`` and ``nn.TransformerEncoder`` read [time, batch, features] unless ``batch_first=True`` is
set. Given [batch, time, features] they run over the samples: sample i's state carries over to sample i + 1. The reverse fault: batch_first=True
and time first in the data.

Why it is silent:
Both layouts have the same rank, and the output has the shape that was expected.

What you see:
A loss at chance; predictions that depend on a sample's place in the batch.

Look-alikes:
Streams laid out [time, batch] on purpose, and single sequences, are right without batch_first.

Fix:
Set ``batch_first=True`` where the layer is made.

Before:
    self.lstm = nn.LSTM(64, 128)
After:
    self.lstm = nn.LSTM(64, 128, batch_first=True)

Experiment:
Change one sample of a batch in eval mode: only its own output may change.

Source:
Replay of the model's own forward with one sample exchanged; PyTorch documentation of nn.LSTM and nn.MultiheadAttention, ``batch_first``.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.layout import BatchMixing, LeadSizes
from traindx.core.text import Text
from traindx.signals.batch_mixing import certain_batch, shown
from traindx.signals.where import pointing

ZH = """循环层或注意力层沿着 batch 走，而不是沿着时间走

是什么：
``nn.LSTM``、``nn.GRU``、``nn.MultiheadAttention``、``nn.TransformerEncoder`` 默认按 [时间, batch, 特征] 读输入，设了 ``batch_first=True`` 才按
[batch, 时间, 特征] 读。给错布局，它们就在样本之间递推：样本 i 的状态传给样本 i + 1。反过来也一样：设了 batch_first=True，数据却是时间在前。

为什么不报错：
两种布局维数相同，输出的形状也正是你预期的。

你会看到：
损失停在瞎猜的水平；预测取决于样本在 batch 里的位置。

容易混淆的情况：
有意按 [时间, batch] 排好的数据流，以及单条序列，不设 batch_first 是对的。

怎么改：
构造这一层时设 ``batch_first=True``。

改前：
    self.lstm = nn.LSTM(64, 128)
改后：
    self.lstm = nn.LSTM(64, 128, batch_first=True)

对照实验：
在推理模式下只改 batch 里的一个样本：应该只有它自己的输出变化。

来源：
换掉一个样本后重放模型自己的前向；PyTorch nn.LSTM 和 nn.MultiheadAttention 文档中的 ``batch_first``。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("shape/batch-mixing", "curve/*", "optim/lr-*", "data/labels-misaligned", "init/*", "loss/constant", "optim/clip-always")
EXPERIMENT = "swap-time-and-batch"

CAUSE = Text("{layer} reads dimension {dim} of its input {shape} as time, but that dimension holds the {batch} sample{batch:|s} of the batch.",
             "{layer} 把输入 {shape} 的第 {dim} 维当作时间，可这一维放的是 batch 里的 {batch} 个样本。")
UNBATCHED = Text("{layer} takes its 2-D input {shape} for one sequence, but its rows are the {batch} sample{batch:|s} of the batch.",
                 "{layer} 把二维输入 {shape} 当成一条序列，可它的每一行是 batch 里的一个样本（共 {batch} 个）。")
FIX = Text("Set batch_first={flag} where {layer} is made, or transpose its input.", "构造 {layer} 时设 batch_first={flag}，或者先转置输入。")
FIX_UNBATCHED = Text("Give {layer} a time dimension: [batch, time, features] with batch_first=True.",
                     "给 {layer} 的输入补上时间维，写成 [batch, time, features]，并设 batch_first=True。")
OTHERS = Text("other samples whose output changed with one sample's input", "改动一个样本的输入后，输出跟着变的其他样本数")
RECURRENT = ("LSTM", "GRU", "RNN")


def check(mixings: list[BatchMixing], sizes: list[LeadSizes] | None) -> Iterator[Finding]:
    for mixing in mixings:
        if mixing.mixes and certain_batch(mixing, sizes or []) and reads_samples_as_time(mixing):
            yield _finding(mixing)


def reads_samples_as_time(mixing: BatchMixing) -> bool:
    if mixing.batch_first is None or mixing.op_dim is None:
        return False
    if len(mixing.op_input) == 2:
        return mixing.op_dim == 0
    if mixing.module_class not in RECURRENT:  # attention transposes before it computes
        return True
    return mixing.op_dim == (1 if mixing.batch_first else 0)


def _finding(mixing: BatchMixing) -> Finding:
    values = {"layer": f"nn.{mixing.module_class}", "shape": shown(mixing.op_input), "dim": mixing.op_dim, "batch": mixing.batch}
    unbatched = len(mixing.op_input) == 2
    where, also = pointing(mixing.made_at, mixing.op_site, mixing.site)
    return Finding(
        cause=(UNBATCHED if unbatched else CAUSE).fill(**values),
        fix=FIX_UNBATCHED.fill(**values) if unbatched else FIX.fill(flag=not mixing.batch_first, **values), where=where, also=also,
        evidence=(Evidence(OTHERS, f"{mixing.others} / {mixing.batch - 1}", "0", step=mixing.step),), first_step=mixing.step)
