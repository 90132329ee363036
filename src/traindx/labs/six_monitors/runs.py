"""The run that can be broken, and what the six monitors record of it."""
from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from traindx.core.text import Text
from traindx.labs.nets import Parameters, dice, mlp, normal

WIDTHS = (8, 24, 24, 24, 1)
LAYERS = len(WIDTHS) - 1
STEPS, BATCH, HELD = 60, 32, 128
BAD, BAD_SCALE = 30, 300.0  # the step of the bad batch, and what its inputs are multiplied by
HE = 2**0.5
Curves = dict[str, list[list[float]]]  # by the monitor's name; one line, or one for each layer


@dataclass(frozen=True)
class Fault:
    """How a run differs from the sound one, and what its monitors say."""

    name: Text
    meaning: Text = Text("", "")
    rate: float = 0.1
    gain: float = HE
    bias: float = 0.0
    tanh: bool = False
    forgets: bool = False  # zero_grad
    bad_batch: bool = False  # at step BAD the inputs are BAD_SCALE times too large
    samples: int = 256
    flipped: float = 0.0  # share of training labels that are wrong


FAULTS = {
    "none": Fault(Text("nothing: a sound run", "没有：健康的训练")),
    "rate_high": Fault(Text("learning rate too large", "学习率太大"),
                       Text("The update ratio is far above its band from the first step on: the rate.",
                            "参数更新比例从第一步起就远高于正常范围：学习率太大。"),
                       rate=10.0),
    "rate_low": Fault(Text("learning rate too small", "学习率太小"),
                      Text("Gradients and activations are sound, only the steps are too short: the rate.",
                           "梯度和激活都正常，只是步子太短：学习率太小。"),
                      rate=1e-5),
    "dead": Fault(Text("dead ReLU at the start", "初始化后 ReLU 全死"),
                  Text("Hidden activations lie at 0, so only the last bias gets a gradient: dead units.",
                       "隐藏层的激活停在 0，只剩最后一个偏置还有梯度：神经元死亡。"), bias=-4.0),
    "vanishing": Fault(Text("tanh with weights too small", "tanh 配太小的权重"),
                       Text("The activations shrink by the same factor from layer to layer, and nothing is learnt: vanishing signals.",
                            "激活一层比一层小，每层缩小的倍数差不多，什么也没学到：信号消失了。"), gain=0.1, tanh=True),
    "exploding": Fault(Text("weights too large at the start", "初始权重太大"),
                       Text("The activations grow from layer to layer, before anything is learnt: the initialisation.",
                            "还没学到东西，激活就一层比一层大：初始化尺度太大。"), gain=6.0),
    "zero_grad": Fault(Text("zero_grad() forgotten", "忘了 zero_grad()"),
                       Text("The update ratio is too high, the weights keep growing, and the losses swing: sums of old gradients.",
                            "参数更新比例太高，权重一直在涨，损失来回晃：加进来的是旧梯度。"), forgets=True),
    "bad_batch": Fault(Text("one bad batch", "一个坏 batch"),
                       Text("One spike at step 30, in the gradient norm too, and all was sound before it: look at that batch.",
                            "第 30 步冒出一个尖峰，梯度范数也是，之前全都正常：去看那个 batch。"), bad_batch=True),
    "overfit": Fault(Text("overfitting", "过拟合"),
                     Text("The training loss falls, the validation loss turns and rises: learnt by heart.",
                          "训练损失在降，验证损失掉头往上：在死记硬背。"),
                     samples=32, flipped=0.25)}


def watch(name: str, number_of_seed: int) -> Curves:
    """Trains the net with one fault; every monitor at every step."""
    fault, chance = FAULTS[name], dice(number_of_seed)
    inputs, labels = _data(fault, chance)
    net = mlp(WIDTHS, [chance], fault.gain)
    for bias in net[1:-1:2]:
        bias.detach().add_(fault.bias)
    curves: Curves = {"train_loss": [[]], "val_loss": [[]], "grad_norm": [[]], "activation_std": [[] for _ in range(LAYERS)],
                      "update_ratio": [[]], "weight_norm": [[] for _ in range(LAYERS)]}
    for step in range(STEPS):
        _step(net, fault, step, inputs, labels, curves)
    return curves


def _data(fault: Fault, chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """Inputs [samples + HELD, 8], labels ±1; the last HELD are for validation, and their labels are all right."""
    inputs = normal(chance, fault.samples + HELD, WIDTHS[0])
    labels = (inputs @ normal(chance, WIDTHS[0], 1) + inputs[:, :1] * inputs[:, 1:2]).sign()
    wrong = torch.rand(fault.samples, 1, generator=chance, dtype=torch.float64) < fault.flipped
    labels[:fault.samples] *= 1 - 2 * wrong
    return inputs, labels


def _step(net: Parameters, fault: Fault, step: int, inputs: Tensor, labels: Tensor, curves: Curves) -> None:
    first = step * BATCH % fault.samples
    batch = inputs[first:first + BATCH] * (BAD_SCALE if fault.bad_batch and step == BAD else 1.0)
    outputs = _layers(net, batch, fault.tanh)
    loss = softplus(-labels[first:first + BATCH] * outputs[-1]).mean()
    loss.backward()
    before = [parameter.detach().clone() for parameter in net]
    gradients = [parameter.grad for parameter in net if parameter.grad is not None]
    with torch.no_grad():
        for parameter, gradient in zip(net, gradients):
            parameter.sub_(fault.rate * gradient)
        held = softplus(-labels[fault.samples:] * _layers(net, inputs[fault.samples:], fault.tanh)[-1]).mean()
        moved = [parameter - old for parameter, old in zip(net, before)]
    curves["train_loss"][0].append(loss.item())
    curves["val_loss"][0].append(held.item())
    curves["grad_norm"][0].append(_norm(gradients))
    curves["update_ratio"][0].append(_norm(moved) / _norm(before))
    for layer in range(LAYERS):
        curves["activation_std"][layer].append(outputs[layer].detach().std(1).mean().item())
        curves["weight_norm"][layer].append(net[2 * layer].detach().norm().item())
    if not fault.forgets:
        for parameter in net:
            parameter.grad = None


def _layers(net: Parameters, batch: Tensor, tanh: bool) -> list[Tensor]:
    """The output of every layer, [1, batch, width] each; the last is linear."""
    outputs, hidden = [], batch[None]
    for layer in range(LAYERS):
        hidden = torch.baddbmm(net[2 * layer + 1], hidden, net[2 * layer])
        if layer < LAYERS - 1:
            hidden = hidden.tanh() if tanh else hidden.relu()
        outputs.append(hidden)
    return outputs


def _norm(tensors: list[Tensor]) -> float:
    """Of all of them together, as of one long vector."""
    return torch.stack([tensor.detach().square().sum() for tensor in tensors]).sum().sqrt().item()
