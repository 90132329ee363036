"""A checkpoint was loaded, and none of it arrived.

What it is:
``load_state_dict(..., strict=False)`` passes over every name that it does not know. Where all names differ (a ``module.`` prefix, a
renamed block) or a filter by name left nothing over, the model keeps its random weights.

Why it is silent:
strict=False was asked to be silent. The names that did not match are only in the value that it returns.

What you see:
"Pretrained" weights that start at chance and learn no faster than random ones.

Look-alikes:
Adapters (LoRA) give few tensors, but all of them fit. A backbone without its head fits but for the head. An encoder that is
taken out of a larger checkpoint is filled completely although much was left over.

Fix:
Look at the value that load_state_dict returns, and mend the names.

Before:
    model.load_state_dict(weights, strict=False)
After:
    weights = {name.removeprefix("module."): value for name, value in weights.items()}
    model.load_state_dict(weights)

Experiment:
Load with strict=True: the error lists the names.

Source:
PyTorch documentation of Module.load_state_dict (missing_keys and unexpected_keys of its result).
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.findings import Evidence, Finding
from traindx.core.observed.checkpoints import FileRead, WeightsLoaded
from traindx.core.text import Text, same

ZH = """检查点加载了，却什么也没装进去

是什么：
``load_state_dict(..., strict=False)`` 会跳过所有不认识的名字。如果名字全都对不上（多了 ``module.`` 前缀、模块改了名），
或者按名字筛选之后一个不剩，模型里就还是随机权重。

为什么不报错：
strict=False 的意思就是不要报错。哪些名字没对上，只写在它的返回值里。

你会看到：
用了「预训练权重」，起点却和瞎猜一样，学得也不比随机初始化快。

容易混淆的情况：
适配器（LoRA）给的张量很少，但全都对得上。去掉分类头的主干，除了头都对得上。从大检查点里取出的编码器会装满，尽管还剩下很多没用上。

怎么改：
看一眼 load_state_dict 的返回值，把名字改对。

改前：
    model.load_state_dict(weights, strict=False)
改后：
    weights = {name.removeprefix("module."): value for name, value in weights.items()}
    model.load_state_dict(weights)

对照实验：
改用 strict=True 加载：报错信息会列出对不上的名字。

来源：
PyTorch Module.load_state_dict 文档（返回值中的 missing_keys 与 unexpected_keys）。
"""
LEVEL = "error"
STEP = 0
EXPLAINS = ("loss/initial-loss-off", "curve/*", "optim/lr-too-low", "optim/frozen-by-accident")

FEW = 0.2  # rule of thumb: below it on both sides, what fits fits by chance (counters, norms of equal name)

CAUSE = Text("Of {given} tensor{given:|s} given to load_state_dict, {matched} had a name that the model knows (of its {own}): {rest}.",
             "交给 load_state_dict 的 {given} 个张量里，名字和模型对得上的有 {matched} 个（模型共有 {own} 个）：{rest}。")
NAMES = Text("it was given {unexpected}, the model wants {missing}", "给的是 {unexpected}，模型要的是 {missing}")
NOTHING = Text("nothing was left to load, so the weights stay as they were", "一个可加载的也没剩下，权重原封不动")
CAUSE_ITSELF = Text("{path} was read, but the {given} tensor{given:|s} that the model then loaded are its own, unchanged: no name or shape "
                    "in the file fitted.",
                    "程序读取了 {path}，可是模型随后加载的 {given} 个张量就是它自己的，没有变过：文件里没有一个名字或形状对得上。")
FIX = Text("Make the names fit (strip the prefix, rename), then load with strict=True, or check missing_keys and unexpected_keys.",
           "把名字对上（去掉前缀或改名），再用 strict=True 加载，或者检查返回的 missing_keys 和 unexpected_keys。")
MATCHED = Text("tensors whose name fitted", "名字对得上的张量")
INFERRED = Text("inferred: a file was read just before, and the model loaded its own tensors",
                "推断：刚读取过文件，而模型加载的是它自己的张量")


def check(loads: list[WeightsLoaded], files: list[FileRead] | None) -> Iterator[Finding]:
    for load in loads:
        if load.strict is False and load.own and load.matched <= FEW * load.own and load.matched <= FEW * load.given:
            yield _unmatched(load)
        elif load.given and load.itself == load.given and load.kept is None and (file := _unused(load, loads, files or [])):
            yield _itself(load, file)


def _unused(load: WeightsLoaded, loads: list[WeightsLoaded], files: list[FileRead]) -> FileRead | None:
    """The weights file that was read in the same step and of which no module loaded anything."""
    if any(other.from_file for other in loads if other.step == load.step):
        return None
    return next((file for file in files if file.step == load.step and file.tensors), None)


def _unmatched(load: WeightsLoaded) -> Finding:
    rest = NAMES.fill(unexpected=", ".join(load.unexpected), missing=", ".join(load.missing)) if load.unexpected else NOTHING
    return Finding(
        cause=CAUSE.fill(given=load.given, matched=load.matched, own=load.own, rest=rest), fix=FIX, where=load.site,
        evidence=(Evidence(MATCHED, load.matched, same(str(load.own)), step=load.step),), first_step=load.step)


def _itself(load: WeightsLoaded, file: FileRead) -> Finding:
    return Finding(
        cause=CAUSE_ITSELF.fill(path=file.path.rsplit("/", 1)[-1], given=load.given), fix=FIX, where=load.site,
        also=(file.site,) if file.site else (), evidence=(Evidence(MATCHED, 0, same(str(load.own)), step=load.step),),
        first_step=load.step, confidence="likely", because=INFERRED)
