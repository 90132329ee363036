"""Validation builds graphs for gradients that nobody asks for.

What it is:
Validation forwards run with gradients switched on. Each builds an autograd graph and keeps its activations until the
output is gone, although no backward follows.

Why it is silent:
The numbers are the same with and without a graph.

What you see:
More memory and time for validation than for plain inference; out-of-memory errors that appear only there.

Look-alikes:
Gradients with respect to the input (saliency, adversarial examples, physics losses) need the graph.

Fix:
Wrap the pass in ``torch.no_grad()`` or ``torch.inference_mode()``.

Before:
    model.eval()
    logits = model(x)
After:
    model.eval()
    with torch.inference_mode():
        logits = model(x)

Experiment:
Compare the peak memory of a validation pass with and without ``no_grad``.

Source:
PyTorch notes on autograd mechanics, section "Locally disabling gradient computation".
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.mode import ForwardPass
from traindx.core.text import Text
from traindx.signals.evaluation import EvaluationPasses

ZH = """验证时建立了没人用的计算图

是什么：
验证的前向开着梯度。每次都会建立计算图，并保留激活，直到输出释放，之后却没有反向传播。

为什么不报错：
有没有计算图，算出来的数都一样。

你会看到：
验证占用的内存和时间比单纯推理多；显存不足的错误只在验证时出现。

容易混淆的情况：
对输入求梯度（显著图、对抗样本、物理约束损失）需要计算图。

怎么改：
用 ``torch.no_grad()`` 或 ``torch.inference_mode()`` 包住验证过程。

改前：
    model.eval()
    logits = model(x)
改后：
    model.eval()
    with torch.inference_mode():
        logits = model(x)

对照实验：
比较加与不加 ``no_grad`` 时，一次验证的内存峰值。

来源：
PyTorch 文档「Autograd mechanics」中关于局部关闭梯度的一节。
"""
LEVEL = "note"
STEP = 6

FEWEST = 3  # forwards; a single look costs little
CAUSE = Text("{model} is evaluated here with gradients on: {count} forward{count:|s} built a graph, and no backward followed.",
             "{model} 在这里做评估，却开着梯度：{count} 次前向建了计算图，之后都没有反向传播。")
FIX = Text("Wrap the pass in torch.no_grad() or torch.inference_mode().", "用 torch.no_grad() 或 torch.inference_mode() 包住这次评估。")
FORWARDS = Text("evaluation forwards with a graph", "评估时建了计算图的前向次数")


def check(evaluation: EvaluationPasses) -> Iterator[Finding]:
    for each in evaluation.passes:
        if each.grad and each.idle >= FEWEST and each.optimized:
            yield _finding(each)


def _finding(each: ForwardPass) -> Finding:
    return Finding(
        cause=CAUSE.fill(model=each.class_name, count=str(each.idle)), fix=FIX, where=each.site,
        evidence=(Evidence(FORWARDS, each.idle, "0", step=each.first_step),), first_step=each.first_step)
