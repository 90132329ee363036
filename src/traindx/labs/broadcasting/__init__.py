"""Silent broadcasting: what you meant beside what you get, and a loss that trains on the wrong grid."""
from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from traindx.core.text import Text, number, same
from traindx.figures import Axis, Chart, Grid, Mark, Series
from traindx.figures.charts import Shade
from traindx.labs.lab import Choice, Lab, Level, Outcome, State, Table

SHAPES: dict[str, tuple[int, ...]] = {"4": (4,), "4,1": (4, 1), "1,4": (1, 4), "4,4": (4, 4), "3": (3,), "1": (1,)}
NAMES = tuple((name, same(f"({name},)" if "," not in name else f"({name.replace(',', ', ')})")) for name in SHAPES)
POINTS, STEPS, RATE = 32, 40, 0.2


def values(shape: tuple[int, ...], unit: int) -> Tensor:
    """unit x 1, 2, 3 ... in ``shape``."""
    return unit * torch.arange(1, torch.Size(shape).numel() + 1).reshape(shape)


def added(a: str, b: str) -> Tensor | str:
    """The sum as PyTorch makes it; what it says where it refuses."""
    try:
        return values(SHAPES[a], 10) + values(SHAPES[b], 1)
    except RuntimeError as problem:
        return str(problem)


def meant(a: str, b: str) -> tuple[int, ...] | None:
    """The shape of an element-by-element sum: as many numbers on both sides, or one number for all; None where there is no such sum."""
    counts = [torch.Size(SHAPES[name]).numel() for name in (a, b)]
    if counts[0] == counts[1] or counts[1] == 1:
        return SHAPES[a]
    return SHAPES[b] if counts[0] == 1 else None


@cache
def losses(right: bool) -> tuple[list[float], float, float]:
    """Loss at each step of fitting y = 2 x + ½ sin 9x by a line, the variance of y, and the slope at the end.

    Wrong: predictions (N, 1) minus targets (N,) is an (N, N) grid, whose mean square PyTorch descends without a word.
    """
    x = torch.linspace(-1, 1, POINTS, dtype=torch.float64)[:, None]
    y = (2 * x + 0.5 * torch.sin(9 * x))[:, 0]
    weight = torch.tensor([-1.0, 1.0], dtype=torch.float64, requires_grad=True)
    found = []
    for _ in range(STEPS + 1):
        prediction = weight[0] * x + weight[1]  # (N, 1)
        loss = (prediction - (y[:, None] if right else y)).square().mean()
        found.append(loss.item())
        (gradient,) = torch.autograd.grad(loss, weight)
        with torch.no_grad():
            weight -= RATE * gradient
    return found, y.var(correction=0).item(), weight[0].item()


def compute(state: State) -> Outcome:
    a, b = str(state["a"]), str(state["b"])
    result = added(a, b)
    verdict, level = judge(a, b, result)
    grids = [_grid(Text("a", "a"), values(SHAPES[a], 10)), _grid(Text("b", "b"), values(SHAPES[b], 1))]
    if isinstance(result, Tensor):
        grids.append(_result(a, b, result))
    return Outcome(verdict, level, (*grids, _training()), (_table(a, b, result),))


def judge(a: str, b: str, result: Tensor | str) -> tuple[Text, Level]:
    names = {"a": _shape(SHAPES[a]), "b": _shape(SHAPES[b])}
    if isinstance(result, str):
        return REFUSED.fill(problem=result, **names), "fine"
    wanted, got = meant(a, b), tuple(result.shape)
    counts = {"count": result.numel(), "got": _shape(got)}
    if wanted is None:
        return SPREAD.fill(**names, **counts), "warning"
    if result.numel() != torch.Size(wanted).numel():
        return SILENT.fill(meant=torch.Size(wanted).numel(), **names, **counts), "error"
    return ELEMENTS.fill(**names, **counts), "fine"


REFUSED = Text("{a} + {b}: PyTorch refuses, and that is the good case: “{problem}”.", "{a} + {b}：PyTorch 报错。这反而是好事：「{problem}」。")
SPREAD = Text("{a} + {b} → {got}: one side is repeated, {count} number{count:|s}. This is fine only if you meant to add the same row or "
              "column everywhere.",
              "{a} + {b} → {got}：其中一边重复使用，得到 {count} 个数。只有你本来就想给每一行（列）加上同一组数时，这才对。")
SILENT = Text("{a} + {b} → {got}: {count} number{count:|s} where you meant {meant}. No error, no warning.",
              "{a} + {b} → {got}：你想要 {meant} 个数，得到 {count} 个。不报错，也没有警告。")
ELEMENTS = Text("{a} + {b} → {got}: {count} number{count:|s}, element by element.", "{a} + {b} → {got}：逐元素相加，{count} 个数。")


def _shape(shape: tuple[int, ...]) -> str:
    return str(tuple(shape))


def _grid(name: Text, tensor: Tensor) -> Grid:
    cells = tensor.reshape(1, -1) if tensor.dim() == 1 else tensor
    title = name + same(f" {_shape(tuple(tensor.shape))}")
    return Grid(title, tuple(tuple(str(value) for value in row) for row in cells.tolist()))


def _result(a: str, b: str, result: Tensor) -> Grid:
    """Green: the pairs that belong together. Red: sums nobody asked for."""
    cells = result.reshape(1, -1) if result.dim() == 1 else result
    wanted = meant(a, b)
    extra = wanted is not None and result.numel() != torch.Size(wanted).numel()
    shades: list[tuple[Shade, ...]] = []
    for row in range(cells.shape[0]):
        shades.append(tuple("plain" if wanted is None else "good" if not extra or row == at else "bad" for at in range(cells.shape[1])))
    return Grid(Text("a + b, what you get: ", "a + b，你得到的：") + same(_shape(tuple(result.shape))),
                tuple(tuple(str(value) for value in row) for row in cells.tolist()), shades=tuple(shades),
                caption=Text("green: the sums you meant; red: sums nobody asked for", "绿色：你想要的和；红色：谁也没想要的和"))


def _table(a: str, b: str, result: Tensor | str) -> Table:
    wanted = meant(a, b)
    got = Text("refused", "报错") if isinstance(result, str) else same(f"{_shape(tuple(result.shape))} = {result.numel()}")
    said = Text("no such sum", "不存在") if wanted is None else same(f"{_shape(wanted)} = {torch.Size(wanted).numel()}")
    rows = ((Text("element by element", "逐元素相加"), said), (Text("what PyTorch gives", "PyTorch 给出的"), got))
    return Table((Text("sum", "和"), Text("shape = numbers", "形状 = 个数")), rows,
                 Text("Shapes are aligned from the right; a missing dimension and a 1 are repeated.",
                      "形状从右边对齐；缺的维度和等于 1 的维度会重复使用。"))


def _training() -> Chart:
    wrong, spread, _ = losses(False)
    right, _, _ = losses(True)
    steps = range(STEPS + 1)
    return Chart(Text("The same fit with two losses", "同一次拟合，两种损失"), Axis(Text("step", "步")), Axis(Text("loss", "损失"), log=True),
                 (Series(Text("(N, 1) − (N, 1): right", "(N, 1) − (N, 1)：对"), steps, [_short(loss) for loss in right], "good"),
                  Series(Text("(N, 1) − (N,): an (N, N) grid", "(N, 1) − (N,)：变成 (N, N)"), steps, [_short(loss) for loss in wrong], "bad")),
                 (Mark("y", spread, Text("variance of y: {v}", "y 的方差：{v}").fill(v=number(spread))),))


def _short(value: float) -> float:
    return float(f"{value:.4g}")


LAB = Lab(
    4, "broadcasting", Text("Silent broadcasting: the real result", "静默广播：形状不匹配时的真实结果"),
    about=Text("Where two shapes differ, PyTorch and NumPy repeat the smaller one until both fit, and say nothing. A column and a row give "
               "a whole table. The same happens inside a loss: predictions (N, 1) minus targets (N,) compares every prediction with every "
               "target, and the best answer to that is the mean of y.",
               "两个张量形状不同时，PyTorch 和 NumPy 会把小的那个重复到能对上为止，一声不吭。一列加一行，得到整张表。"
               "损失函数里也一样：预测 (N, 1) 减目标 (N,)，等于拿每个预测去和每个目标比，这样的最优解就是 y 的平均值。"),
    see=Text("(4, 1) + (1, 4) makes 16 numbers; only the 4 on the diagonal were meant.",
             "(4, 1) + (1, 4) 得到 16 个数，你想要的只有对角线上的 4 个。"),
    break_it=Text("Set both to (4, 1), then one of them to (4,). Then try (3,) with (4,).",
                  "先把两个都设成 (4, 1)，再把其中一个改成 (4,)。最后试试 (3,) 加 (4,)。"),
    then=Text("Equal shapes add element by element; (4, 1) + (4,) is a table again; (3,) + (4,) is the only one that says something. "
              "In the chart the wrong loss falls too, and stops at the variance of y: the model has learned the mean.",
              "形状相同就逐元素相加；(4, 1) + (4,) 又变成一张表；只有 (3,) + (4,) 会报错。"
              "再看曲线：错的损失也在降，降到 y 的方差就停了，模型学到的只是平均值。"),
    rules=("shape/silent-broadcast", "shape/loss-target-mismatch"),
    knobs=(Choice("a", Text("Shape of a", "a 的形状"), NAMES, "4,1"), Choice("b", Text("Shape of b", "b 的形状"), NAMES, "1,4")),
    compute=compute)
