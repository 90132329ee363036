"""The update climbs: the loss is pushed up.

What it is:
The sign is wrong somewhere: the loss is negated, a minus is missing in front of a log-likelihood, a hand-written update adds the
gradient, or the optimizer was built with ``maximize=True``.

Why it is silent:
Gradient ascent is as good a program as gradient descent. A negated loss even "falls" in the log, without end.

What you see:
A loss that grows from the first step at every learning rate, or a negative one that falls without bound, and accuracy below chance.

Look-alikes:
A GAN's generator, policy gradients, gradient reversal, adversarial examples and bounds that are maximised: there a loss is meant to
rise, or an objective has no fixed sign.

Fix:
Turn the one wrong sign. Loss functions of torch are to be minimised; log-likelihoods are negated; an update subtracts.

Before:
    p.data += lr * p.grad
After:
    p.data -= lr * p.grad

Experiment:
A learning rate a hundred times smaller still makes the loss rise, only more slowly.

Source:
First-order expansion of the loss: a step d changes it by g.d, so that g.d > 0 climbs.
"""
from __future__ import annotations

import statistics
from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.learning import UpdateSeen, Written
from traindx.core.observed.program import BackwardCall, LossCall, OptimizerMade
from traindx.core.text import Text, number
from traindx.signals.learning import Learners
from traindx.signals.sense import negation_site, sense_of_root
from traindx.signals.traces import TrainingTraces

ZH = """更新方向反了：损失在往上推

是什么：
某处符号错了：损失取了负号，对数似然前面少了负号，手写的更新加上了梯度，或者优化器用了 ``maximize=True``。

为什么不报错：
梯度上升和梯度下降一样，都是合法的程序。取了负号的损失在日志里甚至会一直「下降」。

你会看到：
不管学习率多大，损失从第一步起就往上走；或者负的损失无止境地下降，准确率比随机还低。

容易混淆的情况：
GAN 的生成器、策略梯度、梯度反转、对抗样本、要最大化的下界：它们的损失本来就该上升，或者目标没有固定的符号。

怎么改：
把那一个错的符号改过来。torch 的损失函数都要最小化；对数似然要取负；更新要减去梯度。

改前：
    p.data += lr * p.grad
改后：
    p.data -= lr * p.grad

对照实验：
学习率缩小一百倍，损失照样往上走，只是慢一些。

来源：
损失的一阶展开：一步 d 使损失变化 g·d，g·d > 0 就是在爬升。
"""
LEVEL = "error"
STEP = 0
EXPLAINS = ("curve/*", "optim/lr-too-high", "optim/lr-too-low", "numeric/*", "init/*", "optim/clip-always", "loss/unscaled-target",
            "optim/decay-too-strong", "data/*", "loss/initial-loss-off")
EXPERIMENT = "flip-sign"

ENOUGH = 5  # measured updates
AGREE = 0.8  # share of them that must climb
CLEAR = 0.1  # mean cosine: below, noise and momentum could do it

CLIMBS = Text("The updates go along the gradient, not against it (mean cosine {cosine}): the loss is pushed up.",
              "更新顺着梯度走，而不是逆着梯度走（余弦均值 {cosine}）：是在把损失往上推。")
NEGATED = Text("{function} enters the backward with weight {weight}: its negative is minimised, so the loss itself is pushed up.",
               "{function} 进入反向传播时的权重是 {weight}：程序在最小化它的相反数，把损失本身往上推。")
UNSIGNED = Text("What the backward starts from should be maximised (a log-likelihood or a negated error), but it is minimised.",
                "反向传播的起点本该最大化（对数似然，或取了负号的误差），程序却在最小化它。")
FIX_UPDATE = Text("Subtract the gradient in the update (p -= lr * g).", "更新时减去梯度（p -= lr * g）。")
FIX_MAXIMIZE = Text("Remove maximize=True: {function} is to be minimised.", "去掉 maximize=True：{function} 应当最小化。")
FIX_RATE = Text("Keep the learning rate positive.", "学习率必须为正。")
FIX_LOSS = Text("Remove the minus in front of the loss.", "去掉损失前面的负号。")
FIX_SIGN = Text("Minimise the negative log-likelihood, or the error itself.", "应当最小化负对数似然，或误差本身。")
COSINE = Text("cosine of update and gradient, mean of {count} updates", "更新与梯度的余弦，{count} 次更新的均值")
WEIGHT = Text("d(backward root) / d(loss)", "d(反向传播的起点) / d(损失)")
VALUE = Text("the loss, first and last measured", "损失（最早和最近测到的）")
BELOW = Text("below 0", "小于 0")
ABOVE = Text("above 0", "大于 0")
FALLING = Text("falling", "下降")


def check(learners: Learners, updates: list[UpdateSeen], losses: list[LossCall] | None, traces: TrainingTraces | None,
          written: list[Written] | None, backwards: list[BackwardCall] | None) -> Iterator[Finding]:
    """One direction for the whole run: where signs differ between updates or losses the program is a game, and not judged."""
    moved = [update for update in updates if _of_a_model(update, learners)]
    climbing = _direction(moved)
    signs = _loss_signs(losses or [])
    adversarial = len(learners.stepped()) > 1 or any(call.create_graph and not call.accumulate for call in backwards or [])
    if climbing is None or adversarial or len(signs) > 1:
        return
    if signs:
        if signs == {climbing}:
            yield _of_known_loss(climbing, moved, losses or [], learners, traces, written or [])
    elif not losses and traces is not None and _sense(traces) == climbing:
        yield _of_written_loss(climbing, moved, learners, traces, written or [])


def _of_a_model(update: UpdateSeen, learners: Learners) -> bool:
    """Not an input that is being optimised: an adversarial example, a style image, a prompt."""
    leaves = [learners.leaves[id] for id in update.moved if id in learners.leaves]
    modules = any(leaf.ran for leaf in learners.leaves.values())
    return bool(leaves) and not any(leaf.is_input for leaf in leaves) and (not modules or any(leaf.is_parameter for leaf in leaves))


def _direction(updates: list[UpdateSeen]) -> int | None:
    """+1: the updates climb what backward was called on; -1: they descend; None: neither for sure."""
    cosines = [update.cosine for update in updates]
    if len(cosines) < ENOUGH or abs(statistics.fmean(cosines)) < CLEAR:
        return None
    sign = 1 if statistics.fmean(cosines) > 0 else -1
    return sign if sum(c * sign > 0 for c in cosines) >= AGREE * len(cosines) else None


def _loss_signs(losses: list[LossCall]) -> set[int]:
    """The signs with which torch losses enter the root: +1 means that climbing the root raises the loss."""
    weights = [call.weight_in_root for call in losses if call.grad and call.weight_in_root]
    return {1 if weight > 0 else -1 for weight in weights}


def _sense(traces: TrainingTraces) -> int:
    senses = {sense_of_root(trace) for trace in traces.traces}
    return senses.pop() if len(senses) == 1 else 0


def _of_known_loss(climbing: int, moved: list[UpdateSeen], losses: list[LossCall], learners: Learners,
                   traces: TrainingTraces | None, written: list[Written]) -> Finding:
    weighed = [call for call in losses if call.grad and call.weight_in_root]
    first, last = weighed[0], weighed[-1]
    value = Evidence(VALUE, f"{number(first.value or 0.0)} -> {number(last.value or 0.0)}", FALLING, step=last.step)
    if climbing > 0:
        return _climbing(moved, first.function, learners, traces, written, value)
    where = next((site for trace in (traces.traces if traces else []) if (site := negation_site(trace)) is not None), None)
    weight = number(first.weight_in_root or 0.0)
    return Finding(
        cause=NEGATED.fill(function=first.function, weight=weight), fix=FIX_LOSS, where=where or first.site,
        also=tuple(site for site in (first.site, moved[0].site) if site),
        evidence=(Evidence(WEIGHT, weight, ABOVE, step=first.step), value), first_step=first.step)


def _climbing(moved: list[UpdateSeen], function: str, learners: Learners, traces: TrainingTraces | None, written: list[Written],
              *more: Evidence) -> Finding:
    cosine = number(statistics.fmean(update.cosine for update in moved))
    made, fix, sites = _who_updates(learners, traces, written, function)
    where = sites[0] if sites else made.site if made else moved[0].site
    others = (*sites[1:], made.site if made else None, moved[0].site)
    return Finding(
        cause=CLIMBS.fill(cosine=cosine), fix=fix, where=where, also=tuple(site for site in others if site is not None and site != where),
        evidence=(Evidence(COSINE.fill(count=len(moved)), cosine, BELOW, step=moved[0].step), *more), first_step=moved[0].step)


def _who_updates(learners: Learners, traces: TrainingTraces | None, written: list[Written],
                 function: str) -> tuple[OptimizerMade | None, Text, list[Site]]:
    made = next(iter(learners.stepped()), None)
    if made is None:
        return None, FIX_UPDATE, traces.update_sites() if traces else []
    if any(settings.get("maximize") == "True" for settings in made.settings):
        return made, FIX_MAXIMIZE.fill(function=function), []
    if learners.rates[made.id].lowest < 0:
        return made, FIX_RATE, []
    return made, FIX_UPDATE, [each.site for each in written]


def _of_written_loss(climbing: int, moved: list[UpdateSeen], learners: Learners, traces: TrainingTraces, written: list[Written]) -> Finding:
    if climbing > 0:
        return _climbing(moved, "the loss", learners, traces, written)
    trace = traces.traces[0]
    where = negation_site(trace) or trace.ops[trace.root].site
    cosine = number(statistics.fmean(update.cosine for update in moved))
    return Finding(
        cause=UNSIGNED, fix=FIX_SIGN, where=where, also=tuple(site for site in (trace.ops[trace.root].site, moved[0].site) if site),
        evidence=(Evidence(COSINE.fill(count=len(moved)), cosine, ABOVE, step=moved[0].step),), first_step=moved[0].step)
