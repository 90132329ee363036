"""Float formats: the bits of one number, and the error of rounding over sixteen decades."""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from traindx.core.text import Text, number, same
from traindx.figures import Axis, Chart, Grid, Mark, Role, Series
from traindx.figures.charts import Shade
from traindx.labs.lab import Choice, Lab, Level, Outcome, Slider, State, Table, grid

MAGNITUDES = grid(1e-10, 1e6, 49, log=True)
WITHIN = 97  # numbers that are rounded around each magnitude; the worst is drawn
NUMBERS = (1e-10, 2.9e-8, 5.96e-8, 1e-5, 0.1, 1.0, 3.14159, 448.0, 65504.0, 70000.0)


@dataclass(frozen=True)
class Format:
    """``dtype`` is that of the real cast; TF32 has none: it is fp32 with the mantissa rounded to 10 bits."""

    name: str
    dtype: torch.dtype
    exponent: int
    mantissa: int
    view: torch.dtype
    infinite: bool = True  # e4m3fn has no infinity: beyond its largest number is NaN

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        return 2 ** (self.exponent - 1) - 1

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def smallest(self) -> float:
        """The smallest positive number, a subnormal."""
        return 2.0 ** (1 - self.bias - self.mantissa)

    @property
    def largest(self) -> float:
        if not self.infinite:
            return 448.0
        return (2 - 2.0**-self.mantissa) * 2.0**self.bias


FORMATS = {made.name: made for made in (
    Format("fp32", torch.float32, 8, 23, torch.int32), Format("tf32", torch.float32, 8, 10, torch.int32),
    Format("fp16", torch.float16, 5, 10, torch.int16), Format("bf16", torch.bfloat16, 8, 7, torch.int16),
    Format("e4m3", torch.float8_e4m3fn, 4, 3, torch.int8, infinite=False), Format("e5m2", torch.float8_e5m2, 5, 2, torch.int8))}
TITLES = {name: same({"tf32": "TF32", "e4m3": "fp8 e4m3", "e5m2": "fp8 e5m2"}.get(name, name)) for name in FORMATS}


def rounded(values: Tensor, kind: Format) -> Tensor:
    """Cast to the format and back: fp64 -> fp64. Rounds to the nearest, ties to even. What is out of range becomes inf (e4m3: NaN)."""
    if kind.name != "tf32":
        back = values.to(torch.float32).to(kind.dtype).to(torch.float64)
        return torch.where(values.abs() >= _limit(kind), torch.nan, back) if not kind.infinite else back
    bits = values.to(torch.float32).view(torch.int32)
    odd = (bits >> 13) & 1
    return ((bits + 0x0FFF + odd) & ~0x1FFF).view(torch.float32).to(torch.float64)


def _limit(kind: Format) -> float:
    """From here on, the nearest number would be one step beyond the largest."""
    return kind.largest + 0.5 * 2.0 ** (math.floor(math.log2(kind.largest)) - kind.mantissa)


def bits_of(value: float, kind: Format) -> str:
    """Sign, exponent and mantissa as they lie in memory, as a string of 0 and 1."""
    cast = torch.tensor([rounded(torch.tensor([value], dtype=torch.float64), kind).item()], dtype=torch.float32).to(kind.dtype)
    whole = int(cast.view(kind.view).item()) & (2 ** (8 * cast.element_size()) - 1)
    return f"{whole:0{8 * cast.element_size()}b}"[:kind.width]


@cache
def errors(name: str) -> tuple[float, ...]:
    """The worst relative error within each magnitude; infinite where the format has no such number."""
    kind = FORMATS[name]
    around = torch.linspace(1.0, 2.0, WITHIN, dtype=torch.float64)
    values = torch.tensor(MAGNITUDES, dtype=torch.float64)[:, None] * around
    error = (rounded(values, kind) - values).abs() / values
    worst = torch.nan_to_num(error, nan=math.inf).max(1).values
    return tuple(float(f"{value:.3g}") for value in worst.tolist())


def compute(state: State) -> Outcome:
    value, kind = float(state["number"]), FORMATS[str(state["format"])]
    kept = rounded(torch.tensor([value], dtype=torch.float64), kind).item()
    verdict, level = judge(value, kept, kind)
    return Outcome(verdict, level, (_bits(value, kept, kind), _curve(value, kind)), (_table(),))


def judge(value: float, kept: float, kind: Format) -> tuple[Text, Level]:
    told = {"x": number(value, 6), "kept": number(kept, 6), "format": TITLES[kind.name]}
    if not math.isfinite(kept):
        return OVERFLOW.fill(largest=number(kind.largest, 6), **told), "error"
    if kept == 0:
        return FLUSHED.fill(half=number(kind.smallest / 2), **told), "error"
    error = abs(kept - value) / value
    if value < kind.smallest_normal:
        return SUBNORMAL.fill(error=percent(error), normal=number(kind.smallest_normal), **told), "warning"
    return KEPT.fill(error=percent(error), bound=percent(2.0 ** -(kind.mantissa + 1)), **told), "fine"


OVERFLOW = Text("{x} in {format} is {kept}: its largest number is {largest} (formula).",
                "{x} 存成 {format} 变成 {kept}：它最大只能到 {largest}（公式）。")
FLUSHED = Text("{x} in {format} is 0: what is smaller than {half}, half of its smallest number, is nearer to 0 (formula).",
               "{x} 存成 {format} 变成 0：比 {half}（最小正数的一半）还小的数，离 0 更近（公式）。")
SUBNORMAL = Text("{x} in {format} is {kept}, off by {error} (measured): below {normal} the numbers are subnormal and lose digits.",
                 "{x} 存成 {format} 变成 {kept}，差 {error}（实测）：小于 {normal} 就是次正规数，位数一位位地丢。")
KEPT = Text("{x} in {format} is {kept}, off by {error} (measured); never by more than {bound} (formula).",
            "{x} 存成 {format} 变成 {kept}，差 {error}（实测）；最多差 {bound}（公式）。")


def percent(share: float) -> str:
    return f"{number(100 * share, 2)} %"


def _bits(value: float, kept: float, kind: Format) -> Grid:
    bits = bits_of(value, kind)
    parts: list[Shade] = ["muted", *["other"] * kind.exponent, *["main"] * kind.mantissa]  # type: ignore[list-item]
    title = Text("{x} in {format}: {e} bit{e:|s} of exponent, {m} of mantissa", "{x} 存成 {format}：指数 {e} 位，尾数 {m} 位")
    title = title.fill(x=number(value, 6), format=TITLES[kind.name], e=kind.exponent, m=kind.mantissa)
    return Grid(title, (tuple(bits),), shades=(tuple(parts),),
                caption=Text("grey: sign; ochre: exponent, how large or small it can be; blue: mantissa, how precise",
                             "灰色：符号；赭色：指数，管能表示多大、多小；蓝色：尾数，管有多准"))


def _curve(value: float, kind: Format) -> Chart:
    names = dict.fromkeys((kind.name, "fp16", "bf16"))
    roles: dict[str, Role] = {"fp16": "bad", "bf16": "good"}
    curves = tuple(Series(TITLES[name], *_finite(errors(name)), role=roles.get(name, "main"), dashed=name != kind.name)
                   for name in names)
    return Chart(Text("Worst relative error of rounding, by magnitude", "不同量级上，舍入的最大相对误差"),
                 Axis(Text("magnitude", "量级"), log=True),
                 Axis(Text("relative error (1: all is lost)", "相对误差（1 = 全丢了）"), log=True, range=(1e-8, 2.0)), curves,
                 (Mark("x", value, Text("your number", "你的数"), "muted", knob="number"),))


def _finite(found: tuple[float, ...]) -> tuple[list[float], list[float]]:
    """Up to where the format ends. An error of 0 cannot be drawn on a logarithmic axis: it lies at its foot."""
    kept = [(x, max(y, 1e-8)) for x, y in zip(MAGNITUDES, found) if math.isfinite(y)]
    return [x for x, _ in kept], [y for _, y in kept]


def _table() -> Table:
    rows = tuple((TITLES[name], f"{kind.exponent} / {kind.mantissa}", number(kind.largest), number(kind.smallest_normal), number(kind.smallest),
                  percent(2.0 ** -(kind.mantissa + 1))) for name, kind in FORMATS.items())
    return Table((Text("format", "格式"), Text("exponent / mantissa bits", "指数 / 尾数位数"), Text("largest", "最大"),
                  Text("smallest normal", "最小正规数"), Text("smallest of all", "最小正数"), Text("rounding, at most", "舍入误差上限")), rows,
                 Text("by formula; the curves are real casts (TF32: fp32 rounded to 10 bits, as the tensor cores take it)",
                      "按公式算；曲线是真的转换（TF32：fp32 舍入到 10 位尾数，和张量核心的取法一样）"))


LAB = Lab(
    8, "float_formats", Text("Float formats: where the bits go", "浮点格式：位数花在哪"),
    about=Text("A float is a mantissa times a power of two. The mantissa says how precise it is, the exponent how large and how small it can "
               "be. fp16 spends 10 bits on the mantissa and 5 on the exponent, bf16 7 and 8: less precise, but with the range of fp32.",
               "浮点数 = 尾数 × 2 的若干次方。尾数管有多准，指数管能表示多大、多小。"
               "fp16 给尾数 10 位、指数 5 位；bf16 是 7 位和 8 位：没那么准，范围却和 fp32 一样。"),
    see=Text("fp16: flat and precise in the middle, and a cliff on the left, where small numbers lose their digits and then become 0.",
             "fp16：中间又平又准，左边是一道悬崖，小的数先丢位数，再变成 0。"),
    break_it=Text("Drag the number down to 1e-5, 5.96e-8 and 2.9e-8. Then to 70000. Then change the format.",
                  "把数往下拖到 1e-5、5.96e-8、2.9e-8，再拖到 70000。然后换一种格式。"),
    then=Text("5.96e-8 is the smallest number of fp16; 2.9e-8 is less than half of it and becomes 0; 70000 is beyond 65504 and becomes inf. "
              "bf16 keeps all of them, with an error of up to 0.4 %. fp8 has a cliff on either side.",
              "5.96e-8 是 fp16 的最小正数；2.9e-8 不到它的一半，变成 0；70000 超过 65504，变成 inf。"
              "bf16 全都留得住，只是误差可以到 0.4 %。fp8 两边都是悬崖。"),
    rules=("numeric/fp16-underflow", "numeric/fp16-overflow", "numeric/low-precision-weights", "numeric/eps-lost-in-half"),
    knobs=(Slider("number", Text("Number", "数"), NUMBERS, 0.1),
           Choice("format", Text("Format", "格式"), tuple(TITLES.items()), "fp16")),
    compute=compute)
