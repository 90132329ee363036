"""Python between the operations.

What it is:
The loop itself computes: lists are built, samples are compared one by one, statistics are kept in Python. The model waits meanwhile, and so does
a GPU, once its queue is empty.

Why it is silent:
The numbers are right, and no profiler of operations shows what stands between them.

What you see:
Steps that are much longer than forward, backward and update together; a processor core at 100 % and a GPU that is not.

Look-alikes:
A batch that the loop makes itself, without a DataLoader, is fetching: ``traindx speed`` looks for the lines that make it. Only where it
cannot tell them from the training are they Python here too. What waits for a value is ``speed/sync-every-step``.

Fix:
Take it out of the loop, or do it on whole tensors.

Before:
    hits += sum(1 for a, b in zip(guess.tolist(), y.tolist()) if a == b)
After:
    hits += (guess == y).sum()

Experiment:
``traindx speed`` looks at the stack every 2 ms: the line's share of the step is what it costs.

Source:
Horace He, Making Deep Learning Go Brrrr From First Principles (overhead); PyTorch performance tuning guide.
"""
from __future__ import annotations

ZH = """算子之间的 Python

是什么：
训练循环自己在计算：拼列表、逐个比较样本、用 Python 统计指标。这时模型在等；GPU 的队列空了，也跟着等。

为什么不报错：
数值是对的，而只看算子的 profiler 又看不到算子之间的时间。

你会看到：
一步的用时比前向、反向、更新加起来长得多；一个 CPU 核跑满，GPU 却跑不满。

容易混淆的情况：
不用 DataLoader、自己写代码造 batch，算作取数据：``traindx speed`` 会找出是哪几行；只有分不清它们和训练时，才算在这里。
等一个数值的情况属于 ``speed/sync-every-step``。

怎么改：
把它移出循环，或者改成整块张量的操作。

改前：
    hits += sum(1 for a, b in zip(guess.tolist(), y.tolist()) if a == b)
改后：
    hits += (guess == y).sum()

对照实验：
``traindx speed`` 每 2 毫秒看一次调用栈：这一行占每步的比例就是它的开销。

来源：
Horace He，《Making Deep Learning Go Brrrr From First Principles》（overhead 一节）；PyTorch 性能调优指南。
"""
LEVEL = "warning"
STEP = 6
JUDGED_BY = "speed"
