"""Spectral norm is read before it was ever updated.

What it is:
``torch.nn.utils.spectral_norm`` divides a weight by an estimate of its largest singular value. The estimate improves with every forward in
train mode only; in eval mode it is used as it is. A layer that first runs in eval mode divides by what a random vector gives.

Why it is silent:
The result is a weight like any other, only too large.

What you see:
Scores or samples before training that are off by a factor; a net that is trained in eval mode throughout is not normalised at all.

Look-alikes:
A loaded checkpoint brings its estimate along. Where training follows, only what was computed before it is off: a note. ``torch.nn.utils.parametrizations.spectral_norm`` iterates when it is built.

Fix:
Run one forward in train mode first, or use the parametrization.

Before:
    layer = torch.nn.utils.spectral_norm(nn.Linear(8, 8))
After:
    layer = torch.nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8))

Experiment:
Measure the largest singular value of the weight that is used: it should be 1.

Source:
PyTorch documentation of torch.nn.utils.spectral_norm; the singular value by torch.linalg.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.escaped import SpectralCold
from traindx.core.text import Text, number
from traindx.signals.where import pointing

ZH = """谱归一化还没更新过就用了

是什么：
``torch.nn.utils.spectral_norm`` 把权重除以最大奇异值的估计。这个估计只在训练模式的前向里逐步变准，推理模式下原样使用。一层若先在推理模式下运行，除以的只是随机向量给出的值。

为什么不报错：
得到的还是普通的权重，只是偏大。

你会看到：
训练前的得分或样本差了一个倍数；始终在推理模式下训练的网络，等于完全没有归一化。

容易混淆的情况：
加载的检查点会带着自己的估计。如果之后还会训练，只有训练前算出来的数不对：这时只给提示。``torch.nn.utils.parametrizations.spectral_norm`` 在构造时就会迭代。

怎么改：
先在训练模式下跑一次前向，或者改用 parametrizations 里的版本。

改前：
    layer = torch.nn.utils.spectral_norm(nn.Linear(8, 8))
改后：
    layer = torch.nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8))

对照实验：
量一量实际使用的权重的最大奇异值：应该是 1。

来源：
PyTorch torch.nn.utils.spectral_norm 文档；奇异值由 torch.linalg 算出。
"""
LEVEL = "warning"
STEP = 1

OFF = 1.3  # times the value that the norm promises (rule of thumb): a trained estimate is right to a few per cent

CAUSE = Text("This forward in eval mode used a weight {shape} under spectral_norm whose largest singular value is {sigma}: its estimate "
             "was never updated.",
             "推理模式下的这次前向，用到了 spectral_norm 下的权重 {shape}，它的最大奇异值是 {sigma}：估计值从未更新过。")
FIX = Text("Run a forward in train mode before, or use torch.nn.utils.parametrizations.spectral_norm.",
           "先在训练模式下跑一次前向，或者改用 torch.nn.utils.parametrizations.spectral_norm。")
SIGMA = Text("largest singular value of the weight in use", "实际使用的权重的最大奇异值")


def check(layers: list[SpectralCold]) -> Iterator[Finding]:
    cold = [(layer.sigma, layer) for layer in layers if layer.sigma is not None and layer.sigma > OFF]
    if cold:
        sigma, worst = max(cold, key=lambda pair: pair[0])
        where, also = pointing(worst.site, worst.made_at)
        yield Finding(cause=CAUSE.fill(shape=list(worst.shape), sigma=number(sigma)), fix=FIX, where=where, also=also,
                      evidence=(Evidence(SIGMA, number(sigma), "1", step=worst.step),), first_step=worst.step,
                      level="note" if worst.updated else None)
