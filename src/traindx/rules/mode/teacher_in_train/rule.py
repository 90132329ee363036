"""The teacher runs with dropout on.

What it is:
A model that gives targets to another one (a teacher, a target network, a frozen reference) and learns nothing itself is
run in train mode, so its dropout drops values while it sets the targets.

Why it is silent:
Frozen weights and ``no_grad`` leave the modes alone. A wrapper's ``train()`` also switches the teacher inside it back.

What you see:
Noisy targets: the student stops above the loss that it could reach, and more so the better the teacher is.

Look-alikes:
Momentum encoders (MoCo, BYOL) keep BatchNorm in train mode on purpose. Mean Teacher calls ``train()`` on its teacher,
an average of the student, itself. A frozen backbone whose features go into the trained net may keep its dropout as noise.

Fix:
Put the teacher in eval mode, and again after every ``train()`` of a module that holds it.

Before:
    teacher.requires_grad_(False)
After:
    teacher.requires_grad_(False).eval()

Experiment:
Run the teacher twice on the same batch: in eval mode the targets are equal.

Source:
Hinton, Vinyals, Dean 2015: Distilling the knowledge in a neural network (targets are the trained net's predictions).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.mode import ForwardPass
from traindx.core.observed.program import Window
from traindx.core.text import Text

ZH = """教师模型开着 dropout

是什么：
一个只提供目标、自己不学习的模型（教师、目标网络、冻结的参考模型）处于训练模式，它在给出目标的同时还在随机丢弃。

为什么不报错：
冻结权重和 ``no_grad`` 都不改变模式。外层模块调用 ``train()`` 时，还会把里面的教师一起切回训练模式。

你会看到：
目标带噪声：学生的损失停在比应有水平更高的位置，教师越好，差得越多。

容易混淆的情况：
动量编码器（MoCo、BYOL）故意让 BatchNorm 处于训练模式。Mean Teacher 的教师是学生的滑动平均，程序会自己对它调用 ``train()``。
冻结的主干网络如果把特征送进正在训练的网络，它的 dropout 可以当作噪声保留。

怎么改：
让教师处于推理模式；凡是包含它的模块调用过 ``train()``，都要再切一次。

改前：
    teacher.requires_grad_(False)
改后：
    teacher.requires_grad_(False).eval()

对照实验：
同一个 batch 让教师跑两遍：在推理模式下，两次的目标相同。

来源：
Hinton、Vinyals、Dean 2015《Distilling the knowledge in a neural network》。
"""
LEVEL = "warning"
STEP = 3
EXPLAINS = ("curve/plateau", "curve/noise-sized-gain")

IN_STEP = 0.5  # of the steps since it first ran: it takes part in the training step itself
FEWEST = 5  # of them, each with such a forward: many batches after one step are an evaluation
CAUSE = Text(
    "{model} learns nothing and only sets targets, yet it runs here in train mode: its dropout is at work.",
    "{model} 自己不学习，只提供目标，在这里却处于训练模式：dropout 在起作用。")
FIX = Text("Call eval() on it after it is made, and after every train() of a module that holds it.",
           "建好之后就对它调用 eval()；包含它的模块每次调用 train()，之后都要再调用一次。")
FORWARDS = Text("forwards in train mode, none followed by a backward", "训练模式下的前向次数，之后都没有反向传播")
DROPOUTS = Text("dropouts active in such a forward", "这样一次前向里起作用的 dropout 数")
BECAUSE = Text("a noisy teacher may be meant", "也可能是有意让教师带噪声")


def check(passes: list[ForwardPass], windows: list[Window] | None) -> Iterator[Finding]:
    learners = any(each.backward for each in passes)
    told = {event.who for window in windows or [] for event in window.events if event.what == "train"}
    for each in passes:
        # a moving average of the student: switched on purpose (Mean Teacher), or by the statistics of its batches (BYOL, MoCo)
        meant = each.twin_of and (each.model in told or each.batch_stats)
        if learners and not meant and _sets_targets(each, passes) and each.dropping and each.training:
            yield _finding(each)


def _sets_targets(each: ForwardPass, passes: list[ForwardPass]) -> bool:
    """No learner, run within the steps, and its output goes into no other model."""
    learns = each.learning or any(other.backward and other.last_step >= each.first_step for other in passes if other.model == each.model)
    return (not learns and each.parameters > 0 and each.idle_windows >= max(FEWEST, IN_STEP * each.steps)
            and each.fed_on < each.idle / 2)


def _finding(each: ForwardPass) -> Finding:
    return Finding(
        cause=CAUSE.fill(model=each.class_name), fix=FIX, where=each.site,
        also=(each.switched_at,) if each.switched_at else (),
        evidence=(Evidence(FORWARDS, each.idle, "0", step=each.first_step), Evidence(DROPOUTS, each.dropping, "0")),
        first_step=each.first_step, confidence="likely", because=BECAUSE)
