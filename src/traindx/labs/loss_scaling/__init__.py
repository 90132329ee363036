"""Loss scaling: small gradients that fp16 turns into zero are saved by a factor, large ones are lost to it."""
from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from traindx.core.text import Text, number, same
from traindx.figures import Axis, Chart, Mark, Series
from traindx.labs.lab import Lab, Level, Outcome, Slider, State, Table, grid

SMALLEST = 1e-10
SCALES = tuple(float(2**k) for k in range(25))
LARGEST = (1e-4, 1e-2, 1.0)
COUNT, SHOWN = 601, 61  # gradients that are counted, and of those drawn
MANY = 0.1  # more than this share flushed to zero is a fault (rule of thumb)


@cache
def gradients(largest: float, count: int) -> Tensor:
    """Magnitudes from 1e-10 to ``largest``, as many in each decade; fp32, as a backward pass would make them."""
    return torch.tensor(grid(SMALLEST, largest, count, log=True), dtype=torch.float32)


def through_half(values: Tensor, scale: float) -> Tensor:
    """Scaled, rounded to fp16, scaled back: what the optimizer gets [n], fp64."""
    return (values * scale).to(torch.float16).to(torch.float64) / scale


@cache
def shares(largest: float, scale: float) -> tuple[float, float]:
    """Of the gradients that become 0, and of those that become infinite."""
    back = through_half(gradients(largest, COUNT), scale)
    return (back == 0).double().mean().item(), back.isinf().double().mean().item()


@cache
def smallest_of(kind: torch.dtype) -> float:
    """The smallest positive number of a format, found by halving 1 until the next half is 0."""
    value = torch.ones((), dtype=torch.float64)
    while (value / 2).to(kind) > 0:
        value = value / 2
    return value.item()


def compute(state: State) -> Outcome:
    scale, largest = float(state["scale"]), float(state["largest"])
    zero, infinite = shares(largest, scale)
    level: Level = "error" if infinite or zero > MANY else "fine" if not zero else "warning"
    verdict = Text("Loss × {scale}: {zero} % of the gradients become 0, {infinite} % become inf (measured). "
                   "What is below {low} is lost (formula). ",
                   "损失 × {scale}：{zero} % 的梯度变成 0，{infinite} % 变成 inf（实测）。小于 {low} 的梯度都会丢（公式）。")
    verdict = verdict.fill(scale=number(scale), zero=number(100 * zero, 2), infinite=number(100 * infinite, 2),
                           low=number(smallest_of(torch.float16) / 2 / scale))
    advice = TOO_LARGE if infinite else TOO_SMALL if zero > MANY else ALRIGHT
    return Outcome(verdict + advice, level, (_lost(scale, largest), _kept(scale, largest)), (_formats(),))


TOO_LARGE = Text("The scale is too large: one inf spoils the whole step. GradScaler would skip it and halve the scale.",
                 "缩放太大了：只要有一个 inf，这一步就作废。GradScaler 会跳过这一步，把缩放减半。")
TOO_SMALL = Text("The scale is too small: nothing raises an error, these weights just do not move.",
                 "缩放太小了：不会报错，只是这些权重一动不动。")
ALRIGHT = Text("The gradients fit into fp16.", "梯度都落在 fp16 能表示的范围里。")


def _lost(scale: float, largest: float) -> Chart:
    zero, infinite = zip(*(shares(largest, each) for each in SCALES))
    return Chart(Text("Gradients lost, for each scale", "每种缩放丢了多少梯度"), Axis(Text("loss scale", "损失缩放"), log=True),
                 Axis(Text("share, %", "比例，%"), range=(-3, 103)),
                 (Series(Text("became 0", "变成 0"), SCALES, [100 * share for share in zero], "main", "line+points"),
                  Series(Text("became inf", "变成 inf"), SCALES, [100 * share for share in infinite], "bad", "line+points")),
                 (Mark("x", scale, Text("scale {scale}", "缩放 {scale}").fill(scale=number(scale)), "other", knob="scale"),))


def _kept(scale: float, largest: float) -> Chart:
    true = gradients(largest, SHOWN)
    back = through_half(true, scale)
    ratio = back / true.double()

    def pick(which: Tensor, values: Tensor) -> tuple[list[float], list[float]]:
        return true[which].tolist(), values[which].tolist()
    return Chart(Text("What comes back: gradient after fp16 / gradient before", "还回来的梯度 ÷ 原来的梯度"),
                 Axis(Text("true gradient", "真正的梯度"), log=True), Axis(Text("ratio", "比值"), range=(-0.1, 2.2)),
                 (Series(Text("kept", "保住了"), *pick((back > 0) & back.isfinite(), ratio), role="good", kind="points"),
                  Series(Text("became 0", "变成 0"), *pick(back == 0, ratio), role="main", kind="points"),
                  Series(Text("became inf (drawn at 2)", "变成 inf（画在 2 处）"), *pick(back.isinf(), torch.full_like(ratio, 2.0)), role="bad",
                         kind="points")))


def _formats() -> Table:
    half, brain = torch.float16, torch.bfloat16
    tiny = {kind: smallest_of(kind) for kind in (half, brain)}
    cast = {kind: torch.tensor(tiny[kind] / 2, dtype=torch.float64).to(kind).item() for kind in (half, brain)}
    rows: tuple[tuple[Text | str, ...], ...]
    rows = ((Text("smallest positive number", "最小的正数"), *(number(tiny[kind]) for kind in (half, brain))),
            (Text("half of it becomes", "它的一半变成"), *(number(cast[kind]) for kind in (half, brain))),
            (Text("largest number", "最大的数"), *(number(torch.finfo(kind).max) for kind in (half, brain))))
    return Table((Text("measured by casting", "实际转换量出来的"), same("fp16"), same("bf16")), rows,
                 Text("bf16 has the range of fp32, so it needs no loss scaling.", "bf16 的范围和 fp32 一样，不需要损失缩放。"))


LAB = Lab(
    9, "loss_scaling", Text("Loss scaling saves small gradients", "损失缩放：救回小梯度"),
    about=Text("fp16 knows no positive number below 5.96e-8, and what is smaller than half of that becomes 0. Gradients often are. "
               "Scaling the loss scales every gradient with it; before the update the factor is divided out again. "
               "Here 601 gradients, from 1e-10 up, as many in each decade, are really cast to fp16 and back.",
               "fp16 最小的正数是 5.96e-8，比它的一半还小的数一律变成 0，而梯度常常就这么小。"
               "把损失乘一个数，所有梯度跟着放大；更新之前再除回去。"
               "这里有 601 个梯度，从 1e-10 起，每个数量级一样多，真的转成 fp16 再转回来。"),
    see=Text("Without scaling (scale 1) about two fifths of the gradients become 0.", "不缩放（缩放 = 1）时，大约五分之二的梯度变成 0。"),
    break_it=Text("Drag the scale to 1024. Then set the largest gradient to 1 and drag on to 2^24.",
                  "把缩放拖到 1024。然后把最大的梯度设成 1，继续拖到 2^24。"),
    then=Text("At 1024 nothing is lost. With a largest gradient of 1 the other end goes: from 65536 on the largest become inf. "
              "The scale has to lie between the two ends, and dynamic scaling looks for that place by itself.",
              "1024 时一个也不丢。最大的梯度是 1 时，丢的是另一头：从 65536 起，最大的那些变成 inf。"
              "缩放要落在两头之间，动态缩放会自己去找这个位置。"),
    rules=("numeric/fp16-underflow", "numeric/fp16-overflow", "numeric/scaler-missing", "numeric/scaler-misused"),
    knobs=(Slider("scale", Text("Loss scale", "损失缩放"), SCALES, 1.0),
           Slider("largest", Text("Largest gradient", "最大的梯度"), LARGEST, 1e-4)),
    compute=compute)
