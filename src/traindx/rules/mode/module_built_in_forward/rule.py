"""A layer is built anew in every forward.

What it is:
A module with weights or dropout is constructed inside ``forward``. Its weights are drawn afresh each time and no
optimizer holds them; a dropout made there is always in train mode, for ``eval()`` never reaches it.

Why it is silent:
The call is legal and the shapes fit. The layers around it learn to live with a random one.

What you see:
A loss that stays noisy and high, results that differ from call to call, and fewer parameters than you wrote.

Look-alikes:
A layer that is built at the first call and kept is fine. Hypernetworks compute weights and use functional calls.
Activations and losses have neither weights nor a mode, so building them in forward is only untidy.

Fix:
Build the layer in ``__init__`` and call it in ``forward``.

Before:
    def forward(self, x):
        return nn.Dropout(0.5)(self.body(x))
After:
    def __init__(self):
        self.drop = nn.Dropout(0.5)
    def forward(self, x):
        return self.drop(self.body(x))

Experiment:
Run the same input twice in eval mode: the outputs differ as long as the layer is built in forward.

Source:
PyTorch documentation of Module (submodules are assigned in the constructor); Module.train reaches registered children.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.mode import ModuleBuilt
from traindx.core.text import Text

ZH = """每次前向都新建一个层

是什么：
带权重或 dropout 的模块在 ``forward`` 里现建。它的权重每次都重新随机，没有优化器管它；
在那里建的 dropout 永远处于训练模式，``eval()`` 到不了它。

为什么不报错：
语法合法，形状也对得上。周围的层会学着将就这个随机层。

你会看到：
损失一直又高又抖，同一输入每次结果不同，参数量比你写的少。

容易混淆的情况：
第一次调用时建好并保存下来的层没有问题。超网络是算出权重后用函数式调用。
激活函数和损失既没有权重也没有模式，在 forward 里建只是不整洁。

怎么改：
在 ``__init__`` 里建好，在 ``forward`` 里调用。

改前：
    def forward(self, x):
        return nn.Dropout(0.5)(self.body(x))
改后：
    def __init__(self):
        self.drop = nn.Dropout(0.5)
    def forward(self, x):
        return self.drop(self.body(x))

对照实验：
在推理模式下把同一个输入跑两遍：只要这一层还在 forward 里建，两次输出就不同。

来源：
PyTorch 文档 Module：子模块应在构造函数里赋值；Module.train 只到达已注册的子模块。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("mode/dropout-always-on", "mode/eval-missing", "mode/graph-in-validation", "optim/params-missing",
            "optim/unregistered-layers", "loss/not-connected", "curve/*", "repro/*", "init/*", "optim/lr-too-low")
EXPERIMENT = "same-input-twice"

FORWARDS = 4
SHARE = 0.5  # of the forwards since the first; a cache that is filled now and then stays below
CAUSE_WEIGHTS = Text(
    "{name} with {weights} trainable value{weights:|s} is built here in {count} of {total} forward{total:|s}: new random weights each time.",
    "{total} 次前向里有 {count} 次，在这里新建了 {name}，它带有 {weights} 个可训练的值：每次都是新的随机权重。")
CAUSE_DROPOUT = Text(
    "{name} is built here in {count} of {total} forward{total:|s}, so it is always in train mode: eval() cannot reach it.",
    "{total} 次前向里有 {count} 次，在这里新建了 {name}，它因此永远处于训练模式：eval() 到不了它。")
FIX = Text("Build it once in __init__ and call it in forward.", "在 __init__ 里建一次，在 forward 里调用。")
BUILT = Text("forwards that built it", "新建它的前向次数")
EVAL = Text("of them in eval mode, with the dropout at work", "其中处于推理模式、dropout 却仍起作用的次数")


def check(built: list[ModuleBuilt] | None) -> Iterator[Finding]:
    for each in built or []:
        if each.forwards >= FORWARDS and each.forwards >= SHARE * each.of_forwards:
            yield _finding(each)


def _finding(each: ModuleBuilt) -> Finding:
    cause = CAUSE_WEIGHTS if each.weights else CAUSE_DROPOUT
    evidence = [Evidence(BUILT, f"{each.forwards} / {each.of_forwards}", "0", step=each.step)]
    if each.in_eval:
        evidence.append(Evidence(EVAL, each.in_eval, "0"))
    return Finding(
        cause=cause.fill(name=each.class_name, weights=str(each.weights), count=str(each.forwards), total=str(each.of_forwards)),
        fix=FIX, where=each.site, also=(each.forward_site,) if each.forward_site else (), evidence=tuple(evidence),
        first_step=each.step)
