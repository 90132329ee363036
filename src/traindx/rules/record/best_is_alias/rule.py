"""The best weights are the live weights.

What it is:
``best = model.state_dict()`` (or ``best = model``) keeps references, not a copy. Every later optimizer step writes into the very
tensors that were meant to be kept, so what is restored or saved as the best epoch is the last one.

Why it is silent:
Loading the "best" weights back works without a word: it copies each tensor onto itself.

What you see:
The restored model does not have the score that was printed for its best epoch, but that of the last epoch.

Look-alikes:
copy.deepcopy(model.state_dict()), a dict of clones, or a torch.save at once are copies and are right. Copying weights to another
model at once (a target or teacher net) is right too, and so is an average of weights that is written by hand.

Fix:
Copy when you keep.

Before:
    best = model.state_dict()
After:
    best = copy.deepcopy(model.state_dict())

Experiment:
Keep a deep copy beside it and compare both at the end: they differ in every trained tensor.

Source:
PyTorch tutorial "Saving and Loading Models" (best_model_state must be a deepcopy).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed import Site
from traindx.core.observed.checkpoints import FileSaved, Kept, SecondName, WeightsLoaded
from traindx.core.text import Text

ZH = """留下的「最佳权重」其实就是正在训练的权重

是什么：
``best = model.state_dict()``（或 ``best = model``）留下的只是引用，不是副本。之后每一步优化器都在改写这些张量，
所以最后恢复或保存的「最佳轮」其实是最后一轮。

为什么不报错：
把「最佳权重」再装回模型时一切正常：只不过是每个张量抄回自己身上。

你会看到：
恢复后的模型达不到最佳那一轮打印的分数，和最后一轮一样。

容易混淆的情况：
copy.deepcopy(model.state_dict())、逐个 clone、当场 torch.save 都是真正的副本，没有问题。当场把权重抄给另一个模型（目标网络、教师网络），
或者自己动手写权重平均，也没有问题。

怎么改：
要留，就先复制。

改前：
    best = model.state_dict()
改后：
    best = copy.deepcopy(model.state_dict())

对照实验：
同时另存一份深拷贝，训练结束后比较：凡是训练过的张量都不一样。

来源：
PyTorch 教程 Saving and Loading Models（best_model_state 必须 deepcopy）。
"""
LEVEL = "error"
STEP = 0
EXPLAINS = ("curve/overfitting", "curve/train-val-gap")

CAUSE = Text(
    "The weights {used} at step {now} are those that state_dict() returned at step {then}, but as references: "
    "training went on and changed them, so they are the latest weights, not the ones that were kept.",
    "第 {now} 步{used}的权重，是第 {then} 步 state_dict() 返回的，可是那只是引用：之后的训练一直在改写它们，所以这其实是最新的权重，"
    "不是当时想留下的那一份。")
CAUSE_NAME = Text(
    "{name} is only a second name for {other}: both are the same module, so every later step trains the \"best\" model too.",
    "{name} 只是 {other} 的另一个名字：两者是同一个模块，之后的每一步训练，都会把「最佳模型」也一起改掉。")
LOADED, SAVED = Text("loaded", "加载"), Text("saved", "保存")
FIX = Text("Keep a copy: copy.deepcopy(model.state_dict()), or save it to a file at once.",
           "留一份副本：copy.deepcopy(model.state_dict())，或者当场存成文件。")
FIX_NAME = Text("Keep a copy: {name} = copy.deepcopy({other}).", "留一份副本：{name} = copy.deepcopy({other})。")
SHARED = Text("kept tensors that share memory with parameters in training", "留下的张量里，与训练中的参数共用内存的个数")
NONE = Text("none", "0 个")
STEPS = Text("optimizer steps between keeping and use", "从留下到使用，中间隔的优化器步数")
SAME = Text("object that {name} stands for", "{name} 所指的对象")
OWN_COPY = Text("a copy", "一份副本")
ASSIGNED = Text("seen: both names hold the same module; from the source: {name} is assigned where the score improves",
                "实测：两个名字指向同一个模块；源码：{name} 是在分数变好的分支里赋值的")


def check(loads: list[WeightsLoaded] | None, saves: list[FileSaved] | None, names: list[SecondName] | None) -> Iterator[Finding]:
    loads = loads or []
    for used, events in ((LOADED, loads), (SAVED, saves or [])):
        for event in events:
            if event.kept is not None and _is_fault(event.kept, event.step, saved=used is SAVED):
                yield _finding(event.kept, event.site, event.step, used)
    for name in names or []:
        if not any(load.model == name.model and load.step >= name.step and load.from_file for load in loads):
            yield _named(name)


def _is_fault(kept: Kept, now: int, saved: bool) -> bool:
    """Taken, trained on, then used. A state taken before any training and saved later is meant to be the live one."""
    return kept.trained and kept.changed is not False and kept.step < now and not (saved and kept.step <= 1)


def _finding(kept: Kept, site: Site | None, now: int, used: Text) -> Finding:
    return Finding(
        cause=CAUSE.fill(used=used, now=now, then=kept.step), fix=FIX, where=kept.site or site,
        also=tuple(s for s in (site,) if s is not None),
        evidence=(Evidence(SHARED, kept.tensors, NONE, step=now), Evidence(STEPS, now - kept.step, step=now)), first_step=kept.step)


def _named(name: SecondName) -> Finding:
    return Finding(
        cause=CAUSE_NAME.fill(name=name.name, other=name.other), fix=FIX_NAME.fill(name=name.name, other=name.other), where=name.site,
        also=tuple(s for s in (name.used_at,) if s is not None),
        evidence=(Evidence(SAME.fill(name=name.name), name.other, OWN_COPY, step=name.step),), first_step=name.step,
        confidence="likely", because=ASSIGNED.fill(name=name.name))
