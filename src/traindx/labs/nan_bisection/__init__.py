"""NaN bisection: which of eight layers is broken, found by asking one layer at a time whether its output is finite."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from traindx.core.text import Text, number, same
from traindx.figures import Axis, Chart, Grid, Mark, Series
from traindx.figures.charts import Shade
from traindx.labs.lab import Choice, Lab, Level, Outcome, Slider, State, Table
from traindx.labs.nets import dice, normal

LAYERS, WIDTH, BATCH = 8, 16, 4
STRATEGIES = (("bisect", Text("bisection", "二分")), ("end", Text("from the end", "从最后一层往回")))


@cache
def weights(broken: int) -> tuple[Tensor, ...]:
    """Eight layers 16 -> 16; one weight of layer ``broken`` (1 .. 8) is NaN."""
    generator = dice(0)
    layers = [normal(generator, WIDTH, WIDTH) / WIDTH**0.5 for _ in range(LAYERS)]
    layers[broken - 1][3, 5] = torch.nan
    return tuple(layers)


def output_of(broken: int, layer: int) -> Tensor:
    """A real forward, from the input up to and including ``layer`` (1 .. 8): [batch, width]."""
    hidden = normal(dice(1), BATCH, WIDTH)
    for weight in weights(broken)[:layer]:
        hidden = torch.tanh(hidden @ weight)
    return hidden


@dataclass(frozen=True)
class Test:
    """One question: is the output of ``layer`` finite? After it the broken layer lies in ``low`` .. ``high``."""

    layer: int
    finite: bool
    low: int
    high: int


def search(broken: int, strategy: str) -> list[Test]:
    """All tests until one layer is left. That the last output is NaN is known before."""
    low, high, tests = 1, LAYERS, []
    while low < high:
        layer = (low + high) // 2 if strategy == "bisect" else high - 1
        finite = bool(output_of(broken, layer).isfinite().all())
        low, high = (layer + 1, high) if finite else (low, layer)
        tests.append(Test(layer, finite, low, high))
    return tests


@cache
def lengths(strategy: str) -> tuple[int, ...]:
    """Tests needed for each place of the fault."""
    return tuple(len(search(broken, strategy)) for broken in range(1, LAYERS + 1))


def compute(state: State) -> Outcome:
    broken, strategy, made = int(state["broken"]), str(state["strategy"]), int(state["made"])
    every = search(broken, strategy)
    tests = every[:made]
    low, high = (tests[-1].low, tests[-1].high) if tests else (1, LAYERS)
    level: Level = "fine" if low == high else "warning"
    name = dict(STRATEGIES)[strategy]
    if low == high:
        verdict = FOUND.fill(layer=low, count=len(tests), name=name)
    else:
        verdict = OPEN.fill(count=len(tests), left=high - low + 1, low=low, high=high)
    return Outcome(verdict, level, (_net(broken, tests, low, high), _needed(broken, strategy)), (_table(tests),) if tests else ())


FOUND = Text("Layer {layer} is the first whose output is not finite: found with {count} test{count:|s} ({name}; measured).",
             "第 {layer} 层是第一个输出不再有限的层：测了 {count} 次就找到了（{name}；实测）。")
OPEN = Text("{count} test{count:|s} made; {left} layer{left:|s} are left, {low} to {high}.",
            "测了 {count} 次，还剩 {left} 层：第 {low} 到第 {high} 层。")
NAN, FINITE = Text("NaN", "NaN"), Text("finite", "有限")


def _net(broken: int, tests: list[Test], low: int, high: int) -> Grid:
    """What is known of each layer: tested, ruled out, or still in question."""
    tested = {test.layer: test.finite for test in tests} | {LAYERS: False}
    cells = tuple("" if layer not in tested else "✓" if tested[layer] else "NaN" for layer in range(1, LAYERS + 1))
    suspects = tuple("?" if low <= layer <= high else "" for layer in range(1, LAYERS + 1))
    shades: tuple[Shade, ...] = tuple("plain" if cell == "" else "good" if cell == "✓" else "bad" for cell in cells)
    marked: tuple[Shade, ...] = tuple("other" if suspect else "muted" for suspect in suspects)
    return Grid(Text("Eight layers, from input to output", "八层，从输入到输出"), (cells, suspects),
                (Text("output is", "输出"), Text("may be broken", "可能坏了")), tuple(same(str(layer)) for layer in range(1, LAYERS + 1)),
                (shades, marked), Text("The last output is NaN: that is where you start.", "最后一层的输出是 NaN，这是一开始就知道的。"))


def _needed(broken: int, strategy: str) -> Chart:
    layers = range(1, LAYERS + 1)
    curves = tuple(Series(name, layers, lengths(key), "good" if key == "bisect" else "bad", "line+points", dashed=key != strategy)
                   for key, name in STRATEGIES)
    return Chart(Text("Tests needed, for each place of the fault", "坏在哪一层，要测几次"), Axis(Text("broken layer", "坏掉的层")),
                 Axis(Text("tests", "测几次"), range=(0, LAYERS)), curves, (Mark("x", broken, Text("here", "这次"), "muted", knob="broken"),))


def _table(tests: list[Test]) -> Table:
    rows = tuple((str(at), Text("layer {n}", "第 {n} 层").fill(n=test.layer), FINITE if test.finite else NAN,
                  same(f"{test.low} .. {test.high}" if test.low < test.high else str(test.low))) for at, test in enumerate(tests, 1))
    return Table((Text("test", "第几次"), Text("asked", "测哪一层"), Text("its output", "输出"), Text("left", "还剩")), rows)


LAB = Lab(
    10, "nan_bisection", Text("NaN bisection over eight layers", "NaN 二分定位：第几次能找到坏掉的层"),
    about=Text("After one bad batch a weight of one layer is NaN, and from that layer on everything is. Cut the net in the middle and ask "
               "whether the output there is finite: that halves the question. Every test here is a real forward.",
               "一个坏 batch 之后，某一层有个权重变成了 NaN，从这层往后，全是 NaN。从中间切一刀，看那里的输出是不是有限，范围就少一半。"
               "这里每测一次，都真的前向一遍。"),
    see=Text("No test made yet: all eight layers may be it.", "还没开始测：八层都有嫌疑。"),
    break_it=Text("Make one test after the other. Then move the fault to layer 1, and search from the end.",
                  "一次一次测下去。然后把坏的层移到第 1 层，改成从最后一层往回找。"),
    then=Text("Bisection needs {n} test{n:|s} wherever the fault lies, log₂ 8. From the end it is 1 test for the last layer and 7 for the "
              "first.",
              "二分总是 {n} 次，也就是 log₂ 8，坏在哪层都一样。从后往前，坏在最后一层只要 1 次，坏在第一层要 7 次。").fill(n=number(3)),
    rules=("numeric/nonfinite", "numeric/unstable-op", "data/nonfinite-input"),
    knobs=(Slider("made", Text("Tests made", "测了几次"), tuple(map(float, range(8))), 0.0),
           Slider("broken", Text("Broken layer", "坏掉的层"), tuple(map(float, range(1, LAYERS + 1))), 6.0),
           Choice("strategy", Text("How to search", "怎么找"), STRATEGIES, "bisect")),
    compute=compute)
