"""Reading an autograd graph while it is alive: which node makes NaN or infinity, and which user's line made the node.

A backward frees what its nodes saved, so that whatever may be needed when gradients turn out not to be finite is held
over that one backward: the operands of the few operations that can go wrong. The way to them is learned once and
followed again each step.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from traindx.core.observed import Site
from traindx.core.observed.ops import Op
from traindx.probes.tensors import dtype_of, readable, shape_of

NODES_LIMIT = 20_000
HELD_NODES = 48
HELD_ELEMENTS = 4_000_000  # 16 MB in fp32, for the time of one backward
PLAN_LIMIT = 600  # nodes on the way: about 0.4 us each
LEAF_NUMBER = 1 << 63  # AccumulateGrad nodes carry 2**64 - 1

Test = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Risk:
    """An operation that can go wrong: what it saved, and when its forward or its backward is not finite."""

    op: str
    saved: str
    forward: tuple[tuple[str, Test], ...]
    backward: tuple[tuple[str, Test], ...]


def _zero(t: Tensor) -> Tensor:
    return t == 0


def _negative(t: Tensor) -> Tensor:
    return t < 0


def _infinite(t: Tensor) -> Tensor:
    return torch.isinf(t)


def _nan(t: Tensor) -> Tensor:
    return torch.isnan(t)


def _broken(t: Tensor) -> Tensor:
    return ~torch.isfinite(t)


def _log(op: str) -> Risk:
    return Risk(op, "self", (("zero", _zero), ("negative", _negative)), (("zero", _zero),))


def _arc(op: str) -> Risk:
    return Risk(op, "self", (("edge", lambda t: t.abs() > 1),), (("edge", lambda t: t.abs() >= 1),))


def _edge(op: str, test: Test) -> Risk:
    return Risk(op, "self", (("edge", test),), (("edge", test),))


def _made(op: str, reason: str, test: Test) -> Risk:
    """Known by its result."""
    return Risk(op, "result", ((reason, test),), ((reason, test),))


_FACTOR = (("factor", _broken),)
RISKS: dict[str, tuple[Risk, ...]] = {
    "LogBackward0": (_log("log"),), "Log2Backward0": (_log("log2"),), "Log10Backward0": (_log("log10"),),
    "Log1PBackward0": (_edge("log1p", lambda t: t <= -1),),
    "SqrtBackward0": (Risk("sqrt", "result", (("negative", _nan),), (("zero", _zero),)),),
    "RsqrtBackward0": (_made("rsqrt", "zero", _broken),),
    "ReciprocalBackward0": (_made("division", "zero", _infinite),),
    "DivBackward0": (Risk("division", "other", (("zero", _zero),), (("zero", _zero),)),
                     Risk("division", "self", _FACTOR, ())),
    "DivBackward1": (Risk("division", "other", (("zero", _zero),), (("zero", _zero),)),),
    "ExpBackward0": (_made("exp", "overflow", _infinite),), "Exp2Backward0": (_made("exp2", "overflow", _infinite),),
    "Expm1Backward0": (_made("expm1", "overflow", _infinite),),
    "AcosBackward0": (_arc("acos"),), "AsinBackward0": (_arc("asin"),), "ErfinvBackward0": (_arc("erfinv"),),
    "AtanhBackward0": (_edge("atanh", lambda t: t.abs() >= 1),),
    "AcoshBackward0": (Risk("acosh", "self", (("edge", lambda t: t < 1),), (("edge", lambda t: t <= 1),)),),
    "LogitBackward0": (_edge("logit", lambda t: (t <= 0) | (t >= 1)),),
    "PowBackward1": (_made("pow", "overflow", _infinite), _made("pow", "negative", _nan)),
    "SoftmaxBackward0": (_made("softmax", "empty-row", _nan),),
    "LogSoftmaxBackward0": (Risk("log_softmax", "result", (("empty-row", _nan),), ()),),
    "LogsumexpBackward0": (_made("logsumexp", "empty-row", _nan),),
    "StdBackward0": (_made("std", "single", _nan),),
    "MulBackward0": (Risk("product", "self", _FACTOR, ()), Risk("product", "other", _FACTOR, ())),
    "MmBackward0": (Risk("matmul", "self", _FACTOR, ()),),
    "AddmmBackward0": (Risk("linear layer", "mat1", _FACTOR, ()),),
    "BmmBackward0": (Risk("matmul", "self", _FACTOR, ()), Risk("matmul", "mat2", _FACTOR, ())),
    "ConvolutionBackward0": (Risk("convolution", "input", _FACTOR, ()),),
    "NllLossBackward0": (Risk("nll_loss", "total_weight", (("ignored", _zero),), ()),),
    "NllLoss2DBackward0": (Risk("nll_loss", "total_weight", (("ignored", _zero),), ()),),
}
# operations that only pass on what came in: named only where no maker of it is found
CARRIERS = frozenset(("factor",))


HALF_LIMIT = 65504.0
MEAN = 1  # how torch codes the reduction of a loss
# operands of a product whose terms can be summed again in fp32
_PRODUCTS = {"MmBackward0": ("self", "mat2"), "AddmmBackward0": ("mat1", "mat2"), "BmmBackward0": ("self", "mat2")}


def _half_overflow(node: Any) -> Iterator[Suspect]:
    """A product in fp16 whose true value is beyond 65504: found by doing it again in fp32."""
    name = type(node).__name__
    left, right = (saved(node, operand) for operand in _PRODUCTS.get(name, ("self", "other")))
    if left is None or right is None or left.dtype is not torch.float16 or right.dtype is not torch.float16:
        return
    if name not in _PRODUCTS and name != "MulBackward0":
        return
    with torch.no_grad():
        product = left.float() @ right.float() if name in _PRODUCTS else left.float() * right.float()
        bad = int((product.abs() > HALF_LIMIT).sum())
        if bad and bool(torch.isfinite(left).all()) and bool(torch.isfinite(right).all()):
            low, high = _range(product)
            word = "product" if name == "MulBackward0" else "matmul"
            yield Suspect(node._sequence_nr(), name, word, "half", low, high, bad, product.numel(), shape_of(product),
                          "float16")


def _power_risks(node: Any) -> tuple[Risk, ...]:
    """``x ** p`` with a number p: its slope at 0 is infinite for p < 1."""
    exponent = node._saved_exponent
    if not isinstance(exponent, (int, float)):
        return ()
    whole = float(exponent).is_integer()
    forward: tuple[tuple[str, Test], ...] = () if whole else (("negative", _negative),)
    if exponent < 0:
        forward = (("zero", _zero), *forward)
    backward: tuple[tuple[str, Test], ...] = (("zero", _zero),) if exponent < 1 and exponent != 0 else ()
    base = saved(node, "self") if exponent > 1 else None
    if base is not None and base.dtype is torch.float16:
        beyond = (("half", lambda t: t.float().abs() ** exponent > HALF_LIMIT),)
        forward, backward = (*forward, *beyond), (*backward, *beyond)
    return (Risk("pow", "self", forward, backward),) if forward or backward else ()


def risks_of(node: Any) -> tuple[Risk, ...]:
    name = type(node).__name__
    if name == "PowBackward0":
        return _power_risks(node)
    if name.startswith("NllLoss") and node._saved_reduction != MEAN:
        return ()  # only a mean divides by the targets that count
    return RISKS.get(name, ())


@dataclass(frozen=True)
class Suspect:
    """A node whose operand is wrong."""

    number: int
    node: str
    op: str
    reason: str
    low: float | None
    high: float | None
    bad: int
    count: int
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Held:
    """What one risky node saved, kept over a backward."""

    number: int
    node: str
    risk: Risk
    tensor: Tensor


def below(root: Any) -> list[Any]:
    """Nodes of the graph under a root node, leaves left out, in the order in which they were made."""
    seen: set[Any] = set()
    stack = [root]
    while stack and len(seen) < NODES_LIMIT:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(after for after, _ in node.next_functions)
    return sorted((node for node in seen if node._sequence_nr() < LEAF_NUMBER), key=lambda node: node._sequence_nr())


def leaves(root: Any) -> list[Tensor]:
    """Leaf tensors that a backward from here would give gradients to."""
    seen: set[Any] = set()
    stack, found = [root], []
    while stack and len(seen) < NODES_LIMIT:
        node = stack.pop()
        if node is not None and node not in seen:
            seen.add(node)
            stack.extend(after for after, _ in node.next_functions)
            if type(node).__name__ == "AccumulateGrad":
                found.append(node.variable)
    return found


def saved(node: Any, name: str) -> Tensor | None:
    """A tensor that the node saved; None where it was freed, written over, or may not be read."""
    try:
        value = getattr(node, f"_saved_{name}", None)
    except RuntimeError:
        return None
    return value if value is not None and readable(value) and value.numel() > 0 and value.is_floating_point() else None


def hold(nodes: list[Any]) -> list[Held]:
    """Operands of risky nodes, at most so many elements."""
    held, room = [], HELD_ELEMENTS
    for node in nodes[:HELD_NODES]:
        for risk in risks_of(node):
            tensor = saved(node, risk.saved)
            if risk.backward and tensor is not None and tensor.numel() <= room:
                room -= tensor.numel()
                held.append(Held(node._sequence_nr(), type(node).__name__, risk, tensor.detach()))
    return held


def suspects(held: list[Held], backward: bool) -> Iterator[Suspect]:
    """Those whose operand is wrong for the forward or for the backward."""
    for item in held:
        if not readable(item.tensor):  # its memory was taken away meanwhile
            continue
        for reason, test in item.risk.backward if backward else item.risk.forward:
            wrong = test(item.tensor)
            bad = int(wrong.sum())
            if bad:
                low, high = _range(item.tensor)
                yield Suspect(item.number, item.node, item.risk.op, reason, low, high, bad, item.tensor.numel(),
                              shape_of(item.tensor), dtype_of(item.tensor))
                break


def _range(tensor: Tensor) -> tuple[float | None, float | None]:
    tensor = tensor.detach()
    finite = tensor[torch.isfinite(tensor)]
    return (float(finite.min()), float(finite.max())) if finite.numel() else (None, None)


def maker(root: Any) -> Suspect | None:
    """The first node made that turned finite numbers into NaN or infinity; else the first that received some."""
    carrier = None
    for node in below(root):
        found = next(_wrong(node), None)
        if found is None:
            continue
        if found.reason not in CARRIERS:
            return found
        carrier = carrier or found
    return carrier


def _wrong(node: Any) -> Iterator[Suspect]:
    yield from _half_overflow(node)
    held = [Held(node._sequence_nr(), type(node).__name__, risk, tensor)
            for risk in risks_of(node) if (tensor := saved(node, risk.saved)) is not None]
    yield from suspects(held, backward=False)
    if not held and "Backward" in type(node).__name__:
        yield from _unknown(node)


def _unknown(node: Any) -> Iterator[Suspect]:
    """Any other operation whose saved result is broken while its saved operands are not."""
    result = saved(node, "result")
    operands = [t for name in ("self", "input", "other") if (t := saved(node, name)) is not None]
    if result is None or not operands or any(bool(_broken(t).any()) for t in operands):
        return
    bad = int(_broken(result).sum())
    if bad:
        low, high = _range(operands[0])
        word = type(node).__name__.split("Backward")[0].lower()
        yield Suspect(node._sequence_nr(), type(node).__name__, word, "", low, high, bad, result.numel(),
                      shape_of(result), dtype_of(result))


@dataclass
class Plan:
    """The way from a root node to the risky nodes under it.

    Slot i + 1 hangs on edge ``edges[i][1]`` of slot ``edges[i][0]``; slot 0 is the root.
    """

    kinds: list[type] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    risky: list[int] = field(default_factory=list)

    @classmethod
    def learn(cls, root: Any) -> Plan | None:
        """None where there is nothing to watch, or too much."""
        parent: dict[Any, tuple[Any, int] | None] = {root: None}
        stack, risky = [root], []
        while stack and len(parent) < NODES_LIMIT:
            node = stack.pop()
            if any(risk.backward for risk in risks_of(node)) and not _harmless(node):
                risky.append(node)
            for i, (after, _) in enumerate(node.next_functions):
                if after is not None and after not in parent:
                    parent[after] = (node, i)
                    stack.append(after)
        return cls._to(risky[:HELD_NODES], parent) if risky else None

    @classmethod
    def _to(cls, risky: list[Any], parent: dict[Any, tuple[Any, int] | None]) -> Plan | None:
        plan = cls()
        slots: dict[Any, int] = {}
        for node in risky:
            way = [node]
            while way[-1] not in slots and (above := parent[way[-1]]) is not None:
                way.append(above[0])
            for step in reversed(way):
                if step in slots:
                    continue
                above = parent[step]
                slots[step] = len(plan.kinds)
                plan.kinds.append(type(step))
                if above is not None:
                    plan.edges.append((slots[above[0]], above[1]))
            plan.risky.append(slots[node])
        return plan if len(plan.kinds) <= PLAN_LIMIT else None

    def follow(self, root: Any) -> list[Any] | None:
        """The risky nodes of a later graph of the same make; None where it is made otherwise."""
        if type(root) is not self.kinds[0]:
            return None
        nodes: list[Any] = [root]
        for (slot, edge), kind in zip(self.edges, self.kinds[1:]):
            after = nodes[slot].next_functions
            if edge >= len(after) or type(after[edge][0]) is not kind:
                return None
            nodes.append(after[edge][0])
        return [nodes[slot] for slot in self.risky]


def _harmless(node: Any) -> bool:
    """Division by a plain number."""
    if type(node).__name__ != "DivBackward0":
        return False
    other = saved(node, "other")
    return other is not None and other.dim() == 0 and float(other) != 0 and node._saved_self is None


@dataclass(frozen=True)
class Place:
    """Where a node was made: its line, whether that is sure, and the lines that it may be otherwise."""

    site: Site | None
    exact: bool
    candidates: tuple[Site, ...] = ()


class Lines:
    """The user's lines of graph nodes, learned from a traced step; ``rows`` are its ops in the order of making."""

    def __init__(self, ops: tuple[Op, ...]) -> None:
        self.ops = ops
        self.rows: list[Op] = []
        top = -1
        for op in ops:
            if op.number > top and op.site is not None:
                top = op.number
                self.rows.append(op)

    def place(self, graph: dict[int, str], suspect: Suspect) -> Place:
        """The line of a node of another step's graph (``{number: class}``), by its neighbours or by its kind."""
        alike = [row for row in self.rows if row.node == suspect.node]
        best = max(alike, key=lambda row: self._agreement(graph, suspect.number - row.number, row), default=None)
        if best is not None and self._agreement(graph, suspect.number - best.number, best) >= 0.8:
            return Place(best.site, True)
        places = tuple(dict.fromkeys(row.site for row in alike if row.site))
        if len(places) == 1:
            return Place(places[0], True)
        return Place(places[0], False, places[1:]) if places else self._inside(graph, suspect)

    def _agreement(self, graph: dict[int, str], offset: int, row: Op) -> float:
        """Share of the ten neighbours on either side that are of the same class at the same distance."""
        at = self.rows.index(row)
        near = [other for other in self.rows[max(0, at - 10):at + 11] if other.number + offset in graph]
        if len(near) < 2:
            return float(len(self.rows) <= 2)
        return sum(graph[other.number + offset] == other.node for other in near) / len(near)

    def _inside(self, graph: dict[int, str], suspect: Suspect) -> Place:
        """A node within an op of several nodes: the first traced op that ends at or after it, from the graph's end."""
        if not self.rows or not graph:
            return Place(None, False)
        offset = max(graph) - self.rows[-1].number
        row = next((row for row in self.rows if row.number + offset >= suspect.number), None)
        return Place(row.site, row.node == graph.get(row.number + offset)) if row is not None else Place(None, False)

    def feeding(self, site: Site | None) -> tuple[Site, ...]:
        """Lines of risky operations outside the graph (no gradient flows there) that lead to the ops of a line."""
        wanted = [op.index for op in self.ops if op.site == site]
        seen: set[int] = set()
        while wanted:
            index = wanted.pop()
            if index not in seen and 0 <= index < len(self.ops):
                seen.add(index)
                wanted.extend(operand.op for operand in self.ops[index].inputs)
        found = [self.ops[i] for i in sorted(seen) if self.ops[i].name in _RISKY_NAMES and self.ops[i].number < 0]
        return tuple(dict.fromkeys(op.site for op in found if op.site))


_RISKY_NAMES = frozenset((
    "div", "__truediv__", "true_divide", "div_", "__rtruediv__", "__rdiv__", "reciprocal", "log", "log2", "log10",
    "log1p", "sqrt", "rsqrt", "pow", "__pow__", "exp", "acos", "asin", "atanh", "std", "softmax", "log_softmax"))
