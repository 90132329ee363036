"""The same input twice in eval mode: two answers mean that something random, or a memory, is still on."""
from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from traindx.core.codec import encode
from traindx.core.observed import Site
from traindx.core.text import Text
from traindx.gauges import Watcher
from traindx.gauges.tools.aside import aside, cloned
from traindx.gauges.tools.ops import Ops, seen_by_modes
from traindx.gauges.tools.running import Running
from traindx.probes.tensors import plain, tensors_in

ROOTS = 4
KEPT_ELEMENTS = 50_000_000  # of results of one run, 200 MB in fp32
NO_CALL = Text("No module was called with gradients on.", "没有在开着梯度时调用过模块。")
NO_OUTPUT = Text("{module} returns no tensor.", "{module} 没有返回张量。")


@dataclass(frozen=True)
class _Op:
    name: str
    site: Site | None
    place: dict[str, Any]
    made: list[Tensor]


class Measurement(Watcher):
    """Value: ``equal``, ``largest_difference`` of the outputs, ``output_std`` beside it, ``draws`` (whether eval mode still draws
    random numbers), ``module`` (the root), and ``culprit``, the first operation whose results differ, though all before it are
    equal: {op, site, module, type, made_at, forward_at}; null where the operation could not be seen.

    Several roots: the first that differs, else the first. Afterwards modes, buffers and random numbers are as they were.
    """

    def begin(self, stack: ExitStack) -> None:
        self._running = Running(stack)
        self._seen: list[nn.Module] = []
        self._first: dict[str, Any] | None = None

    def on_forward(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if len(self._seen) >= ROOTS or any(module is seen for seen in self._seen):
            return
        self._seen.append(module)
        found = self._asked_twice(module, args, kwargs)
        if self._first is None or found.get("equal") is False:
            self._first = found
            self.send(found)
        self.done = found.get("equal") is False

    def _asked_twice(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        with aside(module, training=False), torch.no_grad():
            before = torch.get_rng_state()
            one, first = self._run(module, args, kwargs)
            draws = not torch.equal(before, torch.get_rng_state())
            two, second = self._run(module, args, kwargs)
        if not one:
            why = NO_OUTPUT.fill(module=type(module).__name__)
            return {"not_measured": {"en": why.en, "zh": why.zh}}
        equal = len(one) == len(two) and all(same(a, b) for a, b in zip(one, two))
        return {"equal": equal, "module": type(module).__name__, "draws": draws, "largest_difference": _apart(one, two),
                "output_std": _spread(one),
                "culprit": None if equal else _first_different(first, second)}

    def _run(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Tensor], list[_Op]]:
        ops: list[_Op] = []
        room = KEPT_ELEMENTS

        def seen(name: str, site: Site | None, given: list[Tensor], made: list[Tensor]) -> None:
            nonlocal room
            results = [t.detach().clone() for t in made if plain(t)]
            room -= sum(t.numel() for t in results)
            if room >= 0:
                ops.append(_Op(name, site, self._running.innermost(), results))
        with seen_by_modes(), Ops(seen):
            output = module(*cloned(args), **cloned(kwargs))
        return [t.detach().clone() for t in tensors_in(output) if plain(t)], ops

    def at_end(self) -> None:
        if self._first is None:
            self.not_measured(NO_CALL)


def same(one: Tensor, other: Tensor) -> bool:
    """Equal to the last bit, NaN equal to NaN."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return torch.equal(one, other) or bool(((one == other) | ((one != one) & (other != other))).all())


def _spread(outputs: list[Tensor]) -> float | None:
    """Of the first output of several elements: a loss may come before it."""
    return next((float(t.cpu().double().std(correction=0)) for t in outputs if t.is_floating_point() and t.numel() > 1), None)


def _apart(one: list[Tensor], two: list[Tensor]) -> float | None:
    pairs = [(a, b) for a, b in zip(one, two) if a.shape == b.shape and a.is_floating_point() and a.numel()]
    return max((float((a.cpu().double() - b.cpu().double()).abs().max()) for a, b in pairs), default=None)


def _first_different(first: list[_Op], second: list[_Op]) -> dict[str, Any] | None:
    for one, two in zip(first, second):
        if one.name != two.name:
            return None  # the two runs took different ways
        if len(one.made) != len(two.made) or not all(same(a, b) for a, b in zip(one.made, two.made)):
            return {"op": one.name, "site": encode(one.site), **one.place}
    return None
