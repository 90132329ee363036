"""Workers draw the same random numbers.

What it is:
The dataset augments with a generator that every worker copies, or that ``worker_init_fn`` gives one fixed seed. The workers then draw
the same numbers, or every epoch repeats those of the first.

Why it is silent:
Each sample is augmented, and each looks random. Only side by side do they turn out to be augmented alike.

What you see:
Augmentation helps less than it should; the net overfits as if the data were smaller.

Look-alikes:
torch's generator, and in current versions the global ones of random and numpy, differ in every worker and epoch by themselves. A
transform that depends on the index alone is meant to repeat. Persistent workers go on where they stopped.

Fix:
Make the generator inside the worker, from the seed that torch gives it.

Before:
    self.rng = np.random.default_rng(0)
After:
    def worker_init_fn(i):
        info = torch.utils.data.get_worker_info()
        info.dataset.rng = np.random.default_rng(info.seed)

Experiment:
Print the first number that each worker draws in two epochs.

Source:
A replay of what a worker does at its start; PyTorch documentation of DataLoader, "Randomness in multi-process data loading".
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.data import LoaderMade
from traindx.core.observed.workers import WorkerDraws
from traindx.core.text import Text
from traindx.signals.where import pointing

ZH = """各个 worker 抽到同样的随机数

是什么：
数据集做增强用的随机数生成器，每个 worker 都拿到一份相同的拷贝，或者 ``worker_init_fn`` 给它设了固定的种子。于是各个 worker 抽到同样的数，或者每一轮都重复第一轮的数。

为什么不报错：
每个样本都做了增强，单看都像是随机的。放在一起比，才发现增强的方式一模一样。

你会看到：
增强的效果比应有的差；网络过拟合得像数据变少了一样。

容易混淆的情况：
torch 的生成器，以及新版本里 random 和 numpy 的全局生成器，在每个 worker、每一轮里本来就不同。只由样本下标决定的变换是有意重复的。常驻的 worker 会接着上次的位置往下抽。

怎么改：
在 worker 里面创建生成器，种子用 torch 给它的那个。

改前：
    self.rng = np.random.default_rng(0)
改后：
    def worker_init_fn(i):
        info = torch.utils.data.get_worker_info()
        info.dataset.rng = np.random.default_rng(info.seed)

对照实验：
打印每个 worker 在两轮里抽到的第一个数。

来源：
重放 worker 启动时做的事；PyTorch DataLoader 文档中「Randomness in multi-process data loading」一节。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("data/duplicates", "data/same-batch-forever", "curve/overfitting", "curve/train-val-gap")

ACROSS = Text("{generator} begins in the same state in all {workers} worker{workers:|s}: they draw the same random numbers side by side.",
              "{generator} 在 {workers} 个 worker 里的起始状态完全相同：它们同时抽着同样的随机数。")
EPOCHS = Text("{generator} begins in the same state in every epoch: each of the {epochs} epoch{epochs:|s} repeats the random numbers of "
              "the first.",
              "{generator} 每一轮的起始状态都相同：{epochs} 轮抽到的都是第一轮的随机数。")
FIX = Text("Seed it inside the worker: in worker_init_fn, from torch.utils.data.get_worker_info().seed.",
           "在 worker 里给它设种子：写在 worker_init_fn 里，用 torch.utils.data.get_worker_info().seed。")
STATES = Text("states at the start of two workers; of one worker in two epochs", "两个 worker 的起始状态；同一个 worker 两轮的起始状态")
SAME, OTHER = Text("equal", "相同"), Text("different", "不同")
PAIR = Text("{0}; {1}", "{0}；{1}")


def check(draws: list[WorkerDraws], loaders: list[LoaderMade]) -> Iterator[Finding]:
    epochs = {loader.id: loader.iterations for loader in loaders}
    for seen in draws:
        across = seen.across_workers and seen.workers > 1
        again = seen.across_epochs and not seen.persistent and epochs.get(seen.loader, 0) > 1
        if across or again:
            yield _finding(seen, across, epochs.get(seen.loader, 0))


def _finding(seen: WorkerDraws, across: bool, epochs: int) -> Finding:
    where, also = pointing(seen.made_at, seen.init_at, seen.loader_site, seen.draw_at)
    states = [SAME if same else OTHER for same in (seen.across_workers, seen.across_epochs)]
    value = Text(PAIR.en.format(*(state.en for state in states)), PAIR.zh.format(*(state.zh for state in states)))
    return Finding(
        cause=(ACROSS if across else EPOCHS).fill(generator=seen.generator, workers=seen.workers, epochs=epochs), fix=FIX, where=where,
        also=also, evidence=(Evidence(STATES, value, OTHER, step=seen.step),), first_step=seen.step)
