"""What one parameter costs: weights, gradient, optimizer state, master copy, by precision and by optimizer.

Plain arithmetic. Sources: the optimizers' own state (torch.optim; Adafactor: Shazeer & Stern 2018; 8-bit: Dettmers et al. 2022;
Lion: Chen et al. 2023; Muon: Jordan 2024), ZeRO: Rajbhandari et al. 2020, QLoRA: Dettmers et al. 2023.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from traindx.core.findings import Origin
from traindx.core.memory import Line
from traindx.core.text import Text, number

Precision = Literal["fp32", "autocast", "half", "pure-half"]
Sharding = Literal["none", "zero1", "zero2", "zero3", "fsdp"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "autocast", "half", "pure-half")
SHARDINGS: tuple[Sharding, ...] = ("none", "zero1", "zero2", "zero3", "fsdp")
BLOCK = 256  # elements that share one fp32 scale in a block-wise 8-bit state
NF4_BYTES = 0.5 + 0.127 / 8  # 4 bits, and the scales quantized once more


@dataclass(frozen=True)
class Optimizer:
    """Bytes per trained parameter: ``state`` kept, ``temporary`` made in ``step`` and let go again.

    ``matrices_only``: the state is that of weight matrices; embeddings, heads, norms and biases are stepped by AdamW.
    """

    title: str
    state: float
    temporary: float = 0.0
    formula: str = ""
    origin: Origin = "formula"
    matrices_only: bool = False


OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": Optimizer("SGD", 0, 0, "0"),
    "momentum": Optimizer("SGD, momentum", 4, 0, "4"),
    "adam": Optimizer("Adam", 8, 0, "4 + 4"),
    "adamw": Optimizer("AdamW", 8, 0, "4 + 4"),
    "adamw-foreach": Optimizer("AdamW, foreach", 8, 4, "4 + 4"),
    "adamw-fused": Optimizer("AdamW, fused", 8, 0, "4 + 4"),
    "adamw-8bit": Optimizer("AdamW, 8-bit", 2 + 2 * 4 / BLOCK, 0, f"1 + 1 + 2 x 4/{BLOCK}"),
    "adafactor": Optimizer("Adafactor", 0.01, 4, "4 (rows + columns) / (rows x columns), 0.01 at some 1000 x 1000", "rule of thumb"),
    "lion": Optimizer("Lion", 4, 4, "4"),
    "lion-8bit": Optimizer("Lion, 8-bit", 1 + 4 / BLOCK, 0, f"1 + 4/{BLOCK}"),
    "muon": Optimizer("Muon + AdamW", 4, 0, "4 a matrix, 4 + 4 the rest", "formula", True),
}


@dataclass(frozen=True)
class States:
    """What the bill of the states depends on. ``parameters`` are counts, not bytes.

    ``lora`` is the number of adapter parameters; with it the base is frozen, and 4-bit where ``quantized``.
    ``not_matrices`` are the parameters that Muon leaves to AdamW. ``largest`` is the biggest sharded unit (a layer).
    """

    parameters: float
    precision: Precision = "half"
    optimizer: str = "adamw"
    sharding: Sharding = "none"
    ranks: int = 1
    lora: float | None = None
    quantized: bool = False
    not_matrices: float = 0.0
    largest: float | None = None


WEIGHTS = Text("weights", "权重")
FROZEN = Text("frozen base weights", "冻结的基座权重")
FROZEN_4BIT = Text("frozen base weights in 4 bits", "冻结的 4 bit 基座权重")
ADAPTERS = Text("adapter weights (LoRA)", "LoRA 适配器权重")
GRADIENTS = Text("gradients", "梯度")
MASTER = Text("fp32 master copy of the weights", "fp32 主权重副本")
STATE = Text("state of the optimizer, {title}", "{title} 的优化器状态")
FOREACH = Text("temporaries in step, {title}", "{title} 在 step 里的临时张量")
CACHE = Text("half-precision copies of the weights (autocast)", "autocast 的半精度权重副本")
GATHERED = Text("two layers gathered whole at a time", "每次聚齐两层的完整权重")


def weight_bytes(precision: Precision) -> int:
    return 4 if precision in ("fp32", "autocast") else 2


def states_of(states: States) -> list[Line]:
    """The bill of parameters, gradients and optimizer on one rank; the step's temporaries are its last line."""
    base, trained = states.parameters, states.parameters if states.lora is None else states.lora
    wide = weight_bytes(states.precision)
    lines = _frozen(states, base) if states.lora is not None else []
    weights = ADAPTERS if states.lora is not None else WEIGHTS
    lines += [_line("parameters", weights, trained, wide), _line("gradients", GRADIENTS, trained, wide)]
    if states.precision == "half":
        lines.append(_line("optimizer", MASTER, trained, 4))
    if states.precision == "autocast":
        lines.append(_line("activations", CACHE, trained, 2))
    lines += _of_optimizer(states, trained)
    return [line for line in (_sharded(line, states) for line in lines) if line.bytes] + _gathered(states, wide)


def _frozen(states: States, base: float) -> list[Line]:
    if states.quantized:
        return [_line("parameters", FROZEN_4BIT, base, NF4_BYTES, f"(4 + 0.127) / 8 B x {number(base)}")]
    return [_line("parameters", FROZEN, base, 2 if states.precision != "fp32" else 4)]


def _of_optimizer(states: States, trained: float) -> list[Line]:
    kind = OPTIMIZERS[states.optimizer]
    scale = 0.5 if states.precision == "pure-half" and "8bit" not in states.optimizer else 1  # states take the weights' dtype
    title = kind.title
    rest = min(states.not_matrices, trained) if kind.matrices_only else 0.0
    state = scale * (kind.state * trained + 4 * rest)
    extra = f" + {4 * scale:g} B x {number(rest)}" if rest else ""
    state_line = Line("optimizer", STATE.fill(title=title), state, f"({kind.formula}) B x {number(trained)}{extra}"
                      if scale == 1 else f"{kind.state * scale:g} B x {number(trained)}{extra}", kind.origin)
    return [state_line, _line("temporaries", FOREACH.fill(title=title), trained, kind.temporary * scale)]


def _line(category: str, what: Text, count: float, each: float, formula: str | None = None) -> Line:
    return Line(category, what, count * each, formula or f"{each:g} B x {number(count)}")


_DIVIDED: dict[Sharding, Callable[[Line], bool]] = {
    "none": lambda line: False,
    "zero1": lambda line: line.category in ("optimizer", "temporaries"),
    "zero2": lambda line: line.category in ("optimizer", "temporaries", "gradients"),
    "zero3": lambda line: line.category != "activations",
    "fsdp": lambda line: line.category != "activations",
}


def _sharded(line: Line, states: States) -> Line:
    if states.ranks == 1 or not _DIVIDED[states.sharding](line):
        return line
    return replace(line, bytes=line.bytes / states.ranks, formula=f"{line.formula} / {states.ranks}")


def _gathered(states: States, wide: int) -> list[Line]:
    if states.sharding not in ("zero3", "fsdp") or states.ranks == 1 or states.largest is None:
        return []
    return [_line("temporaries", GATHERED, 2 * states.largest, wide)]


def total(lines: list[Line], *categories: str) -> float:
    """Bytes of all lines, or of those of some categories."""
    return sum(line.bytes for line in lines if not categories or line.category in categories)


def inference_of(parameters: float, precision: Precision) -> list[Line]:
    """Only the weights; two bytes each in half precision."""
    return [_line("parameters", WEIGHTS, parameters, weight_bytes(precision))]
