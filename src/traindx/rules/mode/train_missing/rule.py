"""Training goes on in eval mode.

What it is:
A validation pass called ``eval()`` and nothing called ``train()`` afterwards. From then on the model is trained
without dropout, and with BatchNorm frozen on its running statistics.

Why it is silent:
Gradients flow in eval mode as well, and the training loss even gets smaller once dropout is off.

What you see:
A kink in the training loss right after the first validation, then a net that overfits as if it had no dropout. With
BatchNorm, running statistics that stopped moving while the weights went on.

Look-alikes:
Fine-tuning with only the BatchNorm layers in eval mode is a known recipe. Adversarial examples are made in eval
mode within a step that then trains in train mode. A model without dropout and BatchNorm does not care.

Fix:
Call ``model.train()`` at the start of every training epoch, or at the end of the function that evaluates.

Before:
    def evaluate(model):
        model.eval()
        ...
After:
    def evaluate(model):
        model.eval()
        ...
        model.train()

Experiment:
Add ``model.train()`` after the validation: the training loss no longer drops at that step.

Source:
PyTorch documentation of Module.train and Module.eval.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.mode import ForwardPass, Stretch, TrainedInMode
from traindx.core.observed.program import Window
from traindx.core.text import Text, number

ZH = """训练在推理模式下继续

是什么：
验证时调用了 ``eval()``，之后没有再调用 ``train()``。从那以后，模型训练时 dropout 不起作用，
BatchNorm 也固定在滑动统计量上。

为什么不报错：
推理模式下梯度照样能算；dropout 关掉以后，训练损失甚至会变小。

你会看到：
第一次验证之后训练损失突然拐弯，随后模型像没有 dropout 一样过拟合。有 BatchNorm 时，权重在变，滑动统计量却停住了。

容易混淆的情况：
微调时只让 BatchNorm 处于推理模式，是常用做法。对抗样本在推理模式下生成，同一步里再用训练模式训练。
没有 dropout 和 BatchNorm 的模型不受影响。

怎么改：
每轮训练开始时调用 ``model.train()``，或者在评估函数的末尾调用。

改前：
    def evaluate(model):
        model.eval()
        ...
改后：
    def evaluate(model):
        model.eval()
        ...
        model.train()

对照实验：
在验证之后加上 ``model.train()``：训练损失不再在那一步突然下降。

来源：
PyTorch 文档 Module.train 与 Module.eval。
"""
LEVEL = "error"
STEP = 3
EXPLAINS = ("curve/*", "mode/bn-stats-diverge")

SHARE = 0.25  # rule of thumb: of the steps after the first switch; recipes that switch for a moment stay below
STEPS = 4  # fewer steps in eval mode prove nothing
CAUSE = Text(
    "{model} was set to eval mode here and then trained for {steps} step{steps:|s} in that mode: {layers}.",
    "{model} 在这里切到了推理模式，之后就在推理模式下训练了 {steps} 步：{layers}。")
DROP = Text("dropout no longer acts", "dropout 不再起作用")
NORM = Text("BatchNorm no longer follows its batches", "BatchNorm 不再跟随 batch")
BOTH = Text("dropout no longer acts and BatchNorm no longer follows its batches", "dropout 不再起作用，BatchNorm 也不再跟随 batch")
FIX = Text("Call model.train() before training goes on: at the top of the training loop, or at the end of the evaluation.",
           "继续训练之前调用 model.train()：放在训练循环开头，或评估函数末尾。")
IN_EVAL = Text("training steps in eval mode", "在推理模式下的训练步数")
IN_TRAIN = Text("training steps in train mode since the first of them", "从那时起，在训练模式下的训练步数")
ALL = Text("all steps", "全部训练步")
BECAUSE = Text("the model was in eval mode from the first step on: a function that evaluates had run before it",
               "从第一步起，模型就处于推理模式：在那之前跑过一个做评估的函数")


def check(trained: list[TrainedInMode], passes: list[ForwardPass] | None, windows: list[Window] | None) -> Iterator[Finding]:
    for each in trained:
        first = next((i for i, stretch in enumerate(each.stretches) if stretch.mode == "eval"), None)
        if first is None:
            continue
        in_eval, in_train = _steps(each.stretches[first:])
        if in_eval < STEPS or in_eval < SHARE * (in_eval + in_train):
            continue
        if first > 0:
            yield _finding(each, each.stretches[first], in_eval, in_train)
        elif in_train == 0 and _left_by_an_evaluation(each, passes or [], windows or []):
            yield _finding(each, each.stretches[0], in_eval, in_train)


def _steps(stretches: tuple[Stretch, ...]) -> tuple[int, int]:
    return tuple(sum(s.steps for s in stretches if s.mode == mode) for mode in ("eval", "train"))  # type: ignore[return-value]


def _left_by_an_evaluation(each: TrainedInMode, passes: list[ForwardPass], windows: list[Window]) -> bool:
    """Eval mode from the start is a choice, unless it is what a function left behind that evaluates before the training."""
    start = each.stretches[0]
    if start.switched_at is None or start.site is None or any(e.what == "train" for w in windows for e in w.events):
        return False
    function = start.switched_at.function
    return function != start.site.function and any(
        p.model == each.model and p.idle and not p.training and p.first_step <= 1
        and p.site is not None and p.site.function == function for p in passes)


def _finding(each: TrainedInMode, stretch: Stretch, in_eval: int, in_train: int) -> Finding:
    layers = BOTH if each.dropout and each.batchnorm else DROP if each.dropout else NORM
    from_start = stretch is each.stretches[0]
    return Finding(
        cause=CAUSE.fill(model=each.class_name, steps=number(in_eval), layers=layers), fix=FIX,
        where=stretch.switched_at or stretch.site, also=(stretch.site,) if stretch.switched_at and stretch.site else (),
        evidence=(Evidence(IN_EVAL, in_eval, "0", step=stretch.first_step), Evidence(IN_TRAIN, in_train, ALL)),
        first_step=stretch.first_step, confidence="likely" if from_start else "certain",
        because=BECAUSE if from_start else Text("", ""))
