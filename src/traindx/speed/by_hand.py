"""What is said of a program that makes its batches by lines of its own, where no DataLoader could be set."""
from __future__ import annotations

import math
from pathlib import Path

from traindx.core.amounts import duration
from traindx.core.speed import Change, SpeedReport
from traindx.core.text import EMPTY, Text, number
from traindx.speed.changes import NOT_TRIED
from traindx.speed.findings import HANDING_OVER
from traindx.speed.route import Route

SHOWN = 3  # lines of a file
BY_HAND = Text("No DataLoader gives the batches; the program makes them itself ({lines}), and that counts as fetching.",
               "batch 不是 DataLoader 给的，而是程序自己准备的（{lines}），这部分时间算作取数据。")
NOTHING_MADE = Text("What is trained on is there before the loop: nothing is fetched in a step.",
                    "训练数据在循环之前就备好了：每一步不用再取数据。")
NOT_FOLLOWED = Text("No DataLoader gives the batches, and the lines that make them could not be told apart from those that train: their time "
                    "counts as host, and whether the training waits for them was not measured.",
                    "batch 不是 DataLoader 给的，也分不清哪几行在准备 batch、哪几行在训练：准备 batch 的时间算在主机端，"
                    "没有测出训练是不是在等数据。")
PARTLY = Text(" Other inputs follow from what the model returned before: they are not counted so, and were not held.",
              "另有一些输入取决于模型之前的输出：它们不算在内，也没有固定。")
TITLE = Text("a DataLoader with workers", "带 worker 的 DataLoader")
AHEAD = Text("there is none whose settings could be tried. If a Dataset does what {lines} does for a batch, {workers} "
             "worker{workers:|s} can make batches while the model computes: steps at most x{ratio} as fast. That is an upper bound (formula: "
             "a step takes its {rest} without fetching, or {fetch} of fetching shared among the workers, whichever is longer; never faster "
             "than with batches held)",
             "程序里没有 DataLoader，没有设置可试。如果把 {lines} 给一个 batch 做的事改写成 Dataset，{workers} 个 worker 就能在模型计算时"
             "提前准备好 batch：每步最多快到 {ratio} 倍。这是上限（公式：一步用时取两者中较长的，一是不取数据时的 {rest}，"
             "一是 {fetch} 的取数据时间分摊到各 worker；并且不超过重复使用 batch 时的倍数）")
LITTLE = Text("making a batch takes {fetch} of a step: handing one over from a worker costs about a millisecond (rule of thumb), so there is "
              "nothing to gain", "准备一个 batch 只占每步 {fetch}：从 worker 传一个 batch 过来就要约 1 毫秒（经验值），没什么可提高的")
WORTH = 0.05  # of a step
DIFF = """+ class Samples(torch.utils.data.Dataset):
+     def __len__(self): ...
+     def __getitem__(self, i): ...  # {sample}
+ loader = DataLoader(Samples(), batch_size={batch}, shuffle=True, num_workers={workers}, persistent_workers=True)"""


def remark(route: Route) -> Text:
    """How the batches come."""
    if not route.found:
        return NOTHING_MADE if route.constant else NOT_FOLLOWED
    return BY_HAND.fill(lines=lines_of(route)) + (PARTLY if route.unclear else EMPTY)


def lines_of(route: Route) -> str:
    """``train.py:12, 14``."""
    found = [(making.file, making.span[0]) for making in route.makings if making.holds]
    found += [(file, first) for file, first, _ in route.lines]
    files = {file: sorted({line for other, line in found if other == file})[:SHOWN] for file, _ in found}
    return ", ".join(f"{Path(file).name}:" + ", ".join(map(str, lines)) for file, lines in files.items())


def ahead(report: SpeedReport, route: Route, most: int) -> Change:
    """What a DataLoader with workers, ``most`` of them, could gain at best; nothing was tried."""
    fetch = report.phases["input"]
    rest = sum(report.phases.values()) - fetch
    if fetch < max(HANDING_OVER, WORTH * rest):
        return Change("loader", TITLE, why=NOT_TRIED.fill(why=LITTLE.fill(fetch=duration(fetch))))
    workers, ratio = bound(fetch, rest, most)
    ratio = min(ratio, max(report.held.ratio, 1.0)) if report.held is not None and not route.lines else ratio
    said = {"lines": lines_of(route), "workers": workers, "ratio": number(ratio), "fetch": duration(fetch), "rest": duration(rest)}
    batch = (report.baseline.batch if report.baseline else None) or "n"
    diff = Text(*(DIFF.format(sample=sample, batch=batch, workers=workers) for sample in ("sample i", "第 i 个样本")))
    return Change("loader", TITLE, why=NOT_TRIED.fill(why=AHEAD.fill(**said)), diff=diff)


def bound(fetch: float, rest: float, most: int) -> tuple[int, float]:
    """The fewest workers that keep up with the rest of the step, if there may be so many, and the speed that a step can have with them."""
    workers = max(1, min(math.ceil(fetch / rest) if rest > 0 else most, most))
    return workers, (fetch + rest) / max(rest, fetch / workers)
