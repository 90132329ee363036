"""A softmax is taken over the samples of the batch.

What it is:
``softmax`` or ``log_softmax`` runs over dimension 0, the batch, instead of over the classes or the places to attend to. Without ``dim`` it
picks dimension 0 by itself for 1-D and 3-D tensors. The numbers of one class then compete between samples.

Why it is silent:
Every dimension can be normalised; nothing but the sums shows it, and in a batch the loss still falls.

What you see:
Training that looks passable and predictions of single samples that are all alike: over one sample, softmax is always 1.

Look-alikes:
Contrastive losses take the softmax of a square matrix of similarities in both directions. Images have their classes in dimension 1.
One sample's own list of scores has no batch dimension.

Fix:
Name the dimension of the classes.

Before:
    attention = torch.softmax(scores, dim=0)
After:
    attention = torch.softmax(scores, dim=1)

Experiment:
Change one sample of a batch in eval mode: only its own output may change.

Source:
Replay of the model's own forward with one sample exchanged; PyTorch documentation of softmax, ``dim``.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.layout import BatchMixing, LeadSizes, ModulePlaces
from traindx.core.observed.ops import Op, OpTrace
from traindx.core.text import Text
from traindx.signals.activations import made_where
from traindx.signals.batch_mixing import certain_batch, shown
from traindx.signals.op_graph import PASSING, OpGraph, dim_of, implicit_dim, plain_name
from traindx.signals.where import pointing

ZH = """softmax 沿着 batch 维计算

是什么：
``softmax`` 或 ``log_softmax`` 沿第 0 维（batch）计算，而不是沿类别或注意力的位置。不写 ``dim`` 时，一维和三维张量会自动取第 0 维。
于是不同样本的同一类分数互相竞争。

为什么不报错：
哪一维都能归一化；除了各维的和，什么也看不出来，而且在 batch 里损失照样下降。

你会看到：
训练看着还行，单独预测一个样本时却都一样：只有一个样本时，softmax 恒为 1。

容易混淆的情况：
对比损失会对相似度方阵的两个方向各做一次 softmax。图像的类别在第 1 维。单个样本自己的一列分数没有 batch 维。

怎么改：
写明类别所在的维度。

改前：
    attention = torch.softmax(scores, dim=0)
改后：
    attention = torch.softmax(scores, dim=1)

对照实验：
在推理模式下只改 batch 里的一个样本：应该只有它自己的输出变化。

来源：
换掉一个样本后重放模型自己的前向；PyTorch softmax 文档中的 ``dim``。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("shape/batch-mixing", "curve/*", "loss/logits-as-probabilities", "loss/initial-loss-off", "record/metric-mistake", "optim/lr-*",
            "loss/double-softmax", "data/labels-misaligned", "mode/*")
EXPERIMENT = "exchange-one-sample"

NAMES = frozenset(("softmax", "log_softmax", "softmin", "logsumexp", "_softmax", "_log_softmax"))
CAUSE = Text("{op} runs over dimension {dim} of {shape}, which holds the samples of the batch{implicit}.",
             "{op} 沿 {shape} 的第 {dim} 维计算，而这一维是 batch 里的样本{implicit}。")
IMPLICIT = Text(" (no dim was given, and for this rank torch takes dimension 0)", "（没有写 dim，维数是这样时，torch 会取第 0 维）")
EXPLICIT = Text("", "")
FIX = Text("Give the dimension that should sum to 1, for classes usually dim=1 or dim=-1.",
           "写明和应当为 1 的那一维：类别一般在 dim=1 或 dim=-1。")
OTHERS = Text("other samples whose output changed with one sample's input", "改动一个样本的输入后，输出跟着变的其他样本数")
SHAPE = Text("shape and dimension of the {op}", "{op} 的形状和维度")


def check(mixings: list[BatchMixing] | None, sizes: list[LeadSizes] | None, traces: list[OpTrace] | None,
          places: list[ModulePlaces] | None) -> Iterator[Finding]:
    for mixing in mixings or []:
        if mixing.mixes and mixing.op in NAMES and mixing.op_dim is not None and certain_batch(mixing, sizes or []):
            yield _of_replay(mixing)
            return
    for trace in traces or []:
        graph = OpGraph(trace)
        for op in trace.ops:
            if op.name in ("softmax", "log_softmax") and picked_by_label(graph, op):
                yield _of_op(graph, op, places or [])
                return


def _of_replay(mixing: BatchMixing) -> Finding:
    implicit = mixing.axis is None and implicit_dim(len(mixing.op_input)) == mixing.op_dim
    where, also = pointing(mixing.made_at if "oftmax" in mixing.module_class else None, mixing.op_site, mixing.site)
    return Finding(
        cause=CAUSE.fill(op=mixing.op, dim=mixing.op_dim, shape=shown(mixing.op_input), implicit=IMPLICIT if implicit else EXPLICIT),
        fix=FIX, where=where, also=also,
        evidence=(Evidence(OTHERS, f"{mixing.others} / {mixing.batch - 1}", "0", step=mixing.step),), first_step=mixing.step)


def picked_by_label(graph: OpGraph, op: Op) -> bool:
    """A softmax over dimension 0 of [samples, classes] whose entries are then picked by a class for each sample."""
    if not op.inputs or len(op.shape) != 2 or dim_of(op, implicit_dim(2)) != 0 or min(op.shape) < 2 or op.shape[0] == op.shape[1]:
        return False
    return any(_picks(user, op) for user in graph.uses(op, lambda user: user.name in PASSING or plain_name(user) in ("log", "neg", "clamp")))


def _picks(user: Op, op: Op) -> bool:
    """Of all samples, or of some of them: ``out[train_mask]`` of the nodes of a graph."""
    given = user.inputs[0].shape
    if len(given) != 2 or given[1] != op.shape[1] or not 2 <= given[0] <= op.shape[0]:
        return False
    if user.name in ("nll_loss", "cross_entropy"):
        return len(user.inputs) > 1 and user.inputs[1].shape[:1] == given[:1]
    gathers = user.name == "gather" and dim_of(user) == 1 and len(user.inputs) > 1 and user.inputs[1].shape == (given[0], 1)
    return gathers or (user.name == "__getitem__" and [i.shape for i in user.inputs[1:]] == [given[:1]] * 2)


def _of_op(graph: OpGraph, op: Op, places: list[ModulePlaces]) -> Finding:
    step = graph.trace.step
    where, also = pointing(made_where(places, graph, op), op.site)
    return Finding(
        cause=CAUSE.fill(op=op.name, dim=0, shape=shown(op.shape), implicit=EXPLICIT), fix=FIX, where=where, also=also,
        evidence=(Evidence(SHAPE.fill(op=op.name), f"{shown(op.shape)}, dim 0", step=step),), first_step=step)
