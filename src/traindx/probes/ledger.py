"""The ledger of what was fed: each batch of a model's inputs as content hashes and column statistics, by training and
evaluation.

No tensor is kept: a batch is reduced to hashes, at most 256 columns of numbers and its labels, until the step that used
it is over.
"""

from __future__ import annotations

import inspect
import math
import random
import sys
import time
import weakref
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import ne
from types import CodeType, FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from traindx.core.observed import Site
from traindx.core.observed.fed import Columns, Fed, FirstWeights, Giveaway, Labels, Neighbours, NonFiniteFed
from traindx.core.observed.program import Event
from traindx.probes import rows as row
from traindx.probes import sites, source
from traindx.probes.loaders import Loaders, written
from traindx.probes.rows import Array
from traindx.probes.session import BackwardRun, Budget, ForwardRun, LossRun, Probe, Session
from traindx.probes.tensors import plain, readable, tensors_in

MODELS = 8  # models with a ledger
GROUPS = 8  # places of evaluation of one model
DISTINCT = 60_000  # rows remembered by group
RESERVOIR = 1500  # training rows kept with their labels, as numbers
SAMPLE = 256  # rows kept of a group to estimate what a row says
BATCH_ROWS = 4096  # rows looked at in one batch
PENDING = 256  # batches whose use is not known yet
FREE_SECONDS = 0.25  # spent at will, beyond the share of the time that a Budget grants
LABEL_CLASSES = 1024
TARGET_NAMES = frozenset(("target", "targets", "label", "labels", "y", "y_true"))
_UNLIKELY_INPUT = frozenset(
    ("attention_mask", "mask", "lengths", "padding_mask", "src_mask", "tgt_mask", "position_ids", "token_type_ids")
)
_WITHOUT_REPLACEMENT = ("SequentialSampler", "RandomSampler", "SubsetRandomSampler", "_InfiniteConstantSampler")


def install(session: Session) -> None:
    session.add(FedLedger)


class _Allowance(Budget):
    """A Budget with some seconds free: short runs are seen whole. It counts the thread's own seconds, not those of a
    busy machine.
    """

    def allows(self) -> bool:
        return self.spent < FREE_SECONDS or super().allows()

    @contextmanager
    def paying(self) -> Iterator[None]:
        began = time.thread_time()
        try:
            yield
        finally:
            self.spent += time.thread_time() - began


@dataclass
class _Delivered:
    """The last batch of a DataLoader; its tensors weakly."""

    loader: int
    dataset: int
    iterations: int
    site: Site | None
    iter_site: Site | None
    sampler: str
    size: int | None
    workers: int
    tensors: list[weakref.ref[Tensor]]
    codes: tuple[CodeType, ...]  # what the user wrote of how it is made


@dataclass
class _Call:
    """The latest forward: what it was given, weakly, in case its loss turns out not to be finite."""

    root: int
    site: Site | None
    grad: bool
    input: weakref.ref[Tensor]
    target: weakref.ref[Tensor] | None = None
    loss_site: Site | None = None


@dataclass
class _Batch:
    """One batch of inputs, as numbers."""

    model: _Model
    grad: bool
    site: Site | None
    caller: Site | None
    rows: Array  # hashes [B]
    columns: Array  # [B, at most 256]
    shape: tuple[int, ...]  # of a row
    dtype: str
    inputs: int
    low: float
    high: float
    storage: tuple[int, int]  # identity of the memory, and how many rows it holds
    delivered: _Delivered | None
    labels: Array | None = None  # class ids [B]
    values: Array | None = None  # floats [B, at most 16]
    classes: int = 0
    function: str = ""
    loss_site: Site | None = None
    weighted: bool = False
    paired: bool = False
    reached: bool = False


class _Group:
    """Rows of one model in training, or at one place of evaluation."""

    def __init__(self, name: str, first: _Batch) -> None:
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
        self.low, self.high = math.inf, -math.inf
        self.order: list[Array] = []
        self.order_labels: list[Array] = []
        self.before: tuple[Array, Array] | None = None
        self.compared = self.changed = 0

    def take(self, batch: _Batch, new: Array) -> None:
        """Counts a batch; the statistics are over its ``new`` rows only."""
        self.batches += 1
        self.seen += len(batch.rows)
        self.width = max(self.width, len(batch.rows))
        self.low, self.high = min(self.low, batch.low), max(self.high, batch.high)
        fresh = batch.columns[new]
        if len(fresh) and (self.mean is None or fresh.shape[1] == len(self.mean)):
            self._accumulate(fresh.astype(np.float64))
            if self.sampled < SAMPLE:
                self.sample.append(fresh[: SAMPLE - self.sampled])
                self.sampled += len(self.sample[-1])

    def _accumulate(self, fresh: Array) -> None:
        """Chan's update of mean and sum of squares by column."""
        count, mean = len(fresh), fresh.mean(axis=0)
        squares = ((fresh - mean) ** 2).sum(axis=0)
        if self.mean is None or self.squares is None:
            self.count, self.mean, self.squares = count, mean, squares
            return
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
            _numbers(self.mean),
            _numbers(std),
            self.low,
            self.high,
            levels,
            spacing,
            at_low,
            at_high,
        )


def _numbers(values: Array) -> tuple[float, ...]:
    return tuple(float(f"{value:.6g}") for value in values.tolist())


class _Order:
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
class _Model:
    """The ledger of one set of weights."""

    number: int
    train: _Group | None = None
    evaluations: dict[tuple[int, int, int], _Group] = field(default_factory=dict)
    # labels of training rows
    order: _Order = field(default_factory=_Order)
    again: int = 0
    again_same: int = 0
    former: dict[int, Any] = field(default_factory=dict)
    conflicting: set[int] = field(default_factory=set)
    ambiguous: bool = False
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
    whole_values: bool = True
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
    counted: _Delivered | None = None
    generation: int = 0  # of the training set: another dataset begins another one
    dataset: int = 0
    fed_in: dict[int, int] = field(default_factory=dict)  # hash -> generation in which a row was trained on last
    epoch_whole: bool = True
    epoch_repeats: Counter[int] = field(default_factory=Counter)
    epochs: list[tuple[int, int, dict[int, int]]] = field(default_factory=list)
    iterations: int = 0
    pending_labels: list[Array] = field(default_factory=list)
    pending_values: list[Array] = field(default_factory=list)


class _First:
    """Accumulates what enters a model's first layer with weights."""

    def __init__(self, module: nn.Module, site: Site | None, run: ForwardRun, loader_site: Site | None) -> None:
        self.module_class, self.site, self.forward_site, self.loader_site = (
            type(module).__name__,
            site,
            run.site,
            loader_site,
        )
        self.steps = self.count = 0
        self.sum: Array | None = None
        self.squares: Array | None = None
        self.low, self.high, self.binary, self.whole = math.inf, -math.inf, True, True

    def take(self, values: Array) -> None:
        """``values`` [n, features]."""
        if self.sum is not None and len(self.sum) != values.shape[1]:
            return
        values = values.astype(np.float64)
        self.sum = values.sum(axis=0) if self.sum is None else self.sum + values.sum(axis=0)
        squares = (values * values).sum(axis=0)
        self.squares = squares if self.squares is None else self.squares + squares
        self.count += len(values)
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        self.binary = self.binary and bool(((values == 0) | (values == 1)).all())
        self.whole = self.whole and bool((values == np.floor(values)).all())


class FedLedger(Probe):
    """Inputs and targets by model, split and time."""

    areas = ("data", "loss")
    always = ("on_batch",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.budget = _Allowance(session)
        self.evaluation = _Allowance(
            session, free=0
        )  # of its own: a long training leaves enough for the first validation
        self.models: dict[int, _Model] = {}
        self._keys: weakref.WeakKeyDictionary[nn.Module, tuple[int, frozenset[str]]] = weakref.WeakKeyDictionary()
        self._pending: list[_Batch] = []
        self._current: _Batch | None = None
        self._run: ForwardRun | None = None
        self._first_done = True
        self._firsts: dict[int, _First] = {}
        self._arrived: tuple[weakref.ref[Any], list[weakref.ref[Tensor]]] | None = None  # loader and tensors
        self._described: _Delivered | None = None  # what arrived, once somebody asked
        self._given = 0  # tensors of the latest call
        self._latest: _Call | None = None
        self._bad: set[tuple[int, str]] = set()
        self._random = random.Random(5)

    # -- hooks

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        self._described = None
        self._arrived = (weakref.ref(loader), [weakref.ref(t) for t in tensors_in(batch, 6)]) if loader is not None else None

    @property
    def _delivered(self) -> _Delivered | None:
        if self._arrived is not None:
            (ref, tensors), self._arrived = self._arrived, None
            loader = ref()
            self._described = self._describe_arrival(loader, tensors) if loader is not None else None
        return self._described

    def _describe_arrival(self, loader: Any, tensors: list[weakref.ref[Tensor]]) -> _Delivered | None:
        made = Loaders.instance._seen.get(self.session.ids.of(loader))
        if made is None:
            return None
        return _Delivered(
            made.id,
            _identity(self.session, loader.dataset),
            made.iterations,
            made.site,
            made.iter_site,
            made.sampler if not getattr(loader.sampler, "replacement", False) else "with replacement",
            made.dataset_size,
            made.workers,
            tensors,
            tuple(written(loader)),
        )

    def before_forward(self, run: ForwardRun) -> None:
        self._current = None
        self._run, self._first_done = run, True
        if self.session.in_backward:
            return
        self._settle_evaluations()
        key, names = self._key(run.module)
        model = self._model(key)
        if model is None:
            return
        self._first_done = False
        first = next(tensors_in(run.args, 1), None)
        if first is not None and _may_be_data(first):
            self._latest = _Call(run.model, run.site, run.grad, weakref.ref(first))
        budget = self.budget if run.grad else self.evaluation
        if not budget.allows():
            self._skip(model, run)
            return
        with budget.paying():
            self._current = self._batch(model, run, names)
            if self._current is not None and len(self._pending) < PENDING:
                self._pending.append(self._current)

    def on_wake(self, missed: int, events: Mapping[Event, int]) -> None:
        """Batches of steps that were let alone are counted as not looked at."""
        for module in list(self._keys):
            root = self.session.ids.of(module)
            count = sum(times for event, times in events.items() if event.what == "forward" and event.who == root)
            model = self.models.get(self._keys[module][0])
            if count and model is not None and model.train is not None:
                model.train.skipped += count
                model.epoch_whole = False
        for given in self.session.given[-1:]:
            self._latest = _Call(*given)

    def after_forward(self, run: ForwardRun) -> None:
        batch, self._current, self._run = self._current, None, None
        if batch is None or run.failed or not run.grad:
            return
        for tensor in tensors_in(run.output, 4):
            if tensor.requires_grad and tensor.grad_fn is not None:
                tensor.register_hook(lambda _: setattr(batch, "reached", True))
                return

    def after_module(self, module: nn.Module, path: str, args: tuple[Any, ...], output: Any) -> None:
        """The first inner module with weights of its own: what does it get?"""
        run = self._run
        if self._first_done or run is None or not run.grad or not module._parameters:
            return
        self._first_done = True
        key, _ = self._key(run.module)
        self._first(key, module, args, run)

    def on_loss(self, run: LossRun) -> None:
        self._note_target(run)
        if not self._pending:
            return
        with self.budget.paying() if run.grad else self.evaluation.paying():
            batch = self._fed_to(run)
            if batch is not None:
                self._pair(batch, run)

    def before_backward(self, run: BackwardRun) -> None:
        value = run.value
        if value is not None and not math.isfinite(value):
            self._look_for_nonfinite()

    def on_tick(self, step: int) -> None:
        if self._pending:
            with self.budget.paying():
                pending, self._pending = self._pending, []
                for batch in pending:
                    self._settle(batch)
        for model in self.models.values():
            self._close_step(model)
        if step >= 16 and step & (step - 1) == 0:
            self._say(step in (64, 512, 4096))
        self._latest = None

    def at_end(self) -> None:
        for batch in self._pending:
            self._settle(batch)
        self._pending = []
        for model in self.models.values():
            self._close_step(model)
            self._close_epoch(model, False)
        self._say(True)

    # -- a forward

    def _key(self, module: nn.Module) -> tuple[int, frozenset[str]]:
        """Which set of weights this is (0: none), and the names of forward's parameters that are targets."""
        known = self._keys.get(module)
        if known is None:
            first = next(module.parameters(), None)
            try:
                names = frozenset(inspect.signature(module.forward).parameters) & TARGET_NAMES
            except (TypeError, ValueError):
                names = frozenset()
            known = self._keys[module] = (self.session.ids.of(first) if first is not None else 0, names)
        return known

    def _model(self, key: int) -> _Model | None:
        if key and key not in self.models and len(self.models) < MODELS:
            self.models[key] = _Model(key)
        return self.models.get(key)

    def _skip(self, model: _Model, run: ForwardRun) -> None:
        if run.grad and model.train is not None:
            model.train.skipped += 1
            model.epoch_whole = False

    def _batch(self, model: _Model, run: ForwardRun, names: frozenset[str]) -> _Batch | None:
        try:
            inputs = self._inputs(run, names)
            if not inputs:
                return None
            return self._describe(model, run, inputs)
        except (RuntimeError, TypeError, ValueError):
            return None  # a tensor that cannot be read as numbers: sparse, fake, conjugate

    def _inputs(self, run: ForwardRun, names: frozenset[str]) -> list[Tensor]:
        """Data tensors of the call: the first decides the batch size, others of the same size belong to its rows."""
        given = list(run.args)
        if names:
            order = list(inspect.signature(run.module.forward).parameters)
            given = [value for name, value in zip(order, run.args) if name not in names] + list(run.args[len(order) :])
        keyword = {k: v for k, v in run.kwargs.items() if k not in TARGET_NAMES and k not in _UNLIKELY_INPUT}
        tensors = [self._on_host(tensor) for tensor in tensors_in((given, keyword), 6)]
        self._given = len(tensors)
        if not tensors or not _is_data(tensors[0]):
            return []  # what is fed first was computed: a generator's output, a hidden state
        return [tensor for tensor in tensors if _is_data(tensor) and tensor.shape[0] == tensors[0].shape[0]]

    def _on_host(self, tensor: Tensor) -> Tensor:
        """For an input on a device: the loader's own copy, where shapes agree (a device is never waited for)."""
        if tensor.device.type == "cpu" or self._delivered is None:
            return tensor
        for ref in self._delivered.tensors:
            other = ref()
            if other is not None and readable(other) and other.shape == tensor.shape:
                return other
        return tensor

    def _describe(self, model: _Model, run: ForwardRun, inputs: list[Tensor]) -> _Batch:
        first = inputs[0]
        size = int(first.shape[0])
        single = first.dim() == 1 and first.is_floating_point() and size > 1 and _width(run.module) == size
        if single:
            first, size = first.unsqueeze(0), 1
        step = max(1, -(-size // BATCH_ROWS))
        flat = _flat(first, step)
        hashes = row.fingerprints(flat)
        for other in inputs[1:] if not single else []:
            hashes = hashes * np.uint64(31) + row.fingerprints(_flat(other, step))
        columns = flat[:, row.positions(flat.shape[1], row.KEPT)].astype(np.float32)
        low, high = (
            (float(flat.min()), float(flat.max())) if flat.dtype.kind == "f" or flat.dtype.kind in "iu" else (0.0, 1.0)
        )
        delivered = self._delivered_this(inputs[0])
        batch = _Batch(
            model,
            run.grad,
            run.site,
            None if run.grad else _caller(),
            hashes,
            columns,
            tuple(first.shape[1:]),
            str(first.dtype).removeprefix("torch."),
            self._given,
            low,
            high,
            _storage(first),
            delivered,
        )
        self._latest = _Call(run.model, run.site, run.grad, weakref.ref(inputs[0]))
        if not math.isfinite(low) or not math.isfinite(high):
            self._note_nonfinite("input", inputs[0], self._latest)
        if delivered is not None:
            self._labels_delivered(batch, inputs[0], delivered, step)
        return batch

    def _delivered_this(self, tensor: Tensor) -> _Delivered | None:
        delivered = self._delivered
        if delivered is None:
            return None
        alive = [t for ref in delivered.tensors if (t := ref()) is not None]
        return delivered if any(t.dim() and t.shape[0] == tensor.shape[0] for t in alive) else None

    def _labels_delivered(self, batch: _Batch, used: Tensor, delivered: _Delivered, step: int) -> None:
        """The loader's own target, until a loss call says which target it was."""
        alive = [t for ref in delivered.tensors if (t := ref()) is not None and readable(t)]
        others = [t for t in alive[1:] if t is not used and t.dim() and t.shape[0] == used.shape[0]]
        if len(others) == 1 and not others[0].requires_grad:
            self._set_target(batch, others[0], step)

    def _set_target(self, batch: _Batch, target: Tensor, step: int = 1) -> None:
        target = target.detach()[::step]
        if len(target) != len(batch.rows):
            return
        if not target.is_floating_point():
            if target.dim() == 1 and target.dtype is not torch.bool:
                batch.labels, batch.values = target.numpy().astype(np.int64), None
        elif target.dim() == 1 or (target.dim() == 2 and target.shape[1] <= 16):
            batch.values, batch.labels = _flat(target, 1).astype(np.float64), None

    # -- targets

    def _fed_to(self, run: LossRun) -> _Batch | None:
        """The latest batch in the same gradient mode with as many rows as the target."""
        target = run.target
        if not isinstance(target, Tensor) or target.dim() == 0 or target.requires_grad or run.function == "kl_div":
            return None
        for batch in reversed(self._pending[-8:]):
            if batch.grad == run.grad:
                return batch if len(batch.rows) == target.shape[0] else None
        return None

    def _note_target(self, run: LossRun) -> None:
        call, target = self._latest, run.target
        if call is not None and call.grad == run.grad and isinstance(target, Tensor) and run.function != "kl_div":
            call.target, call.loss_site = weakref.ref(target), run.site

    def _pair(self, batch: _Batch, run: LossRun) -> None:
        target = run.target
        if not readable(target):
            return
        if self._latest is not None:
            self._latest.target, self._latest.loss_site = weakref.ref(target), run.site
            if target.is_floating_point() and not math.isfinite(float(target.detach().sum())):
                self._note_nonfinite("target", target, self._latest)
        if batch.paired:
            batch.model.ambiguous = batch.model.ambiguous or batch.grad
            return
        batch.paired, batch.function, batch.loss_site = True, run.function, run.site
        batch.weighted = run.arguments.get("weight") is not None or run.arguments.get("pos_weight") is not None
        batch.labels = batch.values = None
        if run.function in ("cross_entropy", "nll_loss"):
            self._pair_classes(batch, run, target)
        elif run.function.startswith("binary_cross_entropy") and target.numel() == target.shape[0]:
            batch.labels, batch.classes = _bits(target), 2
            if batch.labels is not None and batch.grad:
                self._recall(batch, run.input, batch.labels, run.function)
        else:
            self._set_target(batch, target)

    def _pair_classes(self, batch: _Batch, run: LossRun, target: Tensor) -> None:
        if not isinstance(run.input, Tensor) or run.input.dim() != 2:
            return
        if target.is_floating_point():
            target = target.detach()
            if not bool(((target == 0) | (target == 1)).all()) or not bool((target.sum(1) == 1).all()):
                return
            target = target.argmax(1)
        if target.dim() != 1:
            return
        batch.labels, batch.classes = target.detach().numpy().astype(np.int64), int(run.input.shape[1])
        ignored = run.arguments.get("ignore_index", -100)
        if bool((batch.labels == ignored).any()):
            batch.labels = None
        elif batch.grad:
            self._recall(batch, run.input, batch.labels, run.function)

    def _recall(self, batch: _Batch, scores: Any, labels: Array, function: str) -> None:
        """Right guesses by class, the latest batches counting most."""
        if not readable(scores) or batch.classes > 64:
            return
        scores = scores.detach().float().numpy()
        threshold = 0.5 if function == "binary_cross_entropy" else 0.0
        guess = (
            scores.argmax(1)
            if batch.classes > 2 or (scores.ndim == 2 and scores.shape[1] == 2)
            else (scores.reshape(-1) > threshold)
        )
        given = labels.tolist()  # of a usual batch Python counts faster than NumPy
        right = Counter(label for label, guessed in zip(given, guess.tolist()) if label == guessed)
        for label, count in Counter(given).items():
            entry = batch.model.recall.setdefault(label, [0.0, 0.0])
            entry[0] = 0.9 * entry[0] + right[label]
            entry[1] = 0.9 * entry[1] + count

    # -- when it is known what a batch was for

    def _settle_evaluations(self) -> None:
        if self._pending and not self._pending[-1].grad:
            with self.evaluation.paying():
                for batch in self._pending:
                    if not batch.grad:
                        self._settle(batch)
                self._pending = [batch for batch in self._pending if batch.grad]

    def _settle(self, batch: _Batch) -> None:
        if batch.reached:
            self._trained(batch)
        else:
            self._evaluated(batch)

    def _trained(self, batch: _Batch) -> None:
        model = batch.model
        if model.train is None:
            model.train = _Group("train", batch)
        group = model.train
        hashes = batch.rows.tolist()
        self._follow_batches(model, batch)
        if batch.delivered is not None and batch.delivered.dataset != model.dataset:
            model.dataset = batch.delivered.dataset
            model.generation += 1
        if len(model.fed_in) < DISTINCT:
            model.fed_in.update(dict.fromkeys(hashes, model.generation))
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
                model.again += 1
                model.again_same += old == label
                if old != label:
                    self._relabelled(model, met, key, old, label)
        if group.batches >= 1:
            model.known.append(1 - float(new.mean()))
        self._follow_epoch(model, batch, hashes, labels)
        group.take(batch, new)
        self._keep_labels(model, batch, new)

    @staticmethod
    def _relabelled(model: _Model, met: dict[int, Any], key: int, old: Any, label: Any) -> None:
        """A row that comes back to the label it had before is labelled twice; one that changes for good belongs to another task now."""
        if model.former.get(key) == label and len(model.conflicting) < 2000:
            model.conflicting.add(key)
        if key in model.former or len(model.former) < DISTINCT:
            model.former[key] = old
        met[key] = label

    def _follow_batches(self, model: _Model, batch: _Batch) -> None:
        """Runs of the same batch, and whether it is the same memory or was made anew."""
        total = int(batch.rows.sum()) & 0xFFFFFFFFFFFFFFF
        held = batch.storage[0] == model.storage
        if total == model.sum:
            model.run += 1
            model.run_held += held
        else:
            model.sum, model.run, model.run_held = total, 1, 0
        model.storage, model.storage_rows = batch.storage
        if model.run > model.longest[0]:
            model.longest = (model.run, model.run_held, self.session.step)
        if batch.delivered is not None:
            model.iterations = batch.delivered.iterations

    def _follow_epoch(self, model: _Model, batch: _Batch, hashes: list[int], labels: list[int]) -> None:
        delivered = batch.delivered
        if delivered is None or delivered is model.counted or delivered.sampler not in _WITHOUT_REPLACEMENT:
            return
        model.counted = delivered  # a batch that is fed again was drawn once
        epoch = (delivered.loader, delivered.iterations)
        if epoch != model.epoch:
            self._close_epoch(model, True)
            model.epoch, model.epoch_rows, model.epoch_seen = epoch, set(), 0
            model.epoch_repeats, model.epoch_whole = Counter(), True
        for key, label in zip(hashes, labels):
            if key in model.epoch_rows:
                model.epoch_repeats[label] += 1
        model.epoch_rows.update(hashes)
        model.epoch_seen += len(hashes)

    def _close_epoch(self, model: _Model, ended: bool) -> None:
        if model.epoch_whole and model.epoch_seen and len(model.epochs) < 3:
            model.epochs.append((model.epoch_seen, len(model.epoch_rows), dict(model.epoch_repeats.most_common(64))))

    def _keep_labels(self, model: _Model, batch: _Batch, new: Array) -> None:
        if batch.paired and not model.function:
            model.function, model.loss_site = batch.function, batch.loss_site
        model.classes = max(model.classes, batch.classes)
        model.weighted = model.weighted or batch.weighted
        group = model.train
        assert group is not None
        if batch.labels is not None:
            group.labels.update(batch.labels.tolist() if len(group.labels) < LABEL_CLASSES else [])
            model.pending_labels.append(batch.labels)
        elif batch.values is not None:
            self._keep_values(model, batch.values)
        else:
            return
        target = batch.labels if batch.labels is not None else batch.values[:, 0]  # type: ignore[index]
        self._reserve(model, batch.columns, target, new)

    def _keep_values(self, model: _Model, values: Array) -> None:
        if model.value_sum is None or len(model.value_sum) == values.shape[1]:
            model.value_sum = values.sum(axis=0) + (0 if model.value_sum is None else model.value_sum)
            model.value_squares = (values**2).sum(axis=0) + (0 if model.value_squares is None else model.value_squares)
            model.value_count += len(values)
        if len(model.value_set) < 200:
            model.value_set.update(values[:, 0].tolist())
        model.pending_values.append(values[:, 0])

    def _reserve(self, model: _Model, columns: Array, target: Array, new: Array) -> None:
        """A uniform sample of distinct rows with their labels (reservoir sampling, with a generator of our own)."""
        for i in np.flatnonzero(new).tolist():
            model.offered += 1
            entry = (columns[i], float(target[i]))
            if len(model.reservoir) < RESERVOIR:
                model.reservoir.append(entry)
            elif (place := self._random.randrange(model.offered)) < RESERVOIR:
                model.reservoir[place] = entry

    def _close_step(self, model: _Model) -> None:
        """Labels of all batches of the step together: halves of one step (real and fake, micro-batches) are one mix."""
        if model.pending_labels:
            model.order.take(np.concatenate(model.pending_labels))
            model.pending_labels = []
        elif model.pending_values:
            model.order.take_values(np.concatenate(model.pending_values))
        model.pending_values = []

    def _evaluated(self, batch: _Batch) -> None:
        model = batch.model
        if batch.grad and model.train is None and self.session.step <= 1:
            return  # a look at the shapes before training
        delivered = batch.delivered
        stream = hash((delivered.dataset, delivered.site)) if delivered else 0  # a loader may be made anew for each epoch
        key = (stream, id(batch.site), 0 if delivered else id(batch.caller))
        group = model.evaluations.get(key)
        if group is None:
            if len(model.evaluations) >= GROUPS:
                return
            group = model.evaluations[key] = _Group(f"eval-{len(model.evaluations) + 1}", batch)
        self._follow_pass(model, group, batch)
        trained = model.train.met if model.train else {}
        hashes = batch.rows.tolist()
        now = model.generation
        seen = [1 + (model.fed_in.get(key, now) < now) if key in trained else 0 for key in hashes]
        share = sum(map(bool, seen)) / max(len(seen), 1)
        group.full += share >= 0.9
        group.clean += share <= 0.02
        group.middle += 0.02 < share < 0.9
        new = np.fromiter((key not in group.met for key in hashes), bool, len(hashes))
        if len(group.met) < DISTINCT:
            group.met.update(zip(hashes, seen))
        if batch.labels is not None and len(group.labels) < LABEL_CLASSES:
            group.labels.update(batch.labels[new].tolist())
        group.take(batch, new)

    def _follow_pass(self, model: _Model, group: _Group, batch: _Batch) -> None:
        now = (
            batch.delivered.loader if batch.delivered else 0,
            batch.delivered.iterations if batch.delivered else 0,
            model.train.batches + model.train.skipped if model.train else 0,
        )
        if now != group.last_pass:
            group.last_pass = now
            group.passes += 1
            group.full = group.clean = group.middle = 0
            self._compare_passes(group)
        if batch.labels is not None and sum(map(len, group.order)) < 20_000:
            group.order.append(batch.rows)
            group.order_labels.append(batch.labels)

    @staticmethod
    def _compare_passes(group: _Group) -> None:
        """Rows at the same places of this pass and the one before, where the labels agree."""
        if not group.order:
            return
        rows, labels = np.concatenate(group.order), np.concatenate(group.order_labels)
        group.order, group.order_labels = [], []
        if group.before is not None and len(group.before[0]) == len(rows) and bool((group.before[1] == labels).all()):
            group.compared += len(rows)
            group.changed += int((group.before[0] != rows).sum())
        group.before = (rows, labels)

    # -- the first layer

    def _first(self, key: int, module: nn.Module, args: tuple[Any, ...], run: ForwardRun) -> None:
        value = next(tensors_in(args, 1), None)
        if (
            value is None
            or not readable(value)
            or not value.is_floating_point()
            or value.dim() < 2
            or value.numel() == 0
        ):
            return
        entry = self._firsts.get(key)
        if entry is None:
            if len(self._firsts) >= MODELS:
                return
            loader = self._delivered.site if self._delivered else None
            entry = self._firsts[key] = _First(module, sites.here(3), run, loader)
        if entry.steps < 8 and entry.module_class == type(module).__name__:
            entry.steps += 1
            channels = "Conv" in type(module).__name__
            values = value.detach().float()
            values = values.movedim(1, -1) if channels else values
            entry.take(values.reshape(-1, values.shape[-1])[:8192, :1024].numpy())

    # -- NaN and infinity

    def _look_for_nonfinite(self) -> None:
        """The loss is not finite: were the latest input and target?"""
        call = self._latest
        if call is None:
            return
        fed, target = call.input(), call.target() if call.target is not None else None
        if fed is not None and _is_data(fed) and fed.is_floating_point():
            self._note_nonfinite("input", fed, call)
        if target is not None and _is_data(target) and target.is_floating_point() and (fed is None or len(fed) == len(target)):
            self._note_nonfinite("target", target, call)

    def _note_nonfinite(self, what: str, tensor: Tensor, call: _Call) -> None:
        values = tensor.detach().float()
        bad = ~torch.isfinite(values)
        model = next((key for module, (key, _) in self._keys.items() if self.session.ids.of(module) == call.root), 0)
        if (model, what) in self._bad or not bool(bad.any()):
            return
        self._bad.add((model, what))
        flat = bad.reshape(len(bad), -1)
        delivered = self._delivered_this(tensor)
        self.session.emit(
            NonFiniteFed(
                step=self.session.step,
                model=model,
                what=what,
                site=call.loss_site if what == "target" else call.site,
                loader_site=delivered.site if delivered else None,
                breaks=tuple(place for code in delivered.codes for place in source.breaks(code)) if delivered else (),
                nans=int(torch.isnan(values).sum()),
                infinities=int(torch.isinf(values).sum()),
                rows=tuple(flat.any(1).nonzero().reshape(-1)[:8].tolist()),
                columns=tuple(flat.any(0).nonzero().reshape(-1)[:8].tolist()),
                batch=int(tensor.shape[0]),
                training=call.grad,
            )
        )

    # -- saying it

    def _say(self, everything: bool) -> None:
        for model in self.models.values():
            if model.train is not None:
                self._say_group(model, model.train)
                if model.order.steps and not model.ambiguous:
                    self._say_labels(model, everything)
            for group in model.evaluations.values():
                self._say_group(model, group)
        for key, first in self._firsts.items():
            self._say_first(key, first)

    def _say_group(self, model: _Model, group: _Group) -> None:
        first, delivered = group.first, group.first.delivered
        table = group.table()
        training = group.name == "train"
        rows, distinct, repeated = model.epochs[0] if training and model.epochs else (0, 0, {})
        self.session.emit(
            Fed(
                step=self.session.step,
                key=f"fed-{model.number}-{group.name}",
                model=model.number,
                group=group.name,
                site=first.site,
                loader=delivered.loader if delivered else 0,
                dataset=delivered.dataset if delivered else 0,
                loader_site=delivered.site if delivered else None,
                iter_site=delivered.iter_site if delivered else None,
                sampler=delivered.sampler if delivered else "",
                dataset_size=delivered.size if delivered else None,
                workers=delivered.workers if delivered else 0,
                row_shape=first.shape,
                dtype=first.dtype,
                batch_size=group.width,
                batches=group.batches,
                rows=group.seen,
                distinct=len(group.met),
                skipped=group.skipped,
                passes=group.passes,
                inputs=first.inputs,
                bits=row.bits_of(table, math.prod(first.shape)) if table.size else 0.0,
                whole=bool((table == np.floor(table)).all()) if table.size else False,
                columns=group.columns(),
                known=float(np.mean(model.known)) if training and model.known else 0.0,
                trained=0 if training else sum(map(bool, group.met.values())),
            earlier=0 if training else sum(value == 2 for value in group.met.values()),
                full=group.full,
                clean=group.clean,
                middle=group.middle,
                compared=group.compared,
                changed=group.changed,
                epoch_rows=rows,
                epoch_distinct=distinct,
                repeated_labels=repeated or None,
                run=model.longest[0] if training else 0,
                run_held=model.longest[1] if training else 0,
                run_last=model.longest[2] if training else 0,
                iterations=model.iterations if training else 0,
                storage_rows=model.storage_rows if training else 0,
            )
        )

    def _say_labels(self, model: _Model, everything: bool) -> None:
        group, order = model.train, model.order
        assert group is not None
        total = sum(group.labels.values())
        chance = sum(n * (n - 1) for n in group.labels.values()) / max(total * (total - 1), 1)
        held_out: Counter[int] = Counter()
        for other in model.evaluations.values():
            held_out.update(other.labels)
        delivered = group.first.delivered
        count = max(model.value_count, 1)
        mean = model.value_sum / count if model.value_sum is not None else np.zeros(0)
        std = (
            np.sqrt(np.maximum(model.value_squares / count - mean**2, 0))
            if model.value_squares is not None
            else np.zeros(0)
        )
        table = group.table()
        self.session.emit(
            Labels(
                step=self.session.step,
                key=f"labels-{model.number}",
                model=model.number,
                site=model.loss_site,
                function=model.function,
                classes=model.classes,
                counts=dict(group.labels),
                distinct=dict(Counter(group.met.values())) if group.labels else {},
                steps=order.steps,
                first_forward=group.first.site,
                loader=delivered.loader if delivered else 0,
                loader_site=delivered.site if delivered else None,
                sampler=delivered.sampler if delivered else "",
                pure=order.same / max(order.pairs, 1),
                pure_expected=chance,
                run=order.length / (order.changes + 1),
                again=model.again,
                again_same=model.again_same,
                conflicting=len(model.conflicting),
                bits=row.bits_of(table, math.prod(group.first.shape)) if table.size else 0.0,
                weighted=model.weighted,
                recall={label: right / max(all_, 1e-9) for label, (right, all_) in model.recall.items()} or None,
                held_out=dict(held_out) or None,
                rising=max(order.rises, order.falls) / max(order.rises + order.falls, 1),
                value_distinct=len(model.value_set),
                value_columns=len(mean),
                value_mean=_numbers(mean),
                value_std=_numbers(std),
                neighbours=self._neighbours(model) if everything else None,
                giveaway=self._giveaway(model) if everything else None,
            )
        )

    def _reserved(self, model: _Model) -> tuple[Array, Array]:
        width = Counter(len(columns) for columns, _ in model.reservoir).most_common(1)
        kept = [entry for entry in model.reservoir if width and len(entry[0]) == width[0][0]]
        if not kept:
            return np.zeros((0, 0)), np.zeros(0)
        return np.stack([columns for columns, _ in kept]), np.array([target for _, target in kept])

    def _neighbours(self, model: _Model) -> Neighbours | None:
        rows, target = self._reserved(model)
        if len(rows) < 60 or not np.isfinite(target).all():
            return None
        said = row.foretold(rows, target, bool(model.train and model.train.labels))
        return Neighbours(len(rows), *said) if said else None

    def _giveaway(self, model: _Model) -> Giveaway | None:
        rows, target = self._reserved(model)
        if len(rows) < 40 or rows.shape[1] < 2 or not np.isfinite(target).all() or not np.isfinite(rows).all():
            return None
        column, error, exact = row.straight_lines(rows, target)
        labels = bool(model.train and model.train.labels)
        values = len(np.unique(rows[:, column])) if column >= 0 else 0
        total = math.prod(model.train.first.shape) if model.train else 0
        place = int(row.positions(total, row.KEPT)[column]) if column >= 0 else -1
        same = labels and column >= 0 and row.one_to_one(rows[:, column], target)
        return Giveaway(place, len(rows), error, exact, same, values)

    def _say_first(self, key: int, first: _First) -> None:
        if first.sum is None or first.squares is None:
            return
        self.session.emit(
            FirstWeights(
                step=self.session.step,
                key=f"first-{key}",
                model=key,
                module_class=first.module_class,
                site=first.site,
                forward_site=first.forward_site,
                loader_site=first.loader_site,
                rms=_numbers(np.sqrt(first.squares / first.count)),
                centre=_numbers(first.sum / first.count),
                low=first.low,
                high=first.high,
                binary=first.binary,
                whole=first.whole,
                samples=first.count,
            )
        )


def _may_be_data(value: Any) -> bool:
    return plain(value) and not value.requires_grad and value.dim() > 0


def _is_data(tensor: Tensor) -> bool:
    return readable(tensor) and not tensor.requires_grad and tensor.dim() > 0 and tensor.numel() > 0


def _identity(session: Session, thing: Any) -> int:
    try:
        return session.ids.of(thing)
    except TypeError:
        return id(thing)  # lists cannot be held weakly


def _flat(tensor: Tensor, step: int) -> Array:
    tensor = tensor.detach()[::step]
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.float()
    return tensor.reshape(len(tensor), -1).numpy()


def _bits(target: Tensor) -> Array | None:
    values = target.detach().reshape(-1)
    return values.numpy().astype(np.int64) if bool(((values == 0) | (values == 1)).all()) else None


def _storage(tensor: Tensor) -> tuple[int, int]:
    """The identity of the memory, and how many rows of this size it holds."""
    storage = tensor.untyped_storage()
    row_bytes = max(1, tensor.element_size() * tensor[0].numel())
    return storage.data_ptr(), storage.nbytes() // row_bytes


def _width(module: nn.Module) -> int:
    weight = next((p for p in module.parameters() if p.dim() >= 2), None)
    return int(weight.shape[1]) if weight is not None else 0


def _caller() -> Site | None:
    """The user's line that called the function which called the model."""
    frame: FrameType | None = sys._getframe(4)
    found = 0
    while frame is not None:
        if sites.is_user(frame.f_code.co_filename):
            found += 1
            if found == 2:
                return sites._site(frame, frame.f_code.co_filename)
        frame = frame.f_back
    return None
