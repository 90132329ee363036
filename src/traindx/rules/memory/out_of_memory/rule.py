"""Memory ran out.

What it is:
An allocation could not be given, and the program ended. What filled the memory is one of four things: activations (they grow with the
batch and the length), the states (weights, gradients and optimizer, which do not), one tensor of an unforeseen size, or memory that
the GPU's allocator holds in pieces too small to use.

Why it is silent:
It is not, but its message names the last allocation, which is rarely what filled the memory.

What you see:
``CUDA out of memory`` or ``DefaultCPUAllocator: can't allocate memory``, at the first step, at the longest batch, or after hours.

Look-alikes:
Memory that grows from step to step runs out in the end too: then memory/graph-kept or memory/growth names what keeps it.

Fix:
By what filled it: activations: halve the batch and accumulate, then checkpointing; states: a fused or 8-bit optimizer, sharding;
one tensor: look at the shapes of that line.

Before:
    loader = DataLoader(data, batch_size=64)
After:
    loader = DataLoader(data, batch_size=32)  # and step every second batch, the loss divided by 2

Experiment:
``traindx memory SCRIPT --gpu ...`` traces the same script without allocating it, and tells what each remedy would give.

Source:
PyTorch FAQ, "My model reports cuda runtime error(2): out of memory"; Rajbhandari et al. 2020 (ZeRO) for the states.
"""
from __future__ import annotations

from collections.abc import Iterator

from traindx.core.amounts import size
from traindx.core.findings import Evidence, Finding
from traindx.core.observed.memory import OutOfMemory
from traindx.core.text import Text

ZH = """内存或显存用完了

是什么：
有一次分配没有成功，程序因此结束。占满内存的不外乎四种：激活（随 batch 和长度增长）；权重、梯度和优化器状态（不随 batch 变）；
某个大得出乎意料的张量；或者 GPU 分配器手里零碎、用不上的空间。

为什么不报错：
它会报错，只是报错里写的是最后一次分配，多半不是占满内存的那一个。

你会看到：
``CUDA out of memory`` 或 ``DefaultCPUAllocator: can't allocate memory``，出现在第一步、最长的那个 batch，或几小时之后。

容易混淆的情况：
逐步上涨的内存最后也会用完：那时 memory/graph-kept 或 memory/growth 会指出是什么留住了它。

怎么改：
看是什么占满的。激活：batch 减半并累积，然后激活重计算；状态：fused 或 8-bit 优化器、分片；单个张量：检查那一行的形状。

改前：
    loader = DataLoader(data, batch_size=64)
改后：
    loader = DataLoader(data, batch_size=32)  # 每两个 batch 更新一次，损失除以 2

对照实验：
``traindx memory SCRIPT --gpu ...`` 不真正分配就能追踪同一个脚本，算出每种省法能省多少。

来源：
PyTorch FAQ 中关于显存不足的条目；状态一项见 Rajbhandari 等 2020（ZeRO）。
"""
LEVEL = "error"
STEP = 0
EXPLAINS = ()

MANY = 8  # times the usual elements of an input, from which the input itself is what is unusual (rule of thumb)

CAUSE_TENSOR = Text("One tensor of {asked} was asked for at this line, more than everything else together ({held}){inputs}.",
                    "这一行要一个 {asked} 的张量，比其余的加在一起（{held}）还大{inputs}。")
INPUTS = Text("; the model was given {now}, mostly it is {usual}", "；这次送进模型的是 {now}，平时多是 {usual}")
CAUSE_STATES = Text("Weights, gradients and optimizer hold {states} of {resident}; the rest, mostly activations, {rest}. "
                    "Memory ran out in {phase}.",
                    "总共 {resident}，其中权重、梯度和优化器占 {states}；其余 {rest}，主要是激活。内存是在{phase}用完的。")
CAUSE_PIECES = Text("The allocator holds {reserved}, of which tensors use {used}: {pieces} are in pieces too small for the {asked} asked for.",
                    "分配器占着 {reserved}，张量只用了 {used}：剩下的 {pieces} 太零碎，容不下所要的 {asked}。")
PHASE = {"forward": Text("the forward",
                         "前向时"), "backward": Text("the backward", "反向传播时"), "step": Text("optimizer.step", "优化器更新时")}
FIX_TENSOR = Text("Look at the shapes of this line first (a missing cut to a longest length, a broadcast, attention over all of it); "
                  "then a smaller batch.",
                  "先看这一行的形状（是不是忘了截断长度，有没有意外的广播，是不是对整段做了注意力），再考虑减小 batch。")
FIX_ACTIVATIONS = Text("First halve the batch and accumulate two (it costs nothing); then activation checkpointing, bf16. "
                       "`traindx memory SCRIPT` tells what each gives.",
                       "先把 batch 减半、累积两次（没有代价），再用激活重计算、bf16。`traindx memory SCRIPT` 会算出各能省多少。")
FIX_STATES = Text("A smaller batch will not help: take a fused or 8-bit optimizer, LoRA, or shard the states (ZeRO, FSDP). "
                  "`traindx memory SCRIPT` tells what each gives.",
                  "减小 batch 没有用：换 fused 或 8-bit 优化器、用 LoRA，或把状态分片（ZeRO、FSDP）。"
                  "`traindx memory SCRIPT` 会算出各能省多少。")
FIX_PIECES = Text("Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; then a smaller batch.",
                  "设置 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True；再考虑减小 batch。")
ASKED = Text("could not be had", "没有要到的内存")
PARTS = {"parameters": Text("weights and buffers", "权重和缓冲区"), "gradients": Text("gradients", "梯度"),
         "optimizer": Text("optimizer state", "优化器状态"), "resident": Text("in use in all", "总共占着")}


def check(ends: list[OutOfMemory] | None) -> Iterator[Finding]:
    for end in ends or []:
        cause, fix = _judge(end)
        evidence = [Evidence(PARTS[part], size(getattr(end, part)), step=end.step) for part in PARTS]
        if end.asked is not None:
            evidence.insert(0, Evidence(ASKED, size(end.asked), step=end.step))
        yield Finding(cause=cause, fix=fix, where=end.site, evidence=tuple(evidence), first_step=end.step)


def _judge(end: OutOfMemory) -> tuple[Text, Text]:
    """The largest of: one tensor, pieces, states, activations."""
    states = end.parameters + end.gradients + end.optimizer
    pieces = (end.reserved or 0) - end.resident if end.reserved else 0
    if end.asked is not None and end.asked > end.resident:
        return CAUSE_TENSOR.fill(asked=size(end.asked), held=size(end.resident), inputs=_unusual(end)), FIX_TENSOR
    if end.asked is not None and pieces > end.asked:
        return CAUSE_PIECES.fill(reserved=size(end.reserved or 0), used=size(end.resident), pieces=size(pieces), asked=size(end.asked)), FIX_PIECES
    rest = max(0, end.resident - states)
    cause = CAUSE_STATES.fill(states=size(states), resident=size(end.resident), rest=size(rest), phase=PHASE[end.phase])
    return cause, FIX_STATES if end.phase == "step" or states > rest else FIX_ACTIVATIONS


def _unusual(end: OutOfMemory) -> Text:
    """Said where the input is far larger than inputs mostly are."""
    now, usual = end.inputs[:1], end.usual_inputs[:1]
    if not now or not usual or _elements(now[0]) < MANY * _elements(usual[0]):
        return Text("", "")
    return INPUTS.fill(now=_shape(now[0]), usual=_shape(usual[0]))


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def _shape(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"
