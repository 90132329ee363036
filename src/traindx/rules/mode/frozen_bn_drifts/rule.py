"""A frozen backbone's BatchNorm statistics drift.

What it is:
The weights of a part of the net are frozen, but it runs in train mode, so its BatchNorms go on adapting their running
mean and variance to every batch. ``requires_grad = False`` does not stop that: statistics are buffers, not parameters.

Why it is silent:
No weight changes, so the part looks frozen. The statistics are updated inside forward.

What you see:
Features that change although nothing trains them; a validation score that falls behind training, and a saved backbone
that is no longer the pretrained one.

Look-alikes:
Re-estimating statistics on new data on purpose (AdaBN) trains nothing meanwhile. The key encoder of MoCo follows its
twin, so its weights do change.

Fix:
Put the frozen part in eval mode after every ``train()``.

Before:
    model.train()
After:
    model.train()
    model.backbone.eval()

Experiment:
Compare the backbone's running_mean before and after an epoch: in eval mode it stays the same.

Source:
PyTorch documentation of BatchNorm2d (running estimates are kept during training); Keras guide "Transfer learning and
fine-tuning" on BatchNormalization in a frozen model.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.mode import FrozenNorms
from traindx.core.text import Text, number

ZH = """冻结的主干网络里，BatchNorm 统计量在漂移

是什么：
网络有一部分权重冻结了，但它处于训练模式，里面的 BatchNorm 每个 batch 都在更新滑动均值和方差。
``requires_grad = False`` 管不到它们：统计量是 buffer，不是参数。

为什么不报错：
权重一个都没变，看起来确实冻结了；统计量是在前向里悄悄更新的。

你会看到：
没有人训练的特征却在变；验证分数落后于训练；存下来的主干已经不是预训练的那个。

容易混淆的情况：
故意在新数据上重新估计统计量（AdaBN）时，并不同时训练别的部分。MoCo 的动量编码器跟着另一个网络走，权重会变。

怎么改：
每次 ``train()`` 之后，把冻结的部分切到推理模式。

改前：
    model.train()
改后：
    model.train()
    model.backbone.eval()

对照实验：
比较一轮训练前后主干的 running_mean：在推理模式下它应当不变。

来源：
PyTorch 文档 BatchNorm2d（训练时持续估计）；Keras 迁移学习指南中关于冻结模型里 BatchNormalization 的说明。
"""
LEVEL = "warning"
STEP = 3
EXPLAINS = ("curve/train-val-gap", "mode/bn-stats-diverge")

LOOKS = 4
DRIFT = 0.1  # standard deviations; rule of thumb: the noise of small batches stays below
CAUSE = Text(
    "{count} BatchNorm{count:|s} of {model} ({names}) {count:is|are} frozen, but {count:runs|run} in train mode: the running means moved "
    "by {moved} std.",
    "{model} 里有 {count} 个 BatchNorm（{names}）已经冻结，却处于训练模式：滑动均值移动了 {moved} 个标准差。")
FIX = Text("Call eval() on the frozen part after every train().", "每次 train() 之后，对冻结的部分调用 eval()。")
MOVED = Text("median change of the running means since the first look, in standard deviations",
             "从第一次查看以来，滑动均值变化的中位数（以标准差计）")
FROZEN = Text("frozen parameter tensors around them, all unchanged", "它们周围冻结的参数张量数（全都没有变）")


def check(norms: list[FrozenNorms] | None) -> Iterator[Finding]:
    for each in norms or []:
        if each.looks >= LOOKS and each.moved >= DRIFT:
            yield _finding(each)


def _finding(each: FrozenNorms) -> Finding:
    places = [site for site in (each.switched_at, each.site, each.made_at) if site]
    return Finding(
        cause=CAUSE.fill(count=str(each.count), model=each.class_name, names=", ".join(each.names), moved=number(each.moved)),
        fix=FIX, where=places[0] if places else None, also=tuple(places[1:]),
        evidence=(Evidence(MOVED, each.moved, "0", step=each.step), Evidence(FROZEN, each.frozen_weights)),
        first_step=each.step)
