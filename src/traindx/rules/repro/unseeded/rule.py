"""No seed was set before the weights were made.

What it is:
The first weights (and the first shuffles) come from a generator that nobody seeded, or that was seeded only afterwards. The run
cannot be repeated.

Why it is silent:
Random numbers look alike with and without a seed.

What you see:
Two runs of the same code differ, and you cannot tell whether a change helped or luck did.

Look-alikes:
A library's seed_everything or set_seed seeds all generators. A run that restores a saved generator state is seeded too.

Fix:
Seed first, before any module, dataset or split is made.

Before:
    model = Net()
    torch.manual_seed(0)
After:
    torch.manual_seed(0)
    model = Net()

Experiment:
Run twice and compare the first loss to the last digit.

Source:
PyTorch notes on reproducibility.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.seeds import SeedsAtStart
from traindx.core.text import Text

ZH = """创建权重之前没有设随机种子

是什么：
最初的权重（以及最初的打乱顺序）来自没有设过种子的随机数生成器，或者种子设得太晚。这次运行没法复现。

为什么不报错：
设没设种子，随机数看上去都一样。

你会看到：
同样的代码跑两遍，结果不同；改了一处之后，分不清是改得好还是运气好。

容易混淆的情况：
框架的 seed_everything 或 set_seed 会把各个生成器都设好。恢复保存过的生成器状态，也算设过种子。

怎么改：
最先设种子，要在创建任何模块、数据集、划分之前。

改前：
    model = Net()
    torch.manual_seed(0)
改后：
    torch.manual_seed(0)
    model = Net()

对照实验：
跑两遍，比较第一个损失是否每一位都相同。

来源：
PyTorch 关于可复现性的说明（Reproducibility）。
"""
LEVEL = "note"
STEP = 6

CAUSE = Text("torch's generator had no seed when the first module was built{others}: this run cannot be repeated.",
             "创建第一个模块时，torch 的随机数生成器还没有设种子{others}：这次运行没法复现。")
CAUSE_LATE = Text("torch was seeded only after the first module was built{others}: its weights cannot be drawn again.",
                  "创建第一个模块之后，才给 torch 设种子{others}：这些权重没法复现。")
OTHERS = Text(" (and {names} was used without one)", "（{names} 也用了，同样没有设）")
FIX = Text("Call torch.manual_seed(0) (and seed numpy and random) as the first thing.",
           "一开始就调用 torch.manual_seed(0)，numpy 和 random 也一并设好。")
SEEDED = Text("generators seeded before the first module", "创建第一个模块之前设过种子的生成器")
ALL = Text("torch and whatever else is used", "torch 以及用到的其他生成器")


def check(start: SeedsAtStart) -> Iterator[Finding]:
    if start.torch:
        return
    unseeded = [name for name, used, seeded in (("numpy", start.numpy_used, start.numpy), ("random", start.random_used, start.random))
                if used and not seeded and name not in start.late]
    others = OTHERS.fill(names=", ".join(unseeded)) if unseeded else Text("", "")
    late = "torch" in start.late
    seeded = [name for name in ("torch", "numpy", "random") if getattr(start, name)]
    yield Finding(
        cause=(CAUSE_LATE if late else CAUSE).fill(others=others), fix=FIX, where=start.late_site if late else start.made_at,
        also=(start.made_at,) if late and start.made_at else (), evidence=(Evidence(SEEDED, ", ".join(seeded) or "-", ALL),))
