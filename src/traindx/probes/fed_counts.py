"""What is counted of one set of weights: rows met in training and at each place of evaluation, labels, epochs. NumPy only."""
from __future__ import annotations

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from operator import ne
from random import Random
from typing import Any

import numpy as np

from traindx.core.observed import Site
from traindx.core.observed.fed import Columns
from traindx.probes import rows as row
from traindx.probes.fed_arrivals import Delivered
from traindx.probes.fed_batches import Batch
from traindx.probes.rows import Array

GROUPS = 8  # places of evaluation of one model
DISTINCT = 60_000  # rows remembered by group
RESERVOIR = 1500  # training rows kept with their labels, as numbers
SAMPLE = 256  # rows kept of a group to estimate what a row says
LABEL_CLASSES = 1024
_WITHOUT_REPLACEMENT = ("SequentialSampler", "RandomSampler", "SubsetRandomSampler", "_InfiniteConstantSampler")


class Group:
    """Rows of one model in training, or at one place of evaluation."""

    def __init__(self, name: str, first: Batch) -> None:
        self.name, self.first = name, first
        self.batches = self.seen = self.skipped = self.passes = self.width = 0
        self.met: dict[
            int, int
        ] = {}  # hash -> label (training: -1 unknown), or 0 new, 1 trained on, 2 in an earlier set only (evaluation)
        self.last_pass: tuple[int, int, int] = (-1, -1, -1)
        self.full = self.clean = self.middle = 0
        self.labels: Counter[int] = Counter()
        self.sample: list[Array] = []
        self.sampled = 0
        self.count = 0
        self.mean: Array | None = None
        self.squares: Array | None = None
        self.lows: Array | None = None
        self.highs: Array | None = None
        self.low, self.high = math.inf, -math.inf
        self.targets: tuple[Array, Array] | None = None
        self.order: list[Array] = []
        self.order_labels: list[Array] = []
        self.before: tuple[Array, Array] | None = None
        self.compared = self.changed = 0
        self.rounds = 0.0
        self.known_at_first = 0

    def take(self, batch: Batch, new: Array) -> None:
        """Counts a batch; the statistics are over its ``new`` rows only."""
        self.batches += 1
        self.seen += len(batch.rows)
        self.width = max(self.width, len(batch.rows))
        self.low, self.high = min(self.low, batch.low), max(self.high, batch.high)
        if batch.values is not None and len(batch.values):
            self._stretch(batch.values)
        fresh = batch.columns[new]
        if len(fresh) and (self.mean is None or fresh.shape[1] == len(self.mean)):
            self._accumulate(fresh.astype(np.float64))
            if self.sampled < SAMPLE:
                self.sample.append(fresh[: SAMPLE - self.sampled])
                self.sampled += len(self.sample[-1])

    def _stretch(self, values: Array) -> None:
        """The ends of the targets by column, over every row."""
        low, high = values.min(axis=0), values.max(axis=0)
        if self.targets is None:
            self.targets = low, high
        elif len(self.targets[0]) == len(low):
            self.targets = np.minimum(self.targets[0], low), np.maximum(self.targets[1], high)

    @np.errstate(all="ignore")  # data that are not finite are a finding, not a warning in the program's output
    def _accumulate(self, fresh: Array) -> None:
        """Chan's update of mean and sum of squares by column."""
        count, mean = len(fresh), fresh.mean(axis=0)
        squares = ((fresh - mean) ** 2).sum(axis=0)
        if self.mean is None or self.squares is None:
            self.count, self.mean, self.squares = count, mean, squares
            self.lows, self.highs = fresh.min(axis=0), fresh.max(axis=0)
            return
        self.lows, self.highs = np.minimum(self.lows, fresh.min(axis=0)), np.maximum(self.highs, fresh.max(axis=0))
        total = self.count + count
        shift = mean - self.mean
        self.mean = self.mean + shift * (count / total)
        self.squares = self.squares + squares + shift * shift * (self.count * count / total)
        self.count = total

    def table(self) -> Array:
        return np.concatenate(self.sample) if self.sample else np.zeros((0, 0))

    def columns(self) -> Columns | None:
        if self.mean is None or self.squares is None:
            return None
        levels, spacing, at_low, at_high = row.levels_of(self.table())
        std = np.sqrt(self.squares / max(self.count, 1))
        return Columns(
            self.count,
            math.prod(self.first.shape),
            numbers(self.mean),
            numbers(std),
            self.low,
            self.high,
            levels,
            spacing,
            at_low,
            at_high,
            numbers(self.lows) if self.lows is not None else (),
            numbers(self.highs) if self.highs is not None else (),
        )

    def compare_passes(self) -> None:
        """Rows at the same places of this pass and the one before, where the labels agree."""
        if not self.order:
            return
        rows, labels = np.concatenate(self.order), np.concatenate(self.order_labels)
        self.order, self.order_labels = [], []
        if self.before is not None and len(self.before[0]) == len(rows) and bool((self.before[1] == labels).all()):
            self.compared += len(rows)
            self.changed += int((self.before[0] != rows).sum())
        self.before = (rows, labels)


def numbers(values: Array) -> tuple[float, ...]:
    return tuple(float(f"{value:.6g}") for value in values.tolist())


class Order:
    """Labels in the order of training: how alike the labels of one step are, and how long runs last."""

    def __init__(self) -> None:
        self.pairs = self.same = self.steps = self.changes = self.length = 0
        self.rises = self.falls = 0
        self.last: int | None = None
        self.last_value: float | None = None

    def take(self, labels: Array) -> None:
        n, ordered = len(labels), labels.tolist()
        self.steps += 1
        self.pairs += n * (n - 1) // 2
        self.same += sum(count * (count - 1) // 2 for count in Counter(ordered).values())
        self.changes += sum(map(ne, ordered[1:], ordered))
        if self.last is not None and n:
            self.changes += ordered[0] != self.last
        self.length += n
        self.last = ordered[-1] if n else self.last

    def take_values(self, values: Array) -> None:
        self.steps += 1
        self.length += len(values)
        series = values if self.last_value is None else np.concatenate([[self.last_value], values])
        difference = np.diff(series)
        self.rises += int((difference >= 0).sum())
        self.falls += int((difference < 0).sum())
        self.last_value = float(values[-1])


@dataclass
class Model:
    """The ledger of one set of weights."""

    number: int
    train: Group | None = None
    evaluations: dict[tuple[int, int, int], Group] = field(default_factory=dict)
    # labels of training rows
    order: Order = field(default_factory=Order)
    again: int = 0
    again_same: int = 0
    former: dict[int, Any] = field(default_factory=dict)
    conflicting: set[int] = field(default_factory=set)
    ambiguous: bool = False
    question: tuple[Any, ...] | None = None
    questions: set[tuple[Any, ...]] = field(default_factory=set)
    classes: int = 0
    function: str = ""
    loss_site: Site | None = None
    weighted: bool = False
    recall: dict[int, list[float]] = field(default_factory=dict)
    value_sum: Array | None = None
    value_squares: Array | None = None
    value_count: int = 0
    value_set: set[float] = field(default_factory=set)
    reservoir: list[tuple[Array, float]] = field(default_factory=list)
    offered: int = 0
    # batches
    sum: int = -1
    run: int = 0
    run_held: int = 0
    longest: tuple[int, int, int] = (0, 0, 0)
    storage: int = 0
    storage_rows: int = 0
    known: deque[float] = field(default_factory=lambda: deque(maxlen=12))
    # epochs of a loader
    epoch: tuple[int, int] = (0, 0)
    epoch_rows: set[int] = field(default_factory=set)
    epoch_seen: int = 0
    counted: Delivered | None = None
    generation: int = 0  # of the training set: another dataset begins another one
    dataset: int = 0
    fed_in: dict[int, int] = field(default_factory=dict)  # hash -> generation in which a row was trained on last
    epoch_whole: bool = True
    epoch_repeats: Counter[int] = field(default_factory=Counter)
    epochs: list[tuple[int, int, dict[int, int]]] = field(default_factory=list)
    iterations: int = 0
    left_out: int = 0  # batches whose inputs were not finite and that no backward followed
    pending_labels: list[Array] = field(default_factory=list)
    pending_values: list[Array] = field(default_factory=list)
    random: Random = field(default_factory=lambda: Random(5))

    def trained(self, batch: Batch, step: int) -> None:
        """A batch was trained on at this step."""
        if self.train is None:
            self.train = Group("train", batch)
        group = self.train
        hashes = batch.rows.tolist()
        self._follow_batches(batch, step)
        if batch.delivered is not None and batch.delivered.dataset != self.dataset:
            self.dataset = batch.delivered.dataset
            self.generation += 1
        if len(self.fed_in) < DISTINCT:
            self.fed_in.update(dict.fromkeys(hashes, self.generation))
        labels = batch.labels.tolist() if batch.labels is not None else [-1] * len(hashes)
        met = group.met
        new: Array = np.zeros(len(hashes), bool)
        room = len(met) < DISTINCT
        for i, (key, label) in enumerate(zip(hashes, labels)):
            old = met.get(key)
            if old is None:
                new[i] = True
                if room:
                    met[key] = label
            elif batch.labels is not None:
                self.again += 1
                self.again_same += old == label
                if old != label:
                    self._relabelled(met, key, old, label)
        if group.batches >= 1:
            self.known.append(1 - float(new.mean()))
        self._follow_epoch(batch, hashes, labels)
        group.take(batch, new)
        self._keep_labels(batch, new)

    def _relabelled(self, met: dict[int, Any], key: int, old: Any, label: Any) -> None:
        """A row that comes back to the label it had before is labelled twice; one that changes for good belongs to another task now."""
        if self.former.get(key) == label and len(self.conflicting) < 2000:
            self.conflicting.add(key)
        if key in self.former or len(self.former) < DISTINCT:
            self.former[key] = old
        met[key] = label

    def _follow_batches(self, batch: Batch, step: int) -> None:
        """Runs of the same batch, and whether it is the same memory or was made anew."""
        total = int(batch.rows.sum()) & 0xFFFFFFFFFFFFFFF
        held = batch.storage[0] == self.storage
        if total == self.sum:
            self.run += 1
            self.run_held += held
        else:
            self.sum, self.run, self.run_held = total, 1, 0
        self.storage, self.storage_rows = batch.storage
        if self.run > self.longest[0]:
            self.longest = (self.run, self.run_held, step)
        if batch.delivered is not None:
            self.iterations = batch.delivered.iterations

    def _follow_epoch(self, batch: Batch, hashes: list[int], labels: list[int]) -> None:
        delivered = batch.delivered
        if delivered is None or delivered is self.counted or delivered.sampler not in _WITHOUT_REPLACEMENT:
            return
        self.counted = delivered  # a batch that is fed again was drawn once
        epoch = (delivered.loader, delivered.iterations)
        if epoch != self.epoch:
            self.close_epoch()
            self.epoch, self.epoch_rows, self.epoch_seen = epoch, set(), 0
            self.epoch_repeats, self.epoch_whole = Counter(), True
        for key, label in zip(hashes, labels):
            if key in self.epoch_rows:
                self.epoch_repeats[label] += 1
        self.epoch_rows.update(hashes)
        self.epoch_seen += len(hashes)

    def close_epoch(self) -> None:
        if self.epoch_whole and self.epoch_seen and len(self.epochs) < 3:
            self.epochs.append((self.epoch_seen, len(self.epoch_rows), dict(self.epoch_repeats.most_common(64))))

    def _keep_labels(self, batch: Batch, new: Array) -> None:
        if batch.paired and not self.function:
            self.function, self.loss_site = batch.function, batch.loss_site
        self.classes = max(self.classes, batch.classes)
        self.weighted = self.weighted or batch.weighted
        self._follow_questions(batch)
        group = self.train
        assert group is not None
        if batch.labels is not None:
            group.labels.update(batch.labels.tolist() if len(group.labels) < LABEL_CLASSES else [])
            self.pending_labels.append(batch.labels)
        elif batch.values is not None:
            self._keep_values(batch.values)
        else:
            return
        target = batch.labels if batch.labels is not None else batch.values[:, 0]  # type: ignore[index]
        self._reserve(batch.columns, target, new)

    def _follow_questions(self, batch: Batch) -> None:
        """Tasks that take turns on one set of weights give a row a label each; a task that follows another for good does not."""
        if batch.question is not None and batch.question != self.question:
            self.ambiguous = self.ambiguous or batch.question in self.questions
            self.question = batch.question
            if len(self.questions) < LABEL_CLASSES:
                self.questions.add(batch.question)

    def _keep_values(self, values: Array) -> None:
        if self.value_sum is None or len(self.value_sum) == values.shape[1]:
            self.value_sum = values.sum(axis=0) + (0 if self.value_sum is None else self.value_sum)
            self.value_squares = (values**2).sum(axis=0) + (0 if self.value_squares is None else self.value_squares)
            self.value_count += len(values)
        if len(self.value_set) < 200:
            self.value_set.update(values[:, 0].tolist())
        self.pending_values.append(values[:, 0])

    def _reserve(self, columns: Array, target: Array, new: Array) -> None:
        """A uniform sample of distinct rows with their labels (reservoir sampling, with a generator of our own)."""
        for i in np.flatnonzero(new).tolist():
            self.offered += 1
            entry = (columns[i], float(target[i]))
            if len(self.reservoir) < RESERVOIR:
                self.reservoir.append(entry)
            elif (place := self.random.randrange(self.offered)) < RESERVOIR:
                self.reservoir[place] = entry

    def close_step(self) -> None:
        """Labels of all batches of the step together: halves of one step (real and fake, micro-batches) are one mix."""
        if self.pending_labels:
            self.order.take(np.concatenate(self.pending_labels))
            self.pending_labels = []
        elif self.pending_values:
            self.order.take_values(np.concatenate(self.pending_values))
        self.pending_values = []

    def evaluated(self, batch: Batch, step: int) -> None:
        """A batch was not trained on: it belongs to a set of evaluation."""
        if batch.grad and self.train is None and step <= 1:
            return  # a look at the shapes before training
        delivered = batch.delivered
        stream = hash((delivered.dataset, delivered.site)) if delivered else 0  # a loader may be made anew for each epoch
        key = (stream, id(batch.site), 0 if delivered else id(batch.caller))
        group = self.evaluations.get(key)
        if group is None:
            if len(self.evaluations) >= GROUPS:
                return
            group = self.evaluations[key] = Group(f"eval-{len(self.evaluations) + 1}", batch)
            group.rounds = self.train.seen / max(len(self.train.met), 1) if self.train else 0.0
        self._follow_pass(group, batch)
        trained = self.train.met if self.train else {}
        hashes = batch.rows.tolist()
        now = self.generation
        seen = [1 + (self.fed_in.get(key, now) < now) if key in trained else 0 for key in hashes]
        share = sum(map(bool, seen)) / max(len(seen), 1)
        group.full += share >= 0.9
        group.clean += share <= 0.02
        group.middle += 0.02 < share < 0.9
        new = np.fromiter((key not in group.met for key in hashes), bool, len(hashes))
        group.known_at_first += sum(bool(value) for value, first in zip(seen, new.tolist()) if first)
        if len(group.met) < DISTINCT:
            group.met.update(zip(hashes, seen))
        if batch.labels is not None and len(group.labels) < LABEL_CLASSES:
            group.labels.update(batch.labels[new].tolist())
        group.take(batch, new)

    def _follow_pass(self, group: Group, batch: Batch) -> None:
        now = (
            batch.delivered.loader if batch.delivered else 0,
            batch.delivered.iterations if batch.delivered else 0,
            self.train.batches + self.train.skipped if self.train else 0,
        )
        if now != group.last_pass:
            group.last_pass = now
            group.passes += 1
            group.full = group.clean = group.middle = 0
            group.compare_passes()
        if batch.labels is not None and sum(map(len, group.order)) < 20_000:
            group.order.append(batch.rows)
            group.order_labels.append(batch.labels)
