"""Looks at guesses by class, in training and in evaluation, and at the numbers that datasets give to class names."""
from __future__ import annotations

import ast
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from traindx.core.observed import Site
from traindx.core.observed.confusion import ClassNumbers, Guess, Guesses
from traindx.probes import sites, source
from traindx.probes.loaders import made_at
from traindx.probes.session import BackwardRun, Budget, ForwardRun, LossRun, Probe, Session
from traindx.probes.tensors import readable, tensors_in

CLASSES = 64
NAMES = 1000
PLACES = 8
FADING = 0.9  # what counts of the training guesses before, at each detailed step
UNORDERED = frozenset(("set", "frozenset", "listdir", "iterdir", "glob", "scandir", "unique"))


def install(session: Session) -> None:
    session.add(Confusion)
    session.add(Numbers)


class Confusion(Probe):
    """Counts guesses: from loss calls, and in evaluation also from the labels that came with a batch."""

    areas = ("data",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.budget = Budget(session, share=0.003)
        self._counts: dict[tuple[str, int], Tensor] = {}
        self._places: dict[tuple[str, int], tuple[Site | None, Site | None]] = {}
        self._batch: tuple[list[weakref.ref[Tensor]], Site | None] = ([], None)
        self._counted: weakref.ref[Tensor] | None = None  # logits that a loss call already told
        self._open: set[tuple[str, int]] = set()
        self._passes = 0

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        self._batch = [weakref.ref(t) for t in tensors_in(batch, 4)], made_at(loader) if loader is not None else None

    def on_loss(self, run: LossRun) -> None:
        if run.function not in ("cross_entropy", "nll_loss") or (run.grad and not self.session.detailed):
            return
        if isinstance(run.target, Tensor) and isinstance(run.input, Tensor) and run.target.dim() == 1:
            self._take("train" if run.grad else "eval", run.site, run.input, run.target)
            self._counted = weakref.ref(run.input)

    def after_forward(self, run: ForwardRun) -> None:
        if run.grad or run.failed or not self._batch[0]:
            return
        given = [t for ref in self._batch[0] if (t := ref()) is not None]
        first = next(tensors_in((run.args, run.kwargs), 1), None)
        logits = next(tensors_in(run.output, 1), None)
        if logits is None or first is None or not any(first is t or _shares(first, t) for t in given):
            return
        labels = [t for t in given if t is not first and t.dtype == torch.int64 and t.dim() == 1]
        if len(labels) == 1:
            self._take("eval", run.site, logits, labels[0])

    def _take(self, group: str, site: Site | None, scores: Tensor, labels: Tensor) -> None:
        if not (readable(scores) and readable(labels) and scores.dim() == 2 and len(scores) == len(labels) > 0):
            return
        classes = int(scores.shape[1])
        if not 2 <= classes <= CLASSES or labels.is_floating_point() or not self.budget.allows():
            return
        with self.budget.paying():
            self._count(group, site, scores.detach(), labels.detach(), classes)

    def _count(self, group: str, site: Site | None, scores: Tensor, labels: Tensor, classes: int) -> None:
        key = group, id(site)
        counts = self._counts.get(key)
        if len(counts) != classes if counts is not None else len(self._counts) >= PLACES:
            return
        if counts is None or (group == "eval" and key not in self._open):
            counts = torch.zeros(classes, classes)
        known = (labels >= 0) & (labels < classes)
        pairs = torch.bincount(labels[known] * classes + scores[known].argmax(1), minlength=classes * classes)
        self._counts[key] = counts * (FADING if group == "train" else 1.0) + pairs.reshape(classes, classes)
        self._places[key] = site, self._batch[1]
        self._open.add(key)

    def on_tick(self, step: int) -> None:
        if any(group == "eval" for group, _ in self._open):
            self._passes += 1
            if self._passes & (self._passes - 1) == 0:
                self.at_end()
        self._open.clear()

    def at_end(self) -> None:
        for key, counts in self._counts.items():
            self._say(key, counts)

    def _say(self, key: tuple[str, int], counts: Tensor) -> None:
        site, loader_site = self._places[key]
        by_class = counts.sum(1)
        guesses = tuple(
            Guess(label, int(counts[label].argmax()), int(by_class[label]), float(counts[label].max() / by_class[label]))
            for label in (by_class >= 1).nonzero().flatten().tolist())
        wrong = key[0] == "eval" and sum(guess.guess != guess.label for guess in guesses) >= 2
        self.session.emit(Guesses(
            step=self.session.step, key=f"guesses-{key[0]}-{site.short if site else 0}", group=key[0], site=site, classes=len(counts),
            right=int(counts.diagonal().sum()), total=int(counts.sum()), guesses=guesses, loader_site=loader_site,
            numbered_at=tuple(numbering()) if wrong else ()))


def _shares(one: Tensor, other: Tensor) -> bool:
    try:
        return bool(one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr())
    except Exception:
        return False


def numbering() -> Iterator[Site]:
    """Lines of the program that number names: ``{name: i for i, name in enumerate(...)}``; those over a set or a listing first."""
    found = []
    for file in sites.user_files():
        for node in ast.walk(source.tree(file) or ast.Module([], [])):
            if isinstance(node, ast.DictComp) and isinstance(call := node.generators[0].iter, ast.Call) and source.called(call) == "enumerate":
                found.append((not _unordered(call), file, node.lineno))
    yield from (sites.at(file, line) for _, file, line in sorted(found)[:3])


def _unordered(call: ast.Call) -> bool:
    calls = {source.called(node) for node in ast.walk(call) if isinstance(node, ast.Call)}
    return "sorted" not in calls and bool(calls & UNORDERED)


class Numbers(Probe):
    """Reads, once a loader, attributes of its dataset that number names."""

    areas = ("data",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._latest: Any = None
        self._loaders: dict[int, tuple[Site | None, str, dict[str, tuple[tuple[str, ...], Site | None]]]] = {}
        self._used: set[tuple[int, bool]] = set()

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        self._latest = None
        if loader is None:
            return
        self._latest = id = self.session.ids.of(loader)
        if id not in self._loaders and len(self._loaders) < PLACES:
            self._loaders[id] = made_at(loader), type(_inner(loader.dataset)).__name__, dict(numbered(loader.dataset))

    def before_backward(self, run: BackwardRun) -> None:
        self._use(True)

    def after_forward(self, run: ForwardRun) -> None:
        if not run.grad:
            self._use(False)

    def _use(self, training: bool) -> None:
        if self._latest is None or (self._latest, training) in self._used or self._latest not in self._loaders:
            return
        self._used.add((self._latest, training))
        loader_site, name, found = self._loaders[self._latest]
        for attribute, (names, set_at) in found.items():
            self.session.emit(ClassNumbers(
                step=self.session.step, key=f"numbers-{self._latest}-{attribute}-{training}", loader=self._latest, training=training,
                loader_site=loader_site, dataset_class=name, attribute=attribute, names=names, set_at=set_at))


def _inner(dataset: Any) -> Any:
    """The dataset behind a Subset."""
    for _ in range(3):
        dataset = getattr(dataset, "dataset", dataset)
    return dataset


def numbered(dataset: Any) -> Iterator[tuple[str, tuple[tuple[str, ...], Site | None]]]:
    """Attributes that map names to 0..n-1: dicts, and the list that is called ``classes``."""
    inner = _inner(dataset)
    for name, value in list(getattr(inner, "__dict__", {}).items()):
        if name == "classes" and isinstance(value, (list, tuple)):
            value = dict(zip(value, range(len(value))))
        if not isinstance(value, dict) or not 2 <= len(value) <= NAMES or not all(isinstance(key, str) for key in value):
            continue
        if all(type(number) is int for number in value.values()) and sorted(value.values()) == list(range(len(value))):
            yield name, (tuple(sorted(value, key=value.__getitem__)), source.assigned_at(type(inner), name))
