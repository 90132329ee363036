"""One epoch feeds the same rows more than once.

What it is:
A part of the training set is a copy of another part: files read twice, tables joined the wrong way, an index that is folded, or an
IterableDataset whose workers each deliver everything.

Why it is silent:
The epoch is only longer. Repeated rows count double.

What you see:
Steps that take longer than the data deserve, overfitting to the repeated part, and leaks as soon as the set is split.

Look-alikes:
Samplers that draw with replacement, a rare class repeated to balance the classes, rows that say so little that equal ones are no wonder.

Fix:
Drop duplicates by content, and let each worker of an IterableDataset read its own share.

Before:
    def __iter__(self): return iter(self.rows)
After:
    def __iter__(self): info = get_worker_info(); return islice(self.rows, info.id, None, info.num_workers)

Experiment:
Train on the different rows only, for the same number of steps: the curve does not get worse.

Source:
PyTorch documentation of IterableDataset (multi-process loading). Rows are compared by a 64-bit hash of their content: measured.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.fed import Fed, Labels
from traindx.core.text import Text, number
from traindx.signals.feeding import RICH, Feeding, sites

ZH = """一轮里同样的样本送进了不止一次

是什么：
训练集的一部分是另一部分的副本：文件读了两遍、表格合并方式不对、下标折叠了，或者 IterableDataset 的每个 worker 都把全部数据送了一遍。

为什么不报错：
一轮只是变长了，重复的样本分量加倍。

你会看到：
每轮耗时超过数据应有的量，对重复部分过拟合；一旦划分就会泄漏。

容易混淆的情况：
有放回的采样器、为平衡类别而重复少数类、信息量太小本来就会相同的样本，都不算。

怎么改：
按内容去重；让 IterableDataset 的每个 worker 只读自己的一份。

改前：
    def __iter__(self): return iter(self.rows)
改后：
    def __iter__(self): info = get_worker_info(); return islice(self.rows, info.id, None, info.num_workers)

对照实验：
只用不同的样本训练同样多的步数：曲线不会变差。

来源：
PyTorch 文档 IterableDataset（多进程读取）。样本按内容的 64 位哈希比较，属实测。
"""
LEVEL = "warning"
STEP = 1
EXPLAINS = ("curve/overfitting",)

LEAST_SHARE = 0.2

CAUSE = Text("The first epoch fed {rows} row{rows:|s}, only {distinct} of them different.",
             "第一轮送进了 {rows} 个样本，其中只有 {distinct} 个不同。")
WORKERS = Text(" Each of the {workers} worker{workers:|s} delivers the whole dataset.", "{workers} 个 worker 各自把整个数据集送了一遍。")
FIX = Text("Drop rows with equal content, or find why the dataset delivers them twice.",
           "去掉内容相同的样本，或者找出数据集为什么把它们送了两遍。")
SHARD = Text("Share the rows among the workers with torch.utils.data.get_worker_info().",
             "用 torch.utils.data.get_worker_info() 把样本分给各个 worker。")
SHARE = Text("repeated rows within one epoch", "一轮之内重复的样本")


def check(feeding: Feeding) -> Iterator[Finding]:
    for feed in feeding:
        train = feed.train
        repeated = train.epoch_rows - train.epoch_distinct
        rich = train.bits >= (8 * RICH if train.whole else RICH)
        if rich and repeated >= LEAST_SHARE * train.epoch_rows and repeated >= 10 and not _balancing(train, feed.labels):
            yield _finding(train, repeated)


def _balancing(train: Fed, labels: Labels | None) -> bool:
    """The repeats make rare classes more frequent."""
    repeats = train.repeated_labels or {}
    unique = {label: count for label, count in (labels.distinct if labels else {}).items() if label >= 0}
    if len(unique) < 2 or not repeats:
        return False
    fed = {label: count + repeats.get(label, 0) for label, count in unique.items()}
    return _unevenness(fed) < 0.7 * _unevenness(unique)


def _unevenness(counts: dict[int, int]) -> float:
    return max(counts.values()) / max(min(counts.values()), 1)


def _finding(train: Fed, repeated: int) -> Finding:
    workers = train.workers if train.workers > 1 and train.epoch_distinct * train.workers == train.epoch_rows else 0
    cause = CAUSE.fill(rows=train.epoch_rows, distinct=train.epoch_distinct)
    places = sites(train.loader_site, train.site)
    return Finding(
        cause=cause + WORKERS.fill(workers=workers) if workers else cause, fix=SHARD if workers else FIX,
        where=places[0] if places else None, also=places[1:],
        evidence=(Evidence(SHARE, float(number(100 * repeated / train.epoch_rows)), "0", unit="%"),))
