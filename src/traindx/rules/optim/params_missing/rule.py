"""Trainable parameters are in no optimizer.

What it is:
Some parameters take part in the loss and receive gradients, but no optimizer holds them: a head that was replaced after the
optimizer was built, one of two networks, a loss with weights of its own.

Why it is silent:
An optimizer never asks what it was not given. The other layers adapt to the random ones that stand still, so that the loss falls.

What you see:
Slow learning that stops early, and parts of the model that are bit-equal before and after training.

Look-alikes:
Frozen backbones, teachers and target networks, layers loaded from a checkpoint and kept on purpose, networks with an optimizer of
their own (a GAN), and layers that a second optimizer takes over later.

Fix:
Build the optimizer after the last change of the model, from all its parameters, or add the new ones with ``add_param_group``.

Before:
    optimizer = Adam(model.parameters())
    model.fc = nn.Linear(24, 5)
After:
    model.fc = nn.Linear(24, 5)
    optimizer = Adam(model.parameters())

Experiment:
Add the missing parameters to the optimizer: if they mattered, the loss falls further.

Source:
PyTorch documentation of torch.optim (an optimizer updates the parameters it was constructed with).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.learning import Leaf
from traindx.core.text import Text
from traindx.signals.learning import Learners, elements, sites_of
from traindx.signals.traces import TrainingTraces

ZH = """有可训练参数不在任何优化器里

是什么：
有些参数参与了损失，也拿到了梯度，却不在任何优化器里：比如建好优化器之后才换的输出头，两个网络只交了一个，或者自带权重的损失。

为什么不报错：
优化器只管交给它的参数，从不过问别的。其余的层会去迁就这些不动的随机层，损失照样往下走。

你会看到：
学得慢，很早就停住；训练前后，模型的一部分逐位相同。

容易混淆的情况：
冻结的骨干、教师网络、目标网络、从检查点加载后有意不训练的层、各有优化器的网络（GAN），以及稍后交给第二个优化器的层。

怎么改：
模型全部改完以后再建优化器，把所有参数都交给它；或者用 ``add_param_group`` 补上新参数。

改前：
    optimizer = Adam(model.parameters())
    model.fc = nn.Linear(24, 5)
改后：
    model.fc = nn.Linear(24, 5)
    optimizer = Adam(model.parameters())

对照实验：
把漏掉的参数加进优化器：如果它们重要，损失会降得更低。

来源：
PyTorch torch.optim 文档（优化器只更新构造时交给它的参数）。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "optim/params-stale", "optim/lr-too-low", "loss/constant", "init/gradient-vanishing", "optim/window-lost",
            "optim/grad-not-reset-for-some", "optim/missing-zero-grad", "init/symmetric", "optim/frozen-by-accident")
EXPERIMENT = "all-parameters"

CAUSE = Text("{names}: {count} trainable element{count:|s} {count:gets|get} gradients but {count:is|are} in no optimizer, and never "
             "moved in {walks} step{walks:|s} looked at.",
             "{names}：{count} 个可训练元素有梯度，却不在任何优化器里；抽查的 {walks} 步里，它们从未动过。")
FIX = Text("Build the optimizer after the model is complete, from all its parameters, or pass these to add_param_group.",
           "等模型建完再建优化器，把所有参数都交给它；或者用 add_param_group 补上这些参数。")
FIX_BY_HAND = Text("Update these tensors too: add them to the list that the hand-written update goes through.",
                   "这些张量也要更新：把它们加进手写更新所遍历的列表。")
CAUSE_THAWED = Text("{names}: {count} element{count:|s} {count:was|were} unfrozen at step {step} and {count:gets|get} gradients since "
                    "then, but the optimizer that steps was built without them: they have not moved in {walks} step{walks:|s} looked at.",
                    "{names}：{count} 个元素在第 {step} 步解冻，此后一直有梯度，可是正在用的优化器建立时没有它们；之后抽查的 {walks} 步里，"
                    "它们从未动过。")
FIX_THAWED = Text("Build the optimizer after unfreezing, from all trainable parameters, or pass the unfrozen ones to add_param_group.",
                  "先解冻，再用所有可训练的参数建优化器；或者把解冻的参数交给 add_param_group。")
UNNAMED = Text("Tensors outside any module", "不属于任何模块的张量")
MOVED = Text("times that their values changed", "它们的值变过几次")
SHARE = Text("trainable elements that take part in the loss but are in no optimizer", "参与损失、却不在任何优化器里的可训练元素")
EXPECTED = Text("0", "0")


def check(learners: Learners, traces: TrainingTraces | None) -> Iterator[Finding]:
    if thawed := learners.thawed():
        yield _of_thawed(learners, thawed)
        return
    missing = [leaf for leaf in learners.missing() if leaf.registered]
    learning = learners.learning()
    if not missing or not learning or learners.stale():
        return
    made = learners.optimizer_for(missing)
    updates = traces.update_sites() if traces else []
    where = made.site if made else updates[0] if updates else None
    total = elements(missing) + elements(learning)
    yield Finding(
        cause=CAUSE.fill(names=learners.listed(missing) or UNNAMED, count=elements(missing), walks=missing[0].took_part),
        fix=FIX if made else FIX_BY_HAND,
        where=where,
        also=sites_of(learners, missing),
        evidence=(Evidence(SHARE, f"{elements(missing)} / {total}", EXPECTED),
                  Evidence(MOVED, f"0 / {min(leaf.compared for leaf in missing)}", Text("every step", "每一步"))),
        first_step=min(leaf.first_step for leaf in missing),
        confidence="likely" if elements(missing) < 0.001 * total else "certain",
        because=Text("they are very few, which may be meant", "它们很少，也可能是有意的"))


def _of_thawed(learners: Learners, thawed: list[Leaf]) -> Finding:
    since = min(leaf.thawed for leaf in thawed)
    made = learners.optimizer_for(thawed, learners.stepped_after(since))
    looked = min(leaf.thawed_compared for leaf in thawed)
    return Finding(
        cause=CAUSE_THAWED.fill(names=learners.listed(thawed) or UNNAMED, count=elements(thawed), step=since, walks=looked), fix=FIX_THAWED,
        where=made.site if made else None, also=sites_of(learners, thawed),
        evidence=(Evidence(SHARE, f"{elements(thawed)} / {elements(thawed) + elements(learners.learning())}", EXPECTED),
                  Evidence(MOVED, f"0 / {looked}", Text("every step", "每一步"))), first_step=since)
