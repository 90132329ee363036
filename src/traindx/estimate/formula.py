"""The account by formula: sizes -> bill, peak, what fits, what would help. Plain arithmetic."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from traindx.core.memory import CATEGORIES, Account, Fit, Line, Phase, Remedy
from traindx.core.text import Text, number
from traindx.estimate.bill import OPTIMIZERS, States, inference_of, states_of, total, weight_bytes
from traindx.estimate.gpus import Gpu
from traindx.estimate.shapes import Shape, Work, activations_of, embeddings_of, kv_cache_of, layer_of, lora_of


@dataclass(frozen=True)
class Request:
    """What is asked: the states, and for activations the shape and one micro-batch. ``inference`` is a forward only."""

    states: States
    shape: Shape | None = None
    work: Work | None = None
    inference: bool = False


NO_ACTIVATIONS = Text("activations: give --batch and --seq with --layers and --hidden (or --config) to have them counted",
                      "激活：要算它，请给出 --batch、--seq，以及 --layers、--hidden（或 --config）")
NO_LIBRARIES = Text("the CUDA context and the libraries' workspaces (a card is taken as 1 GB and 3 % smaller for them: rule of thumb)",
                    "CUDA 上下文和各个库的工作区（按显卡少 1 GB、再少 3 % 算：经验值）")
FOREACH_NOTE = Text(
    "With foreach=True, which torch.optim takes by itself on CUDA, {name}.step makes 4 B a parameter of temporaries: {peak} GB at the "
    "peak. fused=True makes none.",
    "CUDA 上 torch.optim 默认用 foreach=True，这时 {name}.step 每个参数还要 4 字节的临时张量，峰值是 {peak} GB；fused=True 不需要。")
ROUNDED = Text("formulas for a transformer; the traced account (traindx memory SCRIPT) is that of your own model",
               "这是 Transformer 的公式；traindx memory SCRIPT 按你自己的模型逐步追踪")


def account_of(request: Request, gpus: Sequence[Gpu] = ()) -> Account:
    """The whole answer of the formula tier."""
    lines = lines_of(request)
    size, phase = peak_of(lines, request)
    known = request.inference or total(lines, "activations", "temporaries") > 0
    found = Account("formula", size, phase if known else None, lines=lines, batch=request.work.batch if request.work else None,
                    categories={category: total(lines, category) for category in CATEGORIES})
    found.fits = [Fit(gpu.name, gpu.capacity, size, _largest_batch(request, gpu.capacity)) for gpu in gpus]
    found.remedies = [] if request.inference else list(_remedies(request))
    found.not_modelled = [NO_LIBRARIES, *([] if request.shape and request.work else [NO_ACTIVATIONS])]
    found.remarks = _remarks(request, lines)
    found.facts = {"parameters": request.states.parameters, "static_bytes": _static(lines)}
    return found


def lines_of(request: Request) -> list[Line]:
    states, shape, work = request.states, request.shape, request.work
    if request.inference:
        lines = inference_of(states.parameters, states.precision)
        if shape and work:
            lines.append(kv_cache_of(shape, work.batch, work.length, weight_bytes(states.precision)))
        return lines
    return [*states_of(states), *(activations_of(shape, work) if shape and work else [])]


def peak_of(lines: list[Line], request: Request) -> tuple[float, Phase]:
    """In backward all but the step's temporaries is there (at most); in step the activations are gone."""
    if request.inference:
        return total(lines), "forward"
    backward = total(lines, "parameters", "gradients", "optimizer", "activations")
    step = total(lines, "parameters", "gradients", "optimizer", "temporaries")
    return (backward, "backward") if backward >= step else (step, "step")


def _static(lines: list[Line]) -> float:
    return total(lines, "parameters", "gradients", "optimizer")


def _remarks(request: Request, lines: list[Line]) -> list[Text]:
    kind = OPTIMIZERS[request.states.optimizer]
    remarks = [ROUNDED] if request.shape and not request.inference else []
    if not request.inference and request.states.optimizer in ("adam", "adamw"):
        foreach = replace(request, states=replace(request.states, optimizer="adamw-foreach"))
        peak, _ = peak_of(lines_of(foreach), foreach)
        if peak > peak_of(lines, request)[0]:
            remarks.append(FOREACH_NOTE.fill(name=kind.title, peak=number(peak / 1e9, 4)))
    return remarks


def _largest_batch(request: Request, capacity: int) -> int | None:
    """The largest whole batch whose peak is within ``capacity``; 0 where not even one sample is, None without activations."""
    if not (request.shape and request.work):
        return None

    def size(batch: int) -> float:
        asked = replace(request, work=replace(request.work, batch=batch))  # type: ignore[type-var]
        return peak_of(lines_of(asked), asked)[0]
    return largest(size, capacity)


def largest(size: Callable[[int], float], capacity: float, most: int = 1 << 24) -> int:
    """The largest n >= 0 with ``size(n) <= capacity``, for a size that never falls."""
    if size(1) > capacity:
        return 0
    low, high = 1, 2
    while high < most and size(high) <= capacity:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size(middle) <= capacity else (low, middle)
    return low


# -- what would help, cheapest first -----------------------------------------------------------------------------------

HALVE = Text("half the batch, two steps accumulated", "batch 减半，累积两次")
CHECKPOINT = Text("activation checkpointing", "激活重计算")
EIGHT_BIT = Text("8-bit optimizer", "8-bit 优化器")
QLORA = Text("LoRA on a 4-bit base (QLoRA)", "4 bit 基座上做 LoRA（QLoRA）")
LORA = Text("LoRA", "LoRA")
SHARD = Text("FSDP over {ranks} rank{ranks:|s}", "FSDP，{ranks} 个进程分片")
FREE = Text("none: the same gradient (batch statistics aside)", "没有代价，梯度不变（BatchNorm 的统计量除外）")
MORE_FORWARD = Text("about 30 % more time: the forward is computed again", "多花约 30 % 的时间，前向要重算")
LIBRARY = Text("another library; small rounding in the moments", "需要另外的库；动量有少量舍入")
OTHER_TRAINING = Text("another training: only adapters learn", "训练方式变了，只训练适配器")
MORE_CARDS = Text("{ranks} card{ranks:|s}, and communication", "要 {ranks} 张卡，还要通信")


def _remedies(request: Request) -> list[Remedy]:
    """Each alone, by the same formulas."""
    states, shape, work = request.states, request.shape, request.work
    found: list[tuple[str, Text, Text, Request]] = []
    if shape and work:
        if work.batch > 1:
            found.append(("halve-and-accumulate", HALVE, FREE, replace(request, work=replace(work, batch=work.batch // 2))))
        if not work.checkpointed:
            found.append(("checkpointing", CHECKPOINT, MORE_FORWARD, replace(request, work=replace(work, checkpointed=True))))
    if states.optimizer.startswith("adam"):
        found.append(("8-bit", EIGHT_BIT, LIBRARY, replace(request, states=replace(states, optimizer="adamw-8bit"))))
    if shape and states.lora is None:
        adapters = replace(states, lora=lora_of(shape, 8))
        found += [("lora", LORA, OTHER_TRAINING, replace(request, states=adapters)),
                  ("qlora", QLORA, OTHER_TRAINING, replace(request, states=replace(adapters, quantized=True)))]
    if states.ranks == 1:
        biggest = max(layer_of(shape), embeddings_of(shape)) if shape else None
        ranks = 8
        sharded = replace(states, sharding="fsdp", ranks=ranks, largest=biggest)
        found.append(("sharding", SHARD.fill(ranks=ranks), MORE_CARDS.fill(ranks=ranks), replace(request, states=sharded)))
    return [Remedy(name, what, cost, peak_of(lines_of(asked), asked)[0], "formula") for name, what, cost, asked in found]
