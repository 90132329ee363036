"""Forgotten zero_grad: the same net twice, once with the gradients cleared, once with all of them summed up."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import torch
from torch import Tensor

from traindx.core.text import Text, number
from traindx.figures import Axis, Chart, Mark, Series
from traindx.labs.lab import Choice, Lab, Outcome, Slider, State, Table, seed
from traindx.labs.nets import Parameters, copies_of, dice, forward, mlp, normal, squared_error

STEPS, SAMPLES = 80, 32
RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
OPTIMIZERS = ("sgd", "adam")
SETTINGS = tuple(product(RATES, OPTIMIZERS, (False, True)))  # rate, optimizer, forgets
BETAS, EPS = (0.9, 0.999), 1e-8  # Adam's usual ones


@dataclass(frozen=True)
class Run:
    """Per step: the loss before it, the norm of what ``.grad`` holds when the optimizer steps, and that of the true gradient."""

    losses: tuple[float, ...]
    held: tuple[float, ...]
    true: tuple[float, ...]


@cache
def runs(number_of_seed: int) -> dict[tuple[float, str, bool], Run]:
    """Every position of the knobs, with and without zero_grad, side by side from the same weights."""
    chance = dice(number_of_seed)
    inputs = normal(chance, SAMPLES, 4)
    targets = torch.sin(inputs @ normal(chance, 4, 1))
    nets = copies_of(mlp((4, 16, 1), [chance]), len(SETTINGS))
    losses, held, true = train(nets, inputs, targets)
    columns = zip(losses.T.tolist(), held.T.tolist(), true.T.tolist())
    return {setting: Run(tuple(loss), tuple(norm), tuple(own))
            for setting, (loss, norm, own) in zip(SETTINGS, columns)}


def train(nets: Parameters, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Losses, norms of ``.grad`` and norms of the true gradients, each [STEPS, copies]. ``backward`` adds to ``.grad``, as ever."""
    rates, adam, forgets = (torch.tensor(column)[:, None, None] for column in _columns())
    moments: list[tuple[Tensor, Tensor]] = [(torch.zeros_like(net), torch.zeros_like(net)) for net in nets]
    losses, held, true = [], [], []
    for step in range(1, STEPS + 1):
        before = [net.grad.clone() if net.grad is not None else torch.zeros_like(net) for net in nets]
        loss = squared_error(forward(nets, inputs), targets)
        loss.sum().backward()
        gradients = [net.grad for net in nets if net.grad is not None]
        losses.append(loss.detach())
        held.append(_norms(gradients))
        true.append(_norms([gradient - old for gradient, old in zip(gradients, before)]))
        with torch.no_grad():
            for net, gradient, moment in zip(nets, gradients, moments):
                net.sub_(rates * torch.where(adam, _adam(gradient, moment, step), gradient))
                gradient.mul_(forgets)  # zero_grad, for the copies that do not forget it
    return torch.stack(losses), torch.stack(held), torch.stack(true)


def _columns() -> tuple[list[float], list[bool], list[bool]]:
    return ([rate for rate, _, _ in SETTINGS], [name == "adam" for _, name, _ in SETTINGS], [forgets for _, _, forgets in SETTINGS])


def _norms(gradients: list[Tensor]) -> Tensor:
    return torch.stack([gradient.square().sum((1, 2)) for gradient in gradients]).sum(0).sqrt()


def _adam(gradient: Tensor, moment: tuple[Tensor, Tensor], step: int) -> Tensor:
    """Adam's direction; the moments are updated in place."""
    mean, square = moment
    mean.lerp_(gradient, 1 - BETAS[0])
    square.mul_(BETAS[1]).add_((1 - BETAS[1]) * gradient.square())
    return mean / (1 - BETAS[0]**step) / ((square / (1 - BETAS[1]**step)).sqrt() + EPS)


def compute(state: State) -> Outcome:
    rate, name = float(state["rate"]), str(state["optimizer"])
    found = runs(int(state["seed"]))
    kept, lost = found[rate, name, False], found[rate, name, True]
    verdict = Text("After {n} step{n:|s}: loss {kept} with zero_grad, {lost} without. The optimizer was handed a gradient of norm {held}, the "
                   "true one was {true}: {times} times as long (measured).",
                   "{n} 步以后：清零的损失 {kept}，忘了清零的 {lost}。"
                   "优化器拿到的梯度，范数是 {held}；真正的梯度只有 {true}，前者是后者的 {times} 倍（实测）。")
    verdict = verdict.fill(n=STEPS, kept=number(kept.losses[-1]), lost=number(lost.losses[-1]), held=number(lost.held[-1]),
                           true=number(lost.true[-1]), times=number(lost.held[-1] / lost.true[-1]))
    lucky = lost.losses[-1] < kept.losses[-1]
    return Outcome(verdict + LUCKY if lucky else verdict, "warning" if lucky else "error",
                   (_losses(kept, lost), _norms_chart(kept, lost)), (_table(kept, lost),))


LUCKY = Text(" Here the forgotten one even ends lower: the sum of the gradients is momentum, and that helps where the rate is too small.",
             "这里忘了清零的反而更低：梯度之和相当于动量，学习率太小时它会帮上忙。")
SHOWN = range(0, STEPS, 2)
KEPT, LOST = Text("with zero_grad", "每步清零"), Text("zero_grad forgotten", "忘了清零")


def _losses(kept: Run, lost: Run) -> Chart:
    return Chart(Text("Loss", "损失"), Axis(Text("step", "步")), Axis(Text("loss", "损失"), log=True),
                 (Series(KEPT, SHOWN, kept.losses[::2], "good"), Series(LOST, SHOWN, lost.losses[::2], "bad")),
                 (Mark("y", kept.losses[0], Text("start", "起点")),))


def _norms_chart(kept: Run, lost: Run) -> Chart:
    return Chart(Text("Norm of the gradient that the optimizer is handed", "交给优化器的梯度范数"), Axis(Text("step", "步")),
                 Axis(Text("gradient norm", "梯度范数"), log=True),
                 (Series(KEPT, SHOWN, kept.held[::2], "good"), Series(LOST, SHOWN, lost.held[::2], "bad"),
                  Series(Text("forgotten: the true gradient there", "忘了清零：那里真正的梯度"), SHOWN, lost.true[::2], "muted", dashed=True)))


def _table(kept: Run, lost: Run) -> Table:
    rows = tuple((str(step + 1), number(kept.held[step]), number(lost.held[step]), number(lost.true[step])) for step in (0, 1, 2, 9))
    return Table((Text("step", "第几步"), KEPT, LOST, Text("the true gradient there", "那里真正的梯度")), rows,
                 Text("Norms of the gradient. The first step is the same; then .grad holds the sum of all gradients so far.",
                      "梯度范数。第一步一模一样；从第二步起，.grad 里是到目前为止所有梯度的和。"))


LAB = Lab(
    17, "zero_grad", Text("zero_grad() forgotten", "忘了 zero_grad()"),
    about=Text("backward() adds to .grad, it does not overwrite it. Without zero_grad() each step uses the sum of all gradients since the "
               "start. With SGD that is momentum with factor 1, without any friction: the ball swings through the valley and never settles. "
               "Two copies of one net, the same start, the same data.",
               "backward() 是往 .grad 里加，不是覆盖。忘了 zero_grad()，每一步用的就是从头到现在所有梯度的和。"
               "对 SGD 来说，这等于系数为 1 的动量，一点摩擦也没有：小球在谷底来回晃，停不下来。这里是同一个网络的两份，起点和数据都一样。"),
    see=Text("The green loss comes down and stays down. The red one comes down faster at first, and then swings back up.",
             "绿线降下去就不再回来。红线起初降得更快，然后又荡上去。"),
    break_it=Text("Raise the learning rate. Then change SGD for Adam.", "先把学习率调大，再把 SGD 换成 Adam。"),
    then=Text("With SGD the swings grow with the rate; at 0.3 the loss can end above its start, while the copy with zero_grad is still well. "
              "Adam is worse off: it takes steps of full length in the direction of a sum that is out of date, and from a rate of 0.03 on "
              "the loss climbs far above its start.",
              "用 SGD，学习率越大晃得越厉害；到 0.3，损失可能高过起点，而清零的那份还好好的。"
              "Adam 更糟：它照着早已过时的梯度之和，每步都迈足步长，学习率从 0.03 起，损失就远远高过起点。"),
    rules=("optim/missing-zero-grad", "optim/grad-not-reset-for-some", "numeric/gradient-explosion", "curve/oscillating"),
    knobs=(Slider("rate", Text("Learning rate", "学习率"), RATES, 0.01),
           Choice("optimizer", Text("Optimizer", "优化器"), (("sgd", Text("SGD", "SGD")), ("adam", Text("Adam", "Adam"))), "sgd"), seed(3)),
    compute=compute)
