"""Many small operations.

What it is:
Each call of an operation costs some microseconds in Python and dispatch, and on a GPU a kernel launch, whatever its size. A loop of
operations on a few hundred elements pays that price again and again: the calls cost more than the arithmetic.

Why it is silent:
The result is the same as that of one large operation.

What you see:
A step that takes as long with twice the batch. A GPU that is busy for only a part of the time, with hundreds of kernels a step.

Look-alikes:
A large matrix product on a small batch also takes no longer with more samples: there it is the weights that are read, and the operation is
not small. A graph that grows from step to step has many operations too, and another cause.

Fix:
Do the loop's work in one operation on a larger tensor (stack, matmul, bmm, einsum), take a larger batch, or compile.

Before:
    for column in range(x.shape[1]):
        total = total + x[:, column] * weight[column]
After:
    total = x @ weight

Experiment:
``traindx speed`` gives the same batch twice and four times over in one: with small operations the step hardly takes longer.

Source:
Horace He, Making Deep Learning Go Brrrr From First Principles (overhead).
"""
from __future__ import annotations

ZH = """大量细碎的算子

是什么：
每次调用算子，Python 和分发都要花几微秒，在 GPU 上还要启动一次 kernel，和算子大小无关。
在几百个元素上循环调用，就一次次付这份开销：调用比计算还贵。

为什么不报错：
结果和一次大张量操作完全一样。

你会看到：
batch 加倍，一步的用时不变。GPU 只有一部分时间在忙，一步里却有几百个 kernel。

容易混淆的情况：
小 batch 上的大矩阵乘法，样本变多也不变慢：那里的开销在读权重，算子并不小。计算图一步步变大时算子也很多，但病因不同。

怎么改：
把循环里的计算合成一次大张量操作（stack、matmul、bmm、einsum），加大 batch，或者用 torch.compile。

改前：
    for column in range(x.shape[1]):
        total = total + x[:, column] * weight[column]
改后：
    total = x @ weight

对照实验：
``traindx speed`` 把同一个 batch 重复两遍、四遍拼成一个：算子细碎时，一步几乎不变慢。

来源：
Horace He，《Making Deep Learning Go Brrrr From First Principles》（overhead 一节）。
"""
LEVEL = "warning"
STEP = 6
JUDGED_BY = "speed"
