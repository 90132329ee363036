"""Validation runs in train mode.

What it is:
The model is evaluated while dropout still drops and BatchNorm still uses (and learns from) the batch: ``eval()``
was not called, or ``train()`` was called again before the forward.

Why it is silent:
``no_grad`` and ``inference_mode`` only switch off gradients. They leave the modes of the layers alone, and every
shape stays right.

What you see:
A validation score that is worse than it should be and differs when you measure it twice. The best epoch is chosen
by noise, and with BatchNorm the validation data leak into the running statistics.

Look-alikes:
Monte Carlo dropout runs the same input many times on purpose. A GAN samples in train mode. ``update_bn`` runs the
training data to re-estimate statistics and throws the outputs away. A forward inside the training step, such as a
teacher's, is not an evaluation.

Fix:
Call ``model.eval()`` before the pass and ``model.train()`` after it.

Before:
    with torch.no_grad():
        logits = model(x)
After:
    model.eval()
    with torch.no_grad():
        logits = model(x)
    model.train()

Experiment:
Run the same validation batch twice: in eval mode the two outputs are equal.

Source:
PyTorch notes on autograd mechanics, section on evaluation mode ("not a mechanism to locally disable gradient
computation", and the other way round).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.mode import ForwardPass
from traindx.core.text import Text
from traindx.signals.evaluation import EvaluationPasses
from traindx.signals.where import pointing

ZH = """验证时模型还在训练模式

是什么：
评估模型的时候，dropout 仍在随机丢弃，BatchNorm 仍在用（而且还在更新）当前 batch 的统计量：要么没有调用 ``eval()``，
要么在前向之前又调用了 ``train()``。

为什么不报错：
``no_grad`` 和 ``inference_mode`` 只关掉梯度，不改变各层的模式；形状也全都对。

你会看到：
验证分数比应有的差，同一份数据测两次结果不同。最佳轮次是靠噪声选出来的；有 BatchNorm 时，验证数据还会混进滑动统计量。

容易混淆的情况：
蒙特卡洛 dropout 会故意把同一个输入跑很多遍。GAN 采样时用训练模式。``update_bn`` 用训练数据重新估计统计量，
输出直接丢掉。
训练步骤内部的前向（例如教师模型）不算评估。

怎么改：
评估前调用 ``model.eval()``，评估后调用 ``model.train()``。

改前：
    with torch.no_grad():
        logits = model(x)
改后：
    model.eval()
    with torch.no_grad():
        logits = model(x)
    model.train()

对照实验：
把同一个验证 batch 跑两遍：在推理模式下，两次输出应当相同。

来源：
PyTorch 文档「Autograd mechanics」中关于推理模式的一节：它与关闭梯度是两回事。
"""
LEVEL = "error"
STEP = 3
EXPLAINS = ("curve/train-val-gap", "curve/overfitting", "curve/noise-sized-gain", "repro/validation-moves-rng",
            "mode/bn-stats-diverge", "mode/graph-in-validation", "mode/bn-small-batch")
EXPERIMENT = "eval-in-validation"

CAUSE = Text(
    "{model} is evaluated here in train mode: {layers}. {grad}eval() was not in force.",
    "{model} 在这里做评估，却处于训练模式：{layers}。{grad}这时 eval() 没有生效。")
DROPS = Text("dropout drops values at random", "dropout 在随机丢弃")
BATCHES = Text("BatchNorm uses the batch's own statistics and updates the running ones",
               "BatchNorm 用当前 batch 的统计量，还在更新滑动统计量")
BOTH = Text("dropout drops values at random, and BatchNorm uses the batch's own statistics and updates the running ones",
            "dropout 在随机丢弃，BatchNorm 用当前 batch 的统计量，还在更新滑动统计量")
NO_GRAD = Text("Switching off gradients does not switch these layers. ", "关掉梯度并不会切换这些层。")
FIX = Text("Call model.eval() before this pass and model.train() when training goes on.",
           "评估之前调用 model.eval()，继续训练时再调用 model.train()。")
FORWARDS = Text("evaluation forwards with these layers in train mode", "评估时这些层处于训练模式的前向次数")
DROPOUTS = Text("dropouts active in such a forward", "这样一次前向里起作用的 dropout 数")
NORMS = Text("BatchNorms on batch statistics in such a forward", "这样一次前向里使用 batch 统计量的 BatchNorm 数")
NONE = Text("none", "没有")
BECAUSE = Text("no loss without gradient followed these forwards; that they evaluate is told by when they come",
               "这些前向之后，没有算过不带梯度的损失；说它们是评估，依据的是出现的时机")


def check(evaluation: EvaluationPasses) -> Iterator[Finding]:
    for each in evaluation.passes:
        if each.training and (each.dropping or each.batch_stats):
            yield _finding(each)


def _finding(each: ForwardPass) -> Finding:
    layers = BOTH if each.dropping and each.batch_stats else DROPS if each.dropping else BATCHES
    evidence = [Evidence(FORWARDS, each.idle, NONE, step=each.first_step)]
    if each.dropping:
        evidence.append(Evidence(DROPOUTS, each.dropping, NONE))
    if each.batch_stats:
        evidence.append(Evidence(NORMS, each.batch_stats, NONE))
    where, also = pointing(each.asked_at, each.site, each.switched_at)
    sure = not each.grad and each.scored > 0
    return Finding(
        cause=CAUSE.fill(model=each.class_name, layers=layers, grad=NO_GRAD if not each.grad else Text("", "")),
        fix=FIX, where=where, also=also, evidence=tuple(evidence),
        first_step=each.first_step, confidence="certain" if sure else "likely", because=Text("", "") if sure else BECAUSE)
