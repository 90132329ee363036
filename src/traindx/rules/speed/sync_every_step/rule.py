"""Values are read out of tensors all the time.

What it is:
``item()``, ``float(t)`` or printing a tensor needs the value now. On a GPU the program then waits until all queued work is done, and the
GPU idles until new work comes. On a CPU one read is nothing, but a loop that reads element by element is slow Python.

Why it is silent:
The values are right.

What you see:
Steps that are slower than the arithmetic in them, and a GPU that is never quite busy.

Look-alikes:
Reading the loss once a step on a CPU costs a microsecond. Reading every hundredth step costs nothing on a GPU either.

Fix:
Keep tensors as tensors, add them up on the device, and read once in a while.

Before:
    for i in range(len(y)):
        correct += int(guess[i].item() == y[i].item())
After:
    correct += (guess == y).sum()

Experiment:
Time a hundred steps without the reads.

Source:
PyTorch performance tuning guide (avoid unnecessary CPU-GPU synchronisation).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.speed import Reads
from traindx.core.text import Text

ZH = """不停地从张量里读数值

是什么：
``item()``、``float(t)``、打印张量，都要求立刻拿到数值。在 GPU 上，程序得等所有排队的计算做完，之后 GPU 又要闲着等新的任务。
在 CPU 上读一次不算什么，但逐个元素地读，就成了很慢的 Python 循环。

为什么不报错：
读到的值是对的。

你会看到：
每一步都比其中的计算量该用的时间长，GPU 总也跑不满。

容易混淆的情况：
在 CPU 上每步读一次损失只要一微秒。在 GPU 上每一百步读一次也没有影响。

怎么改：
让张量留在设备上累加，隔一段时间再读一次。

改前：
    for i in range(len(y)):
        correct += int(guess[i].item() == y[i].item())
改后：
    correct += (guess == y).sum()

对照实验：
去掉这些读取，给一百步计时。

来源：
PyTorch 性能调优指南（避免不必要的 CPU-GPU 同步）。
"""
LEVEL = "note"
STEP = 6

ONE_BY_ONE = 30  # reads a step from one line: element by element (rule of thumb)
WAITING = 0.1  # of the step's time (rule of thumb)
STEPS = 3

CAUSE = Text("This line reads {count} value{count:|s} out of tensors at every step, one by one.",
             "这一行每一步都从张量里逐个读出 {count} 个数值。")
CAUSE_WAIT = Text("This line waits for the device {count} time{count:|s} a step; the waiting is {share} % of the step.",
                  "这一行每一步要等设备 {count} 次，等待占每步时间的 {share} %。")
FIX = Text("Compute on whole tensors and read the result once, or only every so many steps.", "对整个张量计算，结果只读一次，或者隔若干步再读。")
COUNT = Text("reads a step, from this line", "这一行每步读取的次数")
SHARE = Text("share of the step's time", "占每步时间的比例")


def check(reads: list[Reads]) -> Iterator[Finding]:
    for line in sorted(reads, key=lambda line: (-line.share, -line.count)):
        waits = line.device != "cpu" and line.count >= 1 and line.share > WAITING
        if line.steps >= STEPS and (waits or line.count >= ONE_BY_ONE):
            cause = CAUSE_WAIT.fill(count=line.count, share=round(100 * line.share)) if waits else CAUSE.fill(count=line.count)
            yield Finding(cause=cause, fix=FIX, where=line.site,
                          evidence=(Evidence(COUNT, line.count), Evidence(SHARE, round(line.share, 3), f"< {WAITING}")))
            return
