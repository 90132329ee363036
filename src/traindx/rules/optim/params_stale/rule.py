"""The optimizer holds parameters that no running model has.

What it is:
The model was rebuilt, copied or replaced after the optimizer was built. The optimizer goes on stepping the old parameters, which
get no gradient; the model that runs is never changed.

Why it is silent:
A parameter without a gradient is passed over without a word, and the forward and backward of the new model are in order.

What you see:
A loss that does not move at all, with gradients that look healthy.

Look-alikes:
Several models with an optimizer each, and an old optimizer that is no longer stepped.

Fix:
Build the optimizer from the model that is trained, after the last line that replaces the model or its layers.

Before:
    optimizer = Adam(model.parameters())
    model = copy.deepcopy(model)
After:
    model = copy.deepcopy(model)
    optimizer = Adam(model.parameters())

Experiment:
Rebuild the optimizer from the running model: the loss starts to fall.

Source:
PyTorch documentation of torch.optim (construct the optimizer after the model is in its final place).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text
from traindx.signals.learning import Learners, elements, sites_of

ZH = """优化器里的参数不属于任何正在运行的模型

是什么：
建好优化器之后，模型又重建、复制或替换过。优化器一直在更新旧参数，而旧参数没有梯度；真正运行的模型从来没有变过。

为什么不报错：
没有梯度的参数会直接跳过，不作声；新模型的前向和反向也都正常。

你会看到：
损失完全不动，梯度却看着正常。

容易混淆的情况：
几个模型各有优化器；不再调用 step 的旧优化器。

怎么改：
先把模型和层都换好，再用真正要训练的模型建优化器。

改前：
    optimizer = Adam(model.parameters())
    model = copy.deepcopy(model)
改后：
    model = copy.deepcopy(model)
    optimizer = Adam(model.parameters())

对照实验：
用正在运行的模型重建优化器：损失开始下降。

来源：
PyTorch torch.optim 文档（模型就位之后再构造优化器）。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "optim/lr-too-low", "optim/lr-too-high", "loss/constant", "loss/initial-loss-off", "init/gradient-vanishing",
            "optim/missing-zero-grad", "optim/no-step", "optim/grad-not-reset-for-some", "optim/window-lost", "optim/params-missing",
            "optim/frozen-by-accident", "numeric/low-precision-weights")
EXPERIMENT = "all-parameters"

CAUSE = Text("{optimizer} took {steps} step{steps:|s} on {held} parameter{held:|s} that {held:takes|take} part in no loss; the {new} "
             "trainable parameter{new:|s} that {new:does is|do are} in no optimizer.",
             "{optimizer} 走了 {steps} 步，但它持有的 {held} 个参数都不参与损失；真正参与损失的 {new} 个可训练参数不在任何优化器里。")
FIX = Text("Build the optimizer from the model that runs, after the line that replaced it.", "先换好模型，再用正在运行的模型建优化器。")
SEEN = Text("backwards that reached the optimizer's parameters in the last steps", "最后几步里，到达优化器参数的反向传播次数")
MOVED = Text("times that the running model's values changed", "正在运行的模型，参数的值变过几次")


def check(learners: Learners) -> Iterator[Finding]:
    unheld = [leaf for leaf in learners.unheld() if leaf.is_parameter]
    for made in learners.stale():
        held = [id for group in made.parameters for id in group]
        before = max((learners.leaves[id].last_step for id in held if id in learners.leaves), default=0)
        new = [leaf for leaf in unheld if leaf.first_step >= before]
        if elements(new) == 0:
            continue
        steps = learners.rates[made.id].last_step - before
        yield Finding(
            cause=CAUSE.fill(optimizer=made.class_name, steps=steps, held=len(held), new=len(new)),
            fix=FIX,
            where=made.site,
            also=sites_of(learners, new),
            evidence=(Evidence(SEEN, 0, Text("every one", "每一次"), step=before + 1),
                      Evidence(MOVED, f"0 / {min(leaf.compared for leaf in new)}", Text("every step", "每一步"))),
            first_step=before + 1)
