"""Layers in a plain list or dict are used but never trained.

What it is:
Layers (or weights) are kept in a Python list, dict or plain attribute of a module. The forward uses them, but ``parameters()`` does
not know them, so that the optimizer never gets them.

Why it is silent:
Calling such a layer works like calling any other; only registration through ``nn.Module`` attributes, ``ModuleList``, ``ModuleDict`` or
``nn.Parameter`` makes it part of the model.

What you see:
A parameter count that is too small, a deep network no better than a shallow one, layers missing from ``state_dict`` and left behind
by ``to(device)``.

Look-alikes:
A frozen loss network kept out of the model on purpose, layers with optimizers of their own, functional networks.

Fix:
Wrap the list in ``nn.ModuleList`` (a dict in ``nn.ModuleDict``), a bare tensor in ``nn.Parameter``.

Before:
    self.hidden = [nn.Linear(64, 64) for _ in range(4)]
After:
    self.hidden = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

Experiment:
Add these parameters to the optimizer: the loss falls further.

Source:
PyTorch documentation of ModuleList ("modules it contains are properly registered").
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.text import Text, same
from traindx.signals.learning import Learners, elements, sites_of

ZH = """放在普通列表或字典里的层在用，却从不训练

是什么：
层（或权重）放在模块的 Python 列表、字典或普通属性里。前向会用到它们，但 ``parameters()`` 看不到，优化器也就拿不到。

为什么不报错：
调用这样的层和调用别的层没有两样；只有通过 ``nn.Module`` 属性、``ModuleList``、``ModuleDict`` 或 ``nn.Parameter`` 注册，它才属于模型。

你会看到：
参数总数偏小；网络加深了却不比浅的好；``state_dict`` 里没有这些层，``to(device)`` 也会漏掉它们。

容易混淆的情况：
有意不注册的冻结损失网络；各有优化器的层；函数式的网络。

怎么改：
列表换成 ``nn.ModuleList``，字典换成 ``nn.ModuleDict``，裸张量换成 ``nn.Parameter``。

改前：
    self.hidden = [nn.Linear(64, 64) for _ in range(4)]
改后：
    self.hidden = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

对照实验：
把这些参数加进优化器：损失降得更低。

来源：
PyTorch ModuleList 文档（其中的模块会正确注册）。
"""
LEVEL = "error"
STEP = 1
EXPLAINS = ("curve/*", "optim/params-missing", "optim/params-stale", "optim/lr-too-low", "optim/missing-zero-grad", "optim/window-lost",
            "optim/grad-not-reset-for-some", "init/gradient-vanishing", "init/symmetric", "loss/constant", "mode/eval-missing",
            "optim/no-step", "init/activation-collapse", "optim/frozen-by-accident")
EXPERIMENT = "all-parameters"

CAUSE = Text("{owner} uses {layers} that it does not register ({count} element{count:|s}): parameters() leaves them out, no optimizer "
             "holds them, they never moved.",
             "{owner} 用到了 {layers}，却没有注册（{count} 个元素）：parameters() 里没有它们，哪个优化器也拿不到，它们从未动过。")
FIX = Text("Put the layers into nn.ModuleList or nn.ModuleDict (a tensor into nn.Parameter) before the optimizer is built.",
           "在建优化器之前，把这些层放进 nn.ModuleList 或 nn.ModuleDict（张量用 nn.Parameter）。")
OUTSIDE = Text("elements that get gradients but are not among the model's parameters", "有梯度、却不在模型参数里的元素")


def check(learners: Learners) -> Iterator[Finding]:
    lost = [leaf for leaf in learners.missing() if not leaf.registered and leaf.id not in learners.current]
    if not lost:
        return
    sites = sites_of(learners, lost)
    kinds = sorted({leaf.module if leaf.module and leaf.name in ("weight", "bias") else learners.name(leaf) for leaf in lost})
    made = learners.optimizer_for(learners.learning())
    yield Finding(
        cause=CAUSE.fill(owner=same(lost[0].owner) if lost[0].owner else Text("the model",
                                                                                "模型"), layers=", ".join(kinds[:4]), count=elements(lost)),
        fix=FIX,
        where=sites[0] if sites else made.site if made else None,
        also=(*sites[1:3], *((made.site,) if made and made.site else ())),
        evidence=(Evidence(OUTSIDE, elements(lost), Text("0", "0"), step=lost[0].first_step),),
        first_step=min(leaf.first_step for leaf in lost))
