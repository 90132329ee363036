"""The memory calculator: what training a transformer needs, by the same formulas as ``traindx memory``."""
from __future__ import annotations

from traindx.core.text import EMPTY, Text, number, same
from traindx.estimate.bill import OPTIMIZERS, States
from traindx.estimate.formula import Request, lines_of, peak_of
from traindx.estimate.gpus import MEMORY
from traindx.estimate.shapes import LLAMA, Shape, Work
from traindx.figures import Axis, Chart, Mark, Series
from traindx.labs.lab import Choice, Lab, Level, Outcome, Slider, State, Switch, Table

# billions of parameters -> a usual shape of that size, for the activations
SHAPES = {0.124: Shape(12, 768, 12, 50257), 1.5: Shape(48, 1600, 25, 50257),
          7.0: Shape(32, 4096, 32, 32000, 11008, family=LLAMA, tied=False), 70.0: Shape(80, 8192, 64, 32000, 28672, 8, family=LLAMA, tied=False)}
LENGTH = 1024  # tokens of one sample
OPTIMIZER_NAMES = ("sgd", "adamw", "adamw-8bit")
PARTS = {"parameters": Text("weights", "权重"), "gradients": Text("gradients", "梯度"), "master": Text("master copy", "主权重"),
         "optimizer": Text("optimizer", "优化器"), "activations": Text("activations", "激活")}
CARDS = (("rtx-4090", "RTX 4090"), ("a100-80", "A100 / H100, 80 GiB"), ("b200", "B200"))


def request_of(state: State) -> Request:
    billions, half = float(state["parameters"]), state["precision"] == "half"
    work = Work(int(state["batch"]), LENGTH, 2 if half else 4, checkpointed=bool(state["checkpointing"]))
    return Request(States(billions * 1e9, "half" if half else "fp32", str(state["optimizer"])), SHAPES[billions], work)


def parts_of(request: Request) -> dict[str, float]:
    """Bytes by part; the master copy, which the bill counts with the optimizer, is told apart."""
    found = dict.fromkeys(PARTS, 0.0)
    for line in lines_of(request):
        part = "master" if line.what.en.startswith("fp32 master") else line.category
        found[part] = found.get(part, 0.0) + line.bytes
    return found


def compute(state: State) -> Outcome:
    request = request_of(state)
    parts = parts_of(request)
    peak, _ = peak_of(lines_of(request), request)
    count = request.states.parameters
    static = sum(size for name, size in parts.items() if name not in ("activations", "temporaries"))
    said = Text(f"{count / 1e9:g} billion", f"{count / 1e8:g} 亿")
    verdict = VERDICT.fill(n=said, each=number(static / count), static=number(static / 1e9), rest=number(parts["activations"] / 1e9),
                           all=number(peak / 1e9))
    return Outcome(verdict + _advice(request, parts, static), _level(peak), (_chart(parts, peak),), (_cards(request, peak),))


VERDICT = Text("{n} parameter{n:|s} × {each} byte{each:|s} = {static} GB, and {rest} GB of activations: {all} GB at the peak (formula). ",
               "{n}个参数 × {each} 字节 = {static} GB，激活再加 {rest} GB：峰值 {all} GB（公式）。")
HALVE = Text("Most of it is activations: halve the batch and accumulate (free), then recompute activations.",
             "大头是激活：先把 batch 减半、累积梯度（不花代价），再开激活重计算。")
STATES = Text("Most of it is weights, gradients and optimizer: a smaller batch will not help much; a lighter optimizer or sharding will.",
              "大头是权重、梯度和优化器：减小 batch 帮不了多少，要换更省的优化器，或者分片。")


def _advice(request: Request, parts: dict[str, float], static: float) -> Text:
    return HALVE if parts["activations"] > static else STATES


def _level(peak: float) -> Level:
    """Against one card of 80 GB, and against the largest of the list."""
    return "fine" if peak <= MEMORY["a100-80"] else "warning" if peak <= MEMORY["b200"] else "error"


def _chart(parts: dict[str, float], peak: float) -> Chart:
    sizes = [float(f"{parts[name] / 1e9:.4g}") for name in PARTS]
    curves = (Series(Text("states", "状态"), [1, 2, 3, 4], sizes[:4], "main", "bars"),
              Series(PARTS["activations"], [5], sizes[4:], "other", "bars"),
              Series(Text("peak", "峰值"), [6], [float(f"{peak / 1e9:.4g}")], "muted", "bars"))
    ticks = (*PARTS.values(), Text("peak", "峰值"))
    return Chart(Text("Where it goes", "花在哪里"), Axis(EMPTY, range=(0.4, 7.6), names=ticks), Axis(same("GB")), curves,
                 (Mark("y", MEMORY["a100-80"] / 1e9, Text("80 GiB card", "80 GiB 的卡"), "bad"),))


def _cards(request: Request, peak: float) -> Table:
    rows = tuple((same(title), number(MEMORY[name] / 1e9), Text("fits", "装得下") if peak <= MEMORY[name] else Text("does not fit", "装不下"))
                 for name, title in CARDS)
    return Table((Text("card", "显卡"), same("GB"), Text("this training", "这次训练")), rows,
                 Text("sequences of {n} token{n:|s}, attention fused; without the CUDA context and fragmentation",
                      "序列长 {n}，注意力用融合实现；没算 CUDA 上下文和碎片").fill(n=LENGTH))


LAB = Lab(
    11, "memory", Text("Memory calculator: 16 bytes a parameter", "显存计算器：每个参数 16 字节"),
    about=Text("In mixed precision every parameter costs 2 bytes of weight, 2 of gradient, 4 for its fp32 master copy and 4 + 4 for the two "
               "moments of Adam: 16. In fp32 it is 4 + 4 + 8, again 16. Activations come on top and grow with the batch. The arithmetic is "
               "that of traindx memory.",
               "混合精度训练时，每个参数要 2 字节权重、2 字节梯度、4 字节 fp32 主权重，还有 Adam 的两个矩各 4 字节：一共 16。"
               "fp32 是 4 + 4 + 8，还是 16。激活另算，随 batch 增长。这里的算法和 traindx memory 是同一套。"),
    see=Text("7 billion parameters: 112 GB before the first activation. No card of 80 GiB holds it.",
             "70 亿参数：一个激活都还没有，就要 112 GB。80 GiB 的卡装不下。"),
    break_it=Text("Go down to 1.5 billion parameters and raise the batch to 32; then switch on checkpointing; then change the optimizer.",
                  "把参数降到 15 亿，batch 加到 32；再打开激活重计算；再换优化器。"),
    then=Text("24 GB of states become more than 80 GB with the activations; recomputing brings most of that back for about 30 % more time; "
              "8-bit Adam saves about 6 bytes a parameter, and no batch size does that.",
              "权重、梯度和优化器共 24 GB，加上激活就超过 80 GB；激活重计算把大半省回来，代价是多花约 30 % 的时间；"
              "8-bit Adam 每个参数大约省 6 字节，这是减小 batch 省不出来的。"),
    rules=("memory/out-of-memory", "memory/growth", "memory/graph-kept"),
    knobs=(Slider("parameters", Text("Parameters", "参数量"), tuple(SHAPES), 7.0, same("B")),
           Slider("batch", Text("Batch", "batch"), (1.0, 8.0, 32.0), 1.0),
           Choice("optimizer", Text("Optimizer", "优化器"), tuple((name, same(OPTIMIZERS[name].title)) for name in OPTIMIZER_NAMES), "adamw"),
           Choice("precision", Text("Precision", "精度"), (("half", Text("bf16, mixed", "bf16 混合精度")), ("fp32", same("fp32"))), "half"),
           Switch("checkpointing", Text("Activation checkpointing", "激活重计算"))),
    compute=compute)
