"""What stays alive of past steps: losses, outputs and their graphs, watched weakly on CPU and GPU alike."""
from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from traindx.core.observed import Site
from traindx.core.observed.memory import Census, GraphReach, ResultsAlive
from traindx.core.observed.program import Event
from traindx.probes import source
from traindx.probes.session import BackwardRun, Budget, ForwardRun, LossRun, Probe, Session
from traindx.probes.tensors import plain, tensors_in

ALL_UP_TO = 64  # results of a line that are all watched; after them some 32 to each doubling, each standing for those after it, too
RECENT = 8  # watched results that share those after them
MOST_NODES = 20_000
CENSUSES = 40
CENSUS_EVERY = 64  # steps at least
_RESULTS = {"loss": "loss", "forward": "output", "backward": "root"}  # of events
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def install(session: Session) -> None:
    session.add(Survivors)


class _Watched:
    """Hangs on an autograd node as a hook: alive as long as the node is, whoever holds it. It stands for ``weight`` results:
    itself and its share of those after it that are not watched (what is kept is let go in the order in which it came)."""

    __slots__ = ("__weakref__", "reached", "step", "weight")

    def __init__(self, step: int) -> None:
        self.step = step
        self.weight = 1.0
        self.reached = False

    def __call__(self, gradient: Tensor) -> None:
        self.reached = True


@dataclass
class _Stored:
    """The memory of a watched output."""

    step: int
    memory: weakref.ref[Any]
    bytes: int
    weight: float = 1.0


@dataclass
class _Line:
    """Results of one line of the program."""

    what: str
    site: Site | None
    training: bool
    first_step: int
    made: int = 0
    held: int = 0  # the latest of them that is watched
    graphs: list[weakref.ref[_Watched]] = field(default_factory=list)
    outputs: list[_Stored] = field(default_factory=list)
    newest: deque[tuple[Callable[[], _Watched | _Stored | None], ...]] = field(default_factory=lambda: deque(maxlen=RECENT))
    censuses: list[Census] = field(default_factory=list)
    latest: int = 0  # step, and how many results it made
    in_latest: int = 0

    def stand_for(self, results: int) -> None:
        """Results that are not watched count as the latest that are, in equal shares: one of two views may be kept, and not the other."""
        for refs in self.newest:
            for ref in refs:
                if (watched := ref()) is not None:
                    watched.weight += results / len(self.newest)


class Survivors(Probe):
    """Takes a census of past results now and then; how many are alive tells whether somebody keeps them."""

    areas = ("memory",)
    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._lines: dict[tuple[int, str], _Line] = {}
        self._counted_at = 0  # step
        self._budget = Budget(session, 0.005)
        self._roots: list[tuple[int, int]] = []
        self._carried_at: Site | None = None

    def on_loss(self, run: LossRun) -> None:
        self._watch("loss", run.site, run.output, run.grad)

    def after_forward(self, run: ForwardRun) -> None:
        if self._roots and self._carries(run):
            self._carried_at = run.site
        if not run.failed:
            self._watch("output", run.site, run.output, run.training)

    def _carries(self, run: ForwardRun) -> bool:
        """Whether an argument was made before the latest backward and still has its graph."""
        return any(t.grad_fn is not None and t.grad_fn._sequence_nr() <= self._roots[-1][1] for t in tensors_in((run.args, run.kwargs), 8))

    def before_backward(self, run: BackwardRun) -> None:
        root = run.roots[0] if run.roots else None
        if run.accumulate and isinstance(root, Tensor) and not self.session.is_loss(root):
            self._watch("root", run.site, root, True)
        if run.accumulate and run.keep_graph and isinstance(root, Tensor) and root.grad_fn is not None:
            self._measure_reach(run, root)

    def _watch(self, what: str, site: Site | None, value: Any, training: bool) -> None:
        step, key = self.session.step, (id(site), what)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(what, site, training, step)
        made = line.made = line.made + 1
        if line.latest == step:
            line.in_latest += 1
        else:
            line.latest, line.in_latest = step, 1
        if made - line.held < _gap(made):
            line.stand_for(1)
            return
        line.held = made
        result = next(tensors_in(value, 1), None)
        line.newest.append(tuple(self._hold_weakly(line, result)) if result is not None and plain(result) else ())

    def on_wake(self, missed: int, events: Mapping[Event, int]) -> None:
        """Results of steps that were let alone: the one that was watched before stands for them."""
        for event, times in events.items():
            line = self._lines.get((id(event.site), _RESULTS.get(event.what, "")))
            if line is not None:
                line.made += times
                line.stand_for(times)

    def _hold_weakly(self, line: _Line, result: Tensor) -> Iterator[Callable[[], _Watched | _Stored | None]]:
        step = self.session.step
        if result.grad_fn is not None:
            watched = _Watched(step)
            result.register_hook(watched)
            line.graphs.append(weakref.ref(watched))
            yield weakref.ref(watched)
        size = result.numel() * result.element_size()
        storage = result.untyped_storage()
        if line.what == "output" and size * 2 > storage.nbytes() and all(entry.memory() is not storage for entry in line.outputs[-2:]):
            stored = _Stored(step, weakref.ref(storage), size)
            line.outputs.append(stored)
            yield lambda: stored

    def on_tick(self, step: int) -> None:
        if (self.session.detailed or step - self._counted_at >= CENSUS_EVERY) and self._budget.allows():
            with self._budget.paying():
                self._take_census(step)

    def at_end(self) -> None:
        self._take_census(self.session.step)

    def _take_census(self, step: int) -> None:
        self._counted_at = step
        held = resident()
        for number, line in enumerate(self._lines.values()):
            census = _census(line, step, held)
            if census is None:
                continue
            line.censuses.append(census)
            if len(line.censuses) > CENSUSES:
                del line.censuses[1:-1:2]  # ever thinner, first and last stay
            if census.graphs >= 4 or census.outputs >= 4:
                self._say(number, line)

    def _say(self, number: int, line: _Line) -> None:
        site = line.site
        by_graph = line.censuses[-1].graphs >= line.censuses[-1].outputs
        kept_at = source.keeper(site.file, site.line, by_graph) if site is not None and not site.file.startswith("<") else None
        self.session.emit(ResultsAlive(
            step=line.first_step, key=f"alive-{number}", what=line.what, site=site, kept_at=kept_at, training=line.training,
            made=line.made, censuses=tuple(line.censuses)))

    def _measure_reach(self, run: BackwardRun, root: Any) -> None:
        """Sequence numbers rise from node to node: the lowest in the graph tells in which step the graph begins."""
        step, newest = self.session.step, root.grad_fn._sequence_nr()
        if not self._roots or self._roots[-1][0] != step:
            self._roots.append((step, newest))
            del self._roots[1:-500:2]
        if self.session.detailed and step > 2 and self._budget.allows():
            with self._budget.paying():
                nodes, oldest = _walk(root.grad_fn)
                began = next((s for s, number in self._roots if number >= oldest), step)
                self.session.emit(GraphReach(step=step, site=run.site, carried_at=self._carried_at, nodes=nodes, back=step - began))


def _gap(made: int) -> int:
    """Results up to the next that is watched: scattered about its mean, for an even gap could hit one of two views every time."""
    mean = 1 if made <= ALL_UP_TO else 1 << (made.bit_length() - 6)
    return mean // 2 + (made * 2654435761 >> 16) % mean + mean % 2


def _census(line: _Line, step: int, resident: int) -> Census | None:
    """Counts what is alive of the steps before the one that just ended; forgets the dead."""
    made = line.made - (line.in_latest if line.latest >= step else 0)
    if made == 0:
        return None
    graphs = [(ref, watched) for ref in line.graphs if (watched := ref()) is not None]
    line.graphs = [ref for ref, _ in graphs]
    line.outputs = [entry for entry in line.outputs if entry.memory() is not None]
    past = [watched for _, watched in graphs if watched.step < step]
    outputs = [entry for entry in line.outputs if entry.step < step]
    return Census(
        step, made, graphs=min(made, round(sum(watched.weight for watched in past))),
        whole=min(made, round(sum(watched.weight for watched in past if not watched.reached))),
        steps=len({watched.step for watched in past}), output_steps=len({entry.step for entry in outputs}),
        outputs=min(made, round(sum(entry.weight for entry in outputs))), bytes=round(sum(entry.weight * entry.bytes for entry in outputs)),
        resident=resident)


def _walk(node: Any) -> tuple[int, int]:
    """``(number of nodes, lowest sequence number)`` of a graph, leaves left out."""
    seen, stack, oldest = {node}, [node], node._sequence_nr()
    while stack and len(seen) < MOST_NODES:
        for following, _ in stack.pop().next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                if following.next_functions:
                    oldest = min(oldest, following._sequence_nr())
                    stack.append(following)
    return len(seen), oldest


def resident() -> int:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.memory_allocated())
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0
