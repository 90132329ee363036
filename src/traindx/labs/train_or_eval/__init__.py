"""Train or eval: dropout answers the same input differently each time, BatchNorm by who else is in the batch."""
from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn

from traindx.core.text import EMPTY, Text, number, same
from traindx.figures import Axis, Chart, Grid, Mark, Series
from traindx.figures.charts import Shade
from traindx.labs.lab import Choice, Lab, Level, Outcome, Slider, State, Table, seed
from traindx.labs.nets import dice, normal

UNITS, FORWARDS, MANY = 8, 6, 4000
ACTIVATIONS = torch.tensor([0.5, 1.0, -0.8, 1.5, 0.3, -0.4, 0.9, 1.2], dtype=torch.float64)
WEIGHTS = torch.tensor([1.0, 0.5, -1.0, 0.7, 1.2, -0.6, 0.4, 0.8], dtype=torch.float64)  # of the output that reads the units
SAMPLE = 1.0  # the input that is asked about, in a feature of mean 3 and standard deviation 2
MEAN, DEVIATION, MOMENTUM_STEPS = 3.0, 2.0, 60


def dropped(values: Tensor, p: float, forwards: int, generator: torch.Generator) -> Tensor:
    """Inverted dropout as nn.Dropout does it, from a generator of its own: [units] -> [forwards, units]."""
    kept = torch.rand(forwards, len(values), generator=generator, dtype=torch.float64) >= p
    return values * kept / (1 - p)


def six(p: float, seeded: int, training: bool) -> tuple[Tensor, Tensor]:
    """Units and outputs of six forwards of one input."""
    units = dropped(ACTIVATIONS, p, FORWARDS, dice(seeded)) if training else ACTIVATIONS.expand(FORWARDS, UNITS)
    return units, units @ WEIGHTS


@cache
def many(p: float, seeded: int) -> float:
    """The mean output of 4000 forwards in train mode."""
    return (dropped(ACTIVATIONS, p, MANY, dice(seeded)) @ WEIGHTS).mean().item()


@cache
def trained_norm(seeded: int) -> tuple[float, float]:
    """Running mean and variance of a real BatchNorm after 60 batches of 32."""
    norm, generator = nn.BatchNorm1d(1, affine=False, dtype=torch.float64), dice(100 + seeded)
    for _ in range(MOMENTUM_STEPS):
        norm(MEAN + DEVIATION * normal(generator, 32, 1))
    assert norm.running_mean is not None and norm.running_var is not None
    return norm.running_mean.item(), norm.running_var.item()


def normalised(seeded: int, batch: int, training: bool) -> Tensor | str:
    """What BatchNorm makes of the same sample in six batches [6]; what PyTorch says where it refuses."""
    norm = nn.BatchNorm1d(1, affine=False, dtype=torch.float64)
    mean, variance = trained_norm(seeded)
    assert norm.running_mean is not None and norm.running_var is not None
    norm.running_mean.fill_(mean)
    norm.running_var.fill_(variance)
    norm.train(training)
    others = MEAN + DEVIATION * normal(dice(200 + seeded), FORWARDS, batch - 1, 1)
    inputs = torch.cat([torch.full((FORWARDS, 1, 1), SAMPLE, dtype=torch.float64), others], 1)
    try:
        return torch.stack([norm(one)[0, 0] for one in inputs])
    except ValueError as problem:
        return str(problem)


def compute(state: State) -> Outcome:
    training, p, batch, seeded = state["mode"] == "train", float(state["p"]), int(state["batch"]), int(state["seed"])
    units, outputs = six(p, seeded, training)
    norms = normalised(seeded, batch, training)
    level: Level = "warning" if training else "fine"
    return Outcome(_verdict(training, p, batch, outputs, norms), level,
                   (_units(units, outputs), _outputs(outputs, training), _norms(norms)), (_table(p, seeded, outputs, norms),))


def _verdict(training: bool, p: float, batch: int, outputs: Tensor, norms: Tensor | str) -> Text:
    if not training:
        return CALM.fill(output=number(outputs[0].item()))
    spread = SPREAD.fill(low=number(outputs.min().item()), high=number(outputs.max().item()), p=number(p))
    if isinstance(norms, str):
        return spread + ALONE.fill(problem=norms)
    return spread + NORMS.fill(low=number(norms.min().item()), high=number(norms.max().item()), batch=batch)


CALM = Text("Eval mode: six forwards, one answer, {output} (measured). BatchNorm uses its running statistics: the sample's "
            "neighbours do not matter.",
            "推理模式：六次前向，答案都是 {output}（实测）。BatchNorm 用的是滑动统计量，同批的别的样本不影响它。")
SPREAD = Text("Train mode: the same input gives answers from {low} to {high} (measured, dropout {p}). ",
              "训练模式：同一个输入，答案从 {low} 到 {high} 不等（实测，dropout {p}）。")
NORMS = Text("BatchNorm makes between {low} and {high} of the same sample, by its neighbours in a batch of {batch}.",
             "同一个样本，BatchNorm 给出 {low} 到 {high}，全看同批的另外几个是谁（batch = {batch}）。")
ALONE = Text("A batch of one has no variance: PyTorch says “{problem}”.", "batch 里只有一个样本，没有方差可算，PyTorch 报错：「{problem}」。")


def _units(units: Tensor, outputs: Tensor) -> Grid:
    rows = tuple(tuple(number(value) if value else "0" for value in row) for row in units.tolist())
    shades: tuple[tuple[Shade, ...], ...] = tuple(tuple("plain" if value else "bad" for value in row) for row in units.tolist())
    names = tuple(Text("forward {n}", "第 {n} 次").fill(n=at + 1) for at in range(FORWARDS))
    return Grid(Text("Eight units in six forwards", "八个单元，六次前向"), rows, names, shades=shades,
                caption=Text("red: dropped; what stays is divided by 1 − p", "红色：丢掉了；留下的除以 1 − p"))


def _outputs(outputs: Tensor, training: bool) -> Chart:
    sound = (ACTIVATIONS @ WEIGHTS).item()
    values = [_short(value) for value in outputs.tolist()]
    curve = Series(Text("output", "输出"), range(1, FORWARDS + 1), values, "bad" if training else "good", "bars")
    return Chart(Text("Dropout: one input, six answers", "Dropout：同一个输入，六次输出"), Axis(Text("forward", "第几次前向")),
                 Axis(Text("output", "输出")), (curve,), (Mark("y", sound, Text("without dropout", "不丢时"), "muted"),))


def _norms(norms: Tensor | str) -> Chart:
    points = [] if isinstance(norms, str) else [_short(value) for value in norms.tolist()]
    true = (SAMPLE - MEAN) / DEVIATION
    curve = Series(Text("normalised", "归一化之后"), range(1, len(points) + 1), points, "main", "bars")
    return Chart(Text("BatchNorm: the same sample in six batches", "BatchNorm：同一个样本，放进六个不同的 batch"),
                 Axis(Text("batch", "第几个 batch"), range=(0.4, FORWARDS + 0.6)),
                 Axis(Text("its value", "它的值"), range=(-2.6, 2.6)), (curve,),
                 (Mark("y", true, Text("(x − μ) / σ of the data", "用数据的 (x − μ) / σ 算"), "muted"),))


def _table(p: float, seeded: int, outputs: Tensor, norms: Tensor | str) -> Table:
    """Inverted dropout leaves the expectation as it is; the running statistics approach those of the data."""
    mean, variance = trained_norm(seeded)
    spread = same("—") if isinstance(norms, str) else same(number(norms.std(correction=0).item()))
    rows: tuple[tuple[Text | str, ...], ...] = (
        (Text("output without dropout", "不丢时的输出"), number((ACTIVATIONS @ WEIGHTS).item()), FORMULA),
        (Text("mean of these six", "这六次的平均"), number(outputs.mean().item()), MEASURED),
        (Text("mean of 4000 forwards in train mode", "训练模式下 4000 次的平均"), number(many(p, seeded)), MEASURED),
        (Text("running mean (data: {m})", "滑动均值（数据：{m}）").fill(m=number(MEAN)), number(mean), MEASURED),
        (Text("running variance (data: {v})", "滑动方差（数据：{v}）").fill(v=number(DEVIATION**2)), number(variance), MEASURED),
        (Text("spread of the sample over six batches", "同一个样本在六个 batch 里的散布"), spread, MEASURED))
    return Table((EMPTY, Text("value", "数值"), Text("origin", "来源")), rows)


MEASURED, FORMULA = Text("measured", "实测"), Text("formula", "公式")


def _short(value: float) -> float:
    return float(f"{value:.4g}")


LAB = Lab(
    7, "train_or_eval", Text("Train or eval: one input, six forwards", "训练还是推理：同一个输入，六次前向"),
    about=Text("Dropout throws units away at random while training and none while evaluating; what stays is divided by 1 − p, so that the "
               "mean is the same. BatchNorm takes the statistics of the batch while training and its running ones while evaluating. "
               "Who forgets model.eval() measures with the behaviour of training.",
               "训练时，dropout 随机丢掉一些单元，推理时一个也不丢；留下的除以 1 − p，平均值因此不变。"
               "BatchNorm 训练时用这个 batch 的统计量，推理时用攒下来的滑动统计量。忘了 model.eval()，就是拿训练时的行为去评估。"),
    see=Text("Train mode: six forwards of one input, six answers, and the same sample normalised in six ways.",
             "训练模式：同一个输入前向六次，六个答案；同一个样本放进六个 batch，归一化成六个值。"),
    break_it=Text("Switch the mode. Then go back to train, raise p to 0.8, and take the batch down to 2 and to 1.",
                  "切换模式。再切回训练，把 p 调到 0.8，batch 减到 2，再减到 1。"),
    then=Text("In eval mode all six are equal. With p = 0.8 the answers scatter widely around the same mean; with a batch of 2 BatchNorm "
              "can only say +1 or −1; with 1 it refuses.",
              "推理模式下六个答案完全一样。p = 0.8 时答案散得很开，平均还在原处；batch 为 2 时 BatchNorm 只会给出 +1 或 −1；为 1 时直接报错。"),
    rules=("mode/eval-missing", "mode/train-missing", "mode/dropout-always-on", "mode/bn-small-batch", "mode/bn-stats-diverge"),
    knobs=(Choice("mode", Text("Mode", "模式"), (("train", Text("train", "训练")), ("eval", Text("eval", "推理"))), "train"),
           Slider("p", Text("Dropout p", "dropout 的 p"), (0.2, 0.5, 0.8), 0.5),
           Slider("batch", Text("Batch of BatchNorm", "BatchNorm 的 batch"), (1.0, 2.0, 4.0, 32.0), 4.0), seed(3)),
    compute=compute)
