"""The experiment of each finding: what is changed, and what is predicted before it is run."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from traindx.core.text import Text
from traindx.core.trials import Condition, Gauge, Step, Trace
from traindx.experiments.statistics import CEILING, LAST, Direction, level

FLOOR = math.log(1e-12)  # of a movement or a norm that is zero
SHORTEST = 12  # steps without which a run says nothing


@dataclass(frozen=True)
class Statistic:
    """One number of a trace, up to a horizon in steps; None where the trace does not have it."""

    name: Text
    of: Callable[[Trace, int], float | None]
    of_loss: bool = False  # then :data:`LINEAR` stands in where losses are not positive


def _late_level(trace: Trace, horizon: int) -> float | None:
    return level(trace.losses, horizon)


def _late_maximum(trace: Trace, horizon: int) -> float | None:
    losses = trace.losses[:horizon]
    tops = [level([value], 1) for value in losses[len(losses) // 2:]]
    known = [top for top in tops if top is not None]
    return max(known) if len(known) == len(tops) and known else None


def _fall(trace: Trace, horizon: int) -> float | None:
    """Late level against the first step's: for changes that put the loss into other units."""
    start, end = level(trace.losses, 1), level(trace.losses, horizon)
    return None if start is None or end is None else end - start


def _late(quantity: Callable[[Step], float | None]) -> Callable[[Trace, int], float | None]:
    def of(trace: Trace, horizon: int) -> float | None:
        values = [value for step in trace.steps[:horizon] if (value := quantity(step)) is not None][-LAST:]
        return mean(map(_log, values)) if values else None
    return of


def _log(value: float) -> float:
    if not math.isfinite(value):
        return CEILING
    return max(FLOOR, math.log(value)) if value > 0 else FLOOR


def _validation(trace: Trace, horizon: int) -> float | None:
    seen = [loss for step, loss in trace.validation if step <= horizon]
    return level(seen[-1:]) if seen else None


def _negative(trace: Trace, horizon: int) -> float | None:
    losses = trace.losses[:horizon]
    return sum(value < 0 for value in losses) / len(losses) if losses else None


LOSS = Statistic(Text("late level of the training loss (natural log)", "后期训练损失的水平（自然对数）"), _late_level, True)
PEAK = Statistic(Text("highest training loss in the second half (natural log)", "后半程训练损失的最高点（自然对数）"), _late_maximum)
FALL = Statistic(Text("late training loss against its start (natural log of the ratio)", "后期训练损失与起点之比（自然对数）"), _fall, True)
GRADIENT = Statistic(Text("late gradient norm (natural log)", "后期梯度范数（自然对数）"), _late(lambda step: step.grad_norm))
MOVEMENT = Statistic(Text("how far a step moves the parameters (natural log)", "每步参数移动的距离（自然对数）"), _late(lambda step: step.moved))
VALIDATION = Statistic(Text("last validation loss (natural log)", "最后一次验证损失（自然对数）"), _validation)


LINEAR_NAME = Text("late level of the training loss (as a share of its range)", "后期训练损失的水平（占其变化范围的比例）")


def linear(traces: Sequence[Trace], horizon: int) -> list[float]:
    """Mean loss of the last steps, in units of the range that the loss covers in all these runs: for losses that may be
    negative. Empty where one is not finite."""
    losses = [trace.losses[:horizon] for trace in traces]
    everything = [value for run in losses for value in run]
    if not everything or not all(map(math.isfinite, everything)) or max(everything) == min(everything):
        return []
    return [mean(run[-LAST:]) / (max(everything) - min(everything)) for run in losses]


NEGATIVE = Statistic(Text("share of steps with a loss below 0, which no likelihood of classes can have",
                          "损失低于 0 的步数比例（类别的似然不可能这样）"), _negative)


@dataclass(frozen=True)
class Plan:
    """Runs as written against runs with ``change``; ``direction`` is where the change should move the statistic.

    ``refutes``: a true finding would have to show this effect, so that its absence withdraws the finding.
    """

    title: Text
    change: tuple[Condition, ...]
    statistic: Statistic = LOSS
    direction: Direction = "lower"
    horizons: tuple[int, ...] = (50, 150)
    refutes: bool = False
    same: bool = False  # what is predicted is no difference at all, where a sound program shows one in ``direction``


@dataclass(frozen=True)
class Measurement:
    """One gauge that decides by itself. ``shows`` reads its value: True, False, or None where it cannot tell."""

    title: Text
    gauge: Gauge
    shows: Callable[[Any], bool | None]
    steps: int = 3
    change: tuple[Condition, ...] = field(default_factory=tuple)


def _depends(value: Any) -> bool | None:
    return value.get("mixes")


def _differs(value: Any) -> bool | None:
    return not value["equal"] if "equal" in value else None


def _off(value: Any) -> bool | None:
    """Whether the first loss is far from theory, whatever the seed (the rule's own bounds)."""
    start, theory = value.get("value"), value.get("chance")
    return None if not start or not theory else not 0.5 <= start / theory <= 1.5


def _scale(k: float) -> tuple[Condition, ...]:
    return (Condition("scale_lr", {"k": k}),)


TITLE_LR = Text("learning rate x {k}", "学习率 × {k}")
_TENTH, _TENFOLD = TITLE_LR.fill(k=0.1), TITLE_LR.fill(k=10)
_BF16 = Text("bf16 instead of fp16", "用 bf16 代替 fp16")
_FP32 = Text("everything in fp32", "全部用 fp32")
_ONE_SAMPLE = Text("change one sample in eval mode, look at the outputs of the others", "推理模式下只改一个样本，看其他样本的输出变不变")
_TWICE = Text("the same input twice", "同一个输入连跑两次")
_CLEARED = Text("gradients cleared before each first backward", "每步第一次反向传播之前清空梯度")
_KEPT = Text("gradients kept until the step has used them", "梯度留到更新用过之后再清空")
_ALL_PARAMETERS = Text("the forgotten parameters given to the optimizer", "把漏掉的参数交给优化器")
_INIT = Text("weights drawn anew by He's scheme", "按 He 的公式重新抽取权重")

PLANS: dict[str, Plan | Measurement] = {
    "lr-x0.1": Plan(_TENTH, _scale(0.1), refutes=True),
    "lr-tenth": Plan(_TENTH, _scale(0.1), refutes=True),
    "lr-x10": Plan(_TENFOLD, _scale(10), FALL, horizons=(150, 600), refutes=True),
    "lr-set": Plan(Text("a constant learning rate of 1e-3", "固定学习率 1e-3"), (Condition("fix_lr", {"lr": 1e-3}),)),
    "divide-lr": Plan(Text("accumulated gradients averaged", "累积的梯度取平均"), (Condition("average_accumulation"),)),
    "decay-0": Plan(Text("weight decay 0", "权重衰减设为 0"), (Condition("no_weight_decay"),), refutes=True),
    "clear-gradients": Plan(_CLEARED, (Condition("force_zero_grad"),), GRADIENT),
    "keep-gradients": Plan(_KEPT, (Condition("ignore_zero_grad_before_step"),), MOVEMENT, "higher"),
    "step-after-backward": Plan(Text("an optimizer step after each backward", "每次反向传播之后补一次优化器更新"),
                                (Condition("step_after_backward"),), MOVEMENT, "higher"),
    "all-parameters": Plan(_ALL_PARAMETERS, (Condition("include_missing_parameters"),)),
    "clip-before-step": Plan(Text("gradients clipped before the step", "在更新之前裁剪梯度"), (Condition("clip_before_step"),), PEAK),
    "unscale-before-clip": Plan(Text("gradients unscaled before they are clipped", "裁剪之前先还原缩放"),
                                (Condition("unscale_before_clip"),)),
    "clip-gradients": Plan(Text("gradient norm clipped at 1", "梯度范数裁剪到 1"), (Condition("clip", {"norm": 1.0}),), PEAK),
    "no-scheduler": Plan(Text("scheduler off: the first learning rate kept", "停用调度器：一直用初始学习率"), (Condition("scheduler_off"),)),
    "logits-instead": Plan(Text("log(p), or logit(p), given to the loss instead of the probabilities p",
                                "把送进损失的概率 p 换成 log(p) 或 logit(p)"), (Condition("logits_instead_of_probabilities"),)),
    "log-softmax-first": Plan(Text("log_softmax taken before nll_loss", "在 nll_loss 之前先做 log_softmax"), (Condition("log_softmax_first"),),
                              NEGATIVE),
    "build-once": Plan(Text("the optimizer's state carried over when it is built anew", "重建优化器时沿用原来的状态"),
                       (Condition("keep_optimizer_state"),)),
    "squeeze-operand": Plan(Text("the target given the prediction's shape", "把目标变成和预测一样的形状"), (Condition("squeeze_operand"),)),
    "exchange-one-sample": Measurement(_ONE_SAMPLE, Gauge("batch_dependence"), _depends),
    "swap-time-and-batch": Measurement(_ONE_SAMPLE, Gauge("batch_dependence"), _depends),
    "same-input-twice": Measurement(_TWICE, Gauge("eval_twice"), _differs),
    "eval-in-validation": Plan(Text("eval mode forced in validation passes", "验证时强制用推理模式"),
                               (Condition("force_mode", {"to": "eval"}),), VALIDATION, horizons=(150, 600)),
    "other-seeds": Measurement(Text("the first loss at other seeds", "换种子看第一步的损失"), Gauge("initial_loss"), _off, steps=1),
    "replay-finite": Measurement(Text("the step replayed from the last good state", "从最后一个正常的状态重放这一步"),
                                 Gauge("nonfinite"), lambda value: value.get("found"), steps=2000),
    "zero-input": Plan(Text("all inputs zero", "输入全部置零"), (Condition("zero_inputs"),), LOSS, "higher", (150,), True, True),
    "shuffle": Plan(Text("training data shuffled", "打乱训练数据"), (Condition("shuffle"),), PEAK, horizons=(150, 300)),
    "finite-inputs": Plan(Text("0 in place of what is not finite in the inputs", "把输入里的 NaN 和无穷大换成 0"),
                          (Condition("finite_inputs"),), PEAK),
    "standardise": Plan(Text("inputs standardised by the first batch", "按第一个 batch 把输入标准化"), (Condition("normalise_inputs"),)),
    "standardise-target": Plan(Text("targets standardised by the first batch", "按第一个 batch 把目标标准化"),
                               (Condition("standardise_target"),), FALL),
    "bf16": Plan(_BF16, (Condition("precision", {"to": "bf16"}),)),
    "fp32": Plan(_FP32, (Condition("precision", {"to": "fp32"}),)),
    "flip-sign": Plan(Text("the sign of the objective turned", "把目标函数的符号反过来"), (Condition("flip_loss_sign"),)),
    "random-init": Plan(_INIT, (Condition("reinit", {"scheme": "he"}),)),
    "he-init": Plan(_INIT, (Condition("reinit", {"scheme": "he"}),)),
    "smaller-weights": Plan(_INIT, (Condition("reinit", {"scheme": "he"}),)),
    "leaky-relu": Plan(Text("LeakyReLU instead of ReLU", "用 LeakyReLU 代替 ReLU"), (Condition("leaky_relu"),)),
}


def names() -> Sequence[str]:
    return tuple(PLANS)
