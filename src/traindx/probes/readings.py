"""What an evaluation computes batch by batch, and the numbers that the program prints of it: recomputing a metric needs both.

Text is looked at on its way to stdout and stderr, never changed, and only after an evaluation.
"""
from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.optim.lr_scheduler import ReduceLROnPlateau

from traindx.core.observed import Site
from traindx.core.observed.readings import Evaluation, Pass, Quantity, Said
from traindx.probes import patching, sites
from traindx.probes.loaders import Loaders
from traindx.probes.session import BackwardRun, ForwardRun, LossRun, Probe, ReadRun, Session
from traindx.probes.tensors import number, tensors_in

EVALUATIONS = 100  # written down; a run that evaluates more often is judged by these
PASSES = 6
QUANTITIES = 12
NUMBERS = 24
LONGEST = 20_000  # batches of a pass
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+\.(\d+)(?:[eE][-+]?\d+)?(?![\w.]*\.\d)")


def install(session: Session) -> None:
    session.add(Readings)
    probe = next((p for p in session.probes if isinstance(p, Readings)), None)
    if probe is None:
        return
    for owner in (torch, Tensor):
        for name in ("sum", "mean"):
            patching.replace(session.stack, owner, name, partial(_observed_reduction, probe=probe, name=name))
    patching.replace(session.stack, ReduceLROnPlateau, "step", lambda original: _observed_plateau(original, probe))
    for stream in (sys.stdout, sys.stderr):
        _watch_stream(session, probe, stream)


def _observed_reduction(original: Any, probe: Readings, name: str) -> Any:
    is_compiling, here, session = torch.compiler.is_compiling, sites.here, probe.session

    def reduction(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if not is_compiling() and session.scoring and type(result) is Tensor:
            session.guard(probe, probe.reduced, name, result, here(2))
        return result
    return patching.shadow(reduction, original)  # type: ignore[arg-type]


def _observed_plateau(original: Any, probe: Readings) -> Any:
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        if probe.told and args:
            probe.session.guard(probe, probe.fed, args[0], sites.here(2))
        return original(self, *args, **kwargs)
    return patching.dressed(step, original)


def _watch_stream(session: Session, probe: Readings, stream: Any) -> None:
    original: Any = getattr(stream, "write", None)
    line: list[str] = []

    def write(text: Any) -> Any:
        result = original(text)
        if probe.told and type(text) is str:
            session.guard(probe, probe.wrote, line, text, sites.here(2))
        return result
    try:
        stream.write = write
    except (AttributeError, TypeError):  # None, or a stream that takes no attributes
        return
    session.stack.callback(_release, stream, write)


def _release(stream: Any, write: Any) -> None:
    if vars(stream).get("write") is write:
        del stream.write


@dataclass
class _Values:
    """Values of one line in one pass: at most one a batch, else it is not a batch's metric."""

    what: str
    site: Site | None
    values: list[float] = field(default_factory=list)
    batch: int = 0
    irregular: bool = False

    def take(self, value: float, batch: int) -> None:
        if batch == self.batch and self.values and value == self.values[-1]:
            return  # read twice; under an op trace a call comes back through its own name
        self.irregular = self.irregular or batch == self.batch or batch > LONGEST
        self.batch = batch
        if not self.irregular:
            self.values.append(value)

    def summary(self, sizes: list[int]) -> Quantity:
        values = self.values
        count = sum(sizes)
        weighted = sum(v * n for v, n in zip(values, sizes)) / count if count else sum(values) / len(values)
        whole = all(_whole(v) for v in values) or all(0 <= v <= 1 and _whole(v * n) for v, n in zip(values, sizes))
        return Quantity(self.what, self.site, values[0], values[-1], sum(values) / len(values), weighted, sum(values), whole)


def _whole(value: float) -> bool:
    return abs(value - round(value)) < 1e-3


@dataclass
class _Pass:
    site: Site | None
    model: int
    source: tuple[int, int]
    sizes: list[int] = field(default_factory=list)
    scored: list[int] = field(default_factory=list)
    values: dict[tuple[int, str], _Values] = field(default_factory=dict)
    said: list[tuple[int, Said]] = field(default_factory=list)

    def summary(self) -> Pass:
        kept = [v for v in self.values.values() if not v.irregular and len(v.values) == len(self.sizes)]
        # one long row of tokens or nodes for the whole batch says nothing of its samples: the targets do
        sizes = self.scored if not _alike(self.sizes) and _alike(self.scored) and len(self.scored) == len(self.sizes) else self.sizes
        loop = _alike(sizes) and (self.source != (0, 0) or len(sizes) > 2)
        return Pass(self.site, len(sizes), sum(sizes), sizes[0], sizes[-1], tuple(v.summary(sizes) for v in kept), loop)


def _alike(sizes: list[int]) -> bool:
    """Those of one set cut into batches: equal but for the last."""
    return len(set(sizes[:-1])) == 1


class Readings(Probe):
    """Collects an evaluation: it begins with a forward without training and ends when training goes on."""

    areas = ("record",)
    always = ("on_batch",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.told = False  # after one: numbers that are written are taken down
        self._passes: list[_Pass] = []
        self._written = 0
        self._source = (0, 0)
        self._in_loop: set[tuple[int, int]] = set()

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        if loader is not None:
            self._source = Loaders.instance.iteration(loader)

    def before_forward(self, run: ForwardRun) -> None:
        if run.grad and run.training:
            self._close()
            return
        if self._written >= EVALUATIONS or self.session.in_backward:
            return
        size = next((int(t.shape[0]) for t in tensors_in((run.args, run.kwargs), 1) if t.dim()), 0)
        current = self._passes[-1] if self._passes else None
        if current is None or self._begins(current, run.site, size):
            if current is not None and current.source == self._source and run.site is not current.site:
                return  # a second model on the same batch
            if len(self._passes) >= PASSES:
                return
            current = _Pass(run.site, run.model, self._source)
            self._passes.append(current)
        if run.model != current.model:
            return  # a second model on the same batch, in the same line
        self._note_loop(current)
        current.sizes.append(size)
        self.session.scoring = self.told = True

    def _begins(self, current: _Pass, site: Site | None, size: int) -> bool:
        grown = self._source == (0, 0) and len(current.sizes) > 1 and current.sizes[-1] < current.sizes[0] <= size
        return site is not current.site or self._source != current.source or grown

    def _note_loop(self, current: _Pass) -> None:
        """What was written while the pass still goes on is a progress line, not its result."""
        if current.said:
            self._in_loop |= {(id(said.site), said.slot) for _, said in current.said}
            current.said.clear()

    def before_backward(self, run: BackwardRun) -> None:
        self._close()

    def rests(self) -> bool:
        return not self._passes

    def on_loss(self, run: LossRun) -> None:
        if self.session.scoring and (value := run.value) is not None:
            current = self._passes[-1] if self._passes else None
            if current is not None and isinstance(run.target, Tensor) and run.target.dim() and len(current.scored) < len(current.sizes):
                current.scored.append(int(run.target.shape[0]))
            self.value("loss", value, run.site)

    def on_read(self, run: ReadRun) -> None:
        if self.session.scoring and type(run.value) in (float, int):
            self.value("read", run.value, run.site)

    def reduced(self, name: str, result: Tensor, site: Site | None) -> None:
        if result.dim() == 0 and (value := number(result)) is not None:
            self.value(name, value, site)

    def value(self, what: str, value: float, site: Site | None) -> None:
        current = self._passes[-1] if self._passes else None
        if current is None or not current.sizes:
            return
        key = (id(site), what)
        values = current.values.get(key)
        if values is None:
            if len(current.values) >= QUANTITIES:
                return
            values = current.values[key] = _Values(what, site)
        values.take(float(value), len(current.sizes))

    def fed(self, value: Any, site: Site | None) -> None:
        known = number(value) if isinstance(value, Tensor) else float(value)
        if known is not None:
            self._say(Said(site, -1, known, 6))

    def wrote(self, line: list[str], text: str, site: Site | None) -> None:
        """``print`` writes its parts one by one; the numbers of a line are counted through."""
        if len(line) < NUMBERS * 4:
            line.append(text)
        if text.endswith(("\n", "\r")):
            whole = "".join(line)
            line.clear()
            for slot, match in enumerate(_NUMBER.finditer(whole)):
                self._say(Said(site, slot, float(match[0]), len(match[1])))

    def _say(self, said: Said) -> None:
        current = self._passes[-1] if self._passes else None
        if current is not None and len(current.said) < NUMBERS:
            current.said.append((len(current.sizes), said))

    def at_end(self) -> None:
        self._close()

    def _close(self) -> None:
        if not self._passes:
            return
        passes, self._passes = self._passes, []
        self.session.scoring = self.told = False
        said = [s for one in passes for _, s in one.said if (id(s.site), s.slot) not in self._in_loop]
        if any(len(one.sizes) > 1 for one in passes) and said:
            self._written += 1
            self.session.emit(Evaluation(step=self.session.step, passes=tuple(one.summary() for one in passes), said=tuple(said)))
