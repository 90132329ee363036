"""A reshape or a norm mixes the samples of a batch.

What it is:
A ``view`` or ``reshape`` is used where dimensions should be swapped first: [2, B, H] read as [B, 2 H] joins halves of different samples.
Or a norm is taken over the batch. Sample i's output then depends on sample j.

Why it is silent:
The shape is right; only the numbers stand at the wrong places. The loss falls a little on what is left of the signal.

What you see:
A network that should solve the task stays near guessing, on training data too; predictions change with the batch they are in.

Look-alikes:
BatchNorm in train mode, contrastive losses and graphs whose dim 0 is nodes mix on purpose. So do batch statistics and attention across
the batch that the program multiplies out itself: they are not reported.

Fix:
Move the dimensions first, then reshape.

Before:
    h_n.reshape(x.size(0), -1)
After:
    h_n.transpose(0, 1).reshape(x.size(0), -1)

Experiment:
Change one sample of a batch in eval mode: only its own output may change.

Source:
Replay of the model's own forward with one sample exchanged; PyTorch documentation of Tensor.view (order of elements is kept).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.layout import BatchMixing, LeadSizes
from traindx.core.text import Text
from traindx.signals.batch_mixing import certain_batch, shown

ZH = """reshape 或归一化把一个 batch 里的样本混在了一起

是什么：
该先交换维度的地方直接用了 ``view`` 或 ``reshape``：把 [2, B, H] 读成 [B, 2H]，拼到一起的是不同样本的两半。或者沿着 batch 维取了范数。
这样，样本 i 的输出会受样本 j 影响。

为什么不报错：
形状是对的，只是数放错了位置。靠剩下的一点信号，损失还会降一点。

你会看到：
本该学会的网络几乎停在瞎猜的水平，训练集上也一样；同一个样本换一个 batch，预测就变。

容易混淆的情况：
训练模式下的 BatchNorm、对比损失、第 0 维是节点的图网络，混合样本是有意的。程序自己写出来的 batch 统计量和跨样本注意力也是有意的，不会报告。

怎么改：
先交换维度，再 reshape。

改前：
    h_n.reshape(x.size(0), -1)
改后：
    h_n.transpose(0, 1).reshape(x.size(0), -1)

对照实验：
在推理模式下只改 batch 里的一个样本：应该只有它自己的输出变化。

来源：
换掉一个样本后重放模型自己的前向；PyTorch Tensor.view 文档（元素顺序保持不变）。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "optim/lr-*", "data/labels-misaligned", "init/*", "loss/constant")
EXPERIMENT = "exchange-one-sample"

LAYOUTS = frozenset(("view", "reshape", "flatten", "unflatten", "view_as", "reshape_as", "resize", "resize_", "as_strided", "ravel"))
NORMS = frozenset(("norm", "normalize", "linalg_norm", "vector_norm", "linalg_vector_norm", "renorm"))

RESHAPE = Text("{op} turns {before}, where dimension {dim} holds the samples, into {after}: numbers of different samples end up in one row.",
               "{op} 把 {before}（样本在第 {dim} 维）变成 {after}：不同样本的数落进了同一行。")
NORM = Text("{op} runs over dimension {dim}, which holds the samples: each sample is scaled by all the others.",
            "{op} 沿第 {dim} 维计算，而这一维是样本：每个样本怎么缩放，都取决于其他样本。")
FIX_RESHAPE = Text("Move the samples to the front first (transpose or permute), then {op}.",
                   "先用 transpose 或 permute 把样本移到最前面，再做 {op}。")
FIX_NORM = Text("Norm over the features: dim=-1.", "改为沿特征维计算：dim=-1。")
OTHERS = Text("other samples whose output changed with one sample's input", "改动一个样本的输入后，输出跟着变的其他样本数")


def check(mixings: list[BatchMixing], sizes: list[LeadSizes] | None) -> Iterator[Finding]:
    for mixing in mixings:
        if mixing.mixes and certain_batch(mixing, sizes or []) and (cause := cause_of(mixing)):
            yield Finding(
                cause=cause[0], fix=cause[1], where=mixing.op_site or mixing.site, also=(mixing.site,) if mixing.site else (),
                evidence=(Evidence(OTHERS, f"{mixing.others} / {mixing.batch - 1}", "0", step=mixing.step),), first_step=mixing.step)


def cause_of(mixing: BatchMixing) -> tuple[Text, Text] | None:
    if mixing.op in LAYOUTS and mixing.op_dim is not None:
        values = {"op": mixing.op, "before": shown(mixing.op_input), "after": shown(mixing.op_output), "dim": mixing.op_dim}
        return RESHAPE.fill(**values), FIX_RESHAPE.fill(op=mixing.op)
    if mixing.op in NORMS and mixing.axis is not None and mixing.axis == mixing.op_dim:
        return NORM.fill(op=mixing.op, dim=mixing.axis), FIX_NORM
    return None
