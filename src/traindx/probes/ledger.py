"""The ledger of what was fed: each batch of a model's inputs as content hashes and column statistics, by training and
evaluation.

No tensor is kept: a batch is reduced to hashes, at most 256 columns of numbers and its labels, until the step that used
it is over.
"""
from __future__ import annotations

import inspect
import math
import sys
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from traindx.core.observed import Site
from traindx.core.observed.fed import NonFiniteFed
from traindx.core.observed.program import Event
from traindx.probes import rows as row
from traindx.probes import sites, source
from traindx.probes.fed_arrivals import Arrivals
from traindx.probes.fed_batches import Batch, Call, as_rows, is_data, may_be_data, names_a_task, storage_of, width_of
from traindx.probes.fed_counts import Model
from traindx.probes.fed_first import First, enters
from traindx.probes.fed_maps import Maps
from traindx.probes.fed_said import fed_of, first_of, labels_of, written_in
from traindx.probes.session import BackwardRun, Budget, ForwardRun, LossRun, Probe, Session
from traindx.probes.tensors import readable, tensors_in

MODELS = 8  # models with a ledger
BATCH_ROWS = 4096  # rows looked at in one batch
PENDING = 256  # batches whose use is not known yet
FREE_SECONDS = 0.25  # spent at will, beyond the share of the time that a Budget grants
TARGET_NAMES = frozenset(("target", "targets", "label", "labels", "y", "y_true"))
_UNLIKELY_INPUT = frozenset(
    ("attention_mask", "mask", "lengths", "padding_mask", "src_mask", "tgt_mask", "position_ids", "token_type_ids")
)


def install(session: Session) -> None:
    session.add(FedLedger)


class Allowance(Budget):
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


class FedLedger(Probe):
    """Inputs and targets by model, split and time."""

    areas = ("data", "loss")
    always = ("on_batch",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.budget = Allowance(session)
        self.evaluation = Allowance(session, free=0)  # of its own: a long training leaves enough for the first validation
        self.models: dict[int, Model] = {}
        self._keys: weakref.WeakKeyDictionary[nn.Module, tuple[int, frozenset[str]]] = weakref.WeakKeyDictionary()
        self._pending: list[Batch] = []
        self._current: Batch | None = None
        self._run: ForwardRun | None = None
        self._first_done = True
        self._firsts: dict[int, First] = {}
        self._maps: dict[int, Maps] = {}
        self._arrivals = Arrivals(session)
        self._given = 0  # tensors of the latest call
        self._latest: Call | None = None
        self._head = 0  # the root module that ran last: heads may be called by themselves
        self._bad: dict[tuple[int, str], NonFiniteFed] = {}

    # -- hooks

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        self._arrivals.take(loader, batch)

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
        if first is not None and may_be_data(first):
            self._latest = Call(run.model, run.site, run.grad, weakref.ref(first))
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
            self._latest = Call(*given)

    def after_forward(self, run: ForwardRun) -> None:
        batch, self._current, self._run = self._current, None, None
        self._head = run.model
        if batch is None or run.failed or not run.grad:
            return
        for tensor in tensors_in(run.output, 4):
            if tensor.requires_grad and tensor.grad_fn is not None:
                tensor.register_hook(lambda _: setattr(batch, "reached", True))
                return
        batch.frozen = True

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
            model.close_step()
        if step >= 16 and step & (step - 1) == 0:
            self._say(step in (64, 512, 4096))
        self._latest = None

    def at_end(self) -> None:
        for batch in self._pending:
            self._settle(batch)
        self._pending = []
        for model in self.models.values():
            model.close_step()
            model.close_epoch()
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

    def _model(self, key: int) -> Model | None:
        if key and key not in self.models and len(self.models) < MODELS:
            self.models[key] = Model(key)
        return self.models.get(key)

    def _skip(self, model: Model, run: ForwardRun) -> None:
        if run.grad and model.train is not None:
            model.train.skipped += 1
            model.epoch_whole = False

    def _batch(self, model: Model, run: ForwardRun, names: frozenset[str]) -> Batch | None:
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
        tensors = [self._arrivals.on_host(tensor) for tensor in tensors_in((given, keyword), 6)]
        self._given = len(tensors)
        if not tensors or not is_data(tensors[0]):
            return []  # what is fed first was computed: a generator's output, a hidden state
        return [tensor for tensor in tensors if is_data(tensor) and tensor.shape[0] == tensors[0].shape[0]]

    def _describe(self, model: Model, run: ForwardRun, inputs: list[Tensor]) -> Batch:
        first = inputs[0]
        size = int(first.shape[0])
        single = first.dim() == 1 and first.is_floating_point() and size > 1 and width_of(run.module) == size
        if single:
            first, size = first.unsqueeze(0), 1
        step = max(1, -(-size // BATCH_ROWS))
        flat = as_rows(first, step)
        hashes = row.fingerprints(flat)
        for other in inputs[1:] if not single else []:
            hashes = hashes * np.uint64(31) + row.fingerprints(as_rows(other, step))
        columns = flat[:, row.positions(flat.shape[1], row.KEPT)].astype(np.float32)
        low, high = (
            (float(flat.min()), float(flat.max())) if flat.dtype.kind == "f" or flat.dtype.kind in "iu" else (0.0, 1.0)
        )
        delivered = self._arrivals.of(inputs[0])
        batch = Batch(
            model,
            run.grad,
            run.site,
            None if run.grad else caller(),
            hashes,
            columns,
            tuple(first.shape[1:]),
            str(first.dtype).removeprefix("torch."),
            self._given,
            low,
            high,
            storage_of(first),
            delivered,
            asked=tuple(value for value in (*run.args, *run.kwargs.values()) if names_a_task(value)),
        )
        self._latest = Call(run.model, run.site, run.grad, weakref.ref(inputs[0]))
        if not math.isfinite(low) or not math.isfinite(high):
            batch.unfit = run.grad and run.training
            self._note_nonfinite("input", inputs[0], self._latest)
        if delivered is not None:
            batch.take_delivered_target(inputs[0], delivered, step)
        return batch

    def _first(self, key: int, module: nn.Module, args: tuple[Any, ...], run: ForwardRun) -> None:
        value = next(tensors_in(args, 1), None)
        if not enters(value):
            return
        entry = self._firsts.get(key)
        if entry is None:
            if len(self._firsts) >= MODELS:
                return
            loader = self._arrivals.latest.site if self._arrivals.latest else None
            entry = self._firsts[key] = First(module, sites.here(3), run, loader)
        entry.take_from(value, module)

    # -- targets

    def _fed_to(self, run: LossRun) -> Batch | None:
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

    def _pair(self, batch: Batch, run: LossRun) -> None:
        target = run.target
        if not readable(target):
            return
        if self._latest is not None:
            self._latest.target, self._latest.loss_site = weakref.ref(target), run.site
            if target.is_floating_point() and not math.isfinite(float(target.detach().sum())):
                self._note_nonfinite("target", target, self._latest)
        batch.pair(run, self._head)
        if batch.grad:
            self._lay(batch, run)

    def _lay(self, batch: Batch, run: LossRun) -> None:
        images = self._latest.input() if self._latest is not None else None
        maps = self._maps.setdefault(batch.model.number, Maps())
        if images is not None and len(images) == len(batch.rows) and maps.wants:
            maps.take(images, run, batch.site, batch.delivered)

    # -- when it is known what a batch was for

    def _settle_evaluations(self) -> None:
        if self._pending and not self._pending[-1].grad:
            with self.evaluation.paying():
                for batch in self._pending:
                    if not batch.grad:
                        self._settle(batch)
                self._pending = [batch for batch in self._pending if batch.grad]

    def _settle(self, batch: Batch) -> None:
        if batch.reached:
            batch.model.trained(batch, self.session.step)
        elif batch.unfit:
            batch.model.left_out += 1
        elif not batch.frozen:
            batch.model.evaluated(batch, self.session.step)

    # -- NaN and infinity

    def _look_for_nonfinite(self) -> None:
        """The loss is not finite: were the latest input and target?"""
        call = self._latest
        if call is None:
            return
        fed, target = call.input(), call.target() if call.target is not None else None
        if fed is not None and is_data(fed) and fed.is_floating_point():
            self._note_nonfinite("input", fed, call)
        if target is not None and is_data(target) and target.is_floating_point() and (fed is None or len(fed) == len(target)):
            self._note_nonfinite("target", target, call)

    def _note_nonfinite(self, what: str, tensor: Tensor, call: Call) -> None:
        values = tensor.detach().float()
        bad = ~torch.isfinite(values)
        model = next((key for module, (key, _) in self._keys.items() if self.session.ids.of(module) == call.root), 0)
        if (model, what) in self._bad or not bool(bad.any()):
            return
        flat = bad.reshape(len(bad), -1)
        delivered = self._arrivals.of(tensor)
        site = call.loss_site if what == "target" else call.site
        self._bad[model, what] = found = NonFiniteFed(
            step=self.session.step,
            key=f"nonfinite-{model}-{what}",
            model=model,
            what=what,
            site=site,
            loader_site=delivered.site if delivered else None,
            breaks=tuple(place for code in delivered.codes for place in source.breaks(code)) if delivered else _breaks_before(site),
            nans=int(torch.isnan(values).sum()),
            infinities=int(torch.isinf(values).sum()),
            rows=tuple(flat.any(1).nonzero().reshape(-1)[:8].tolist()),
            columns=tuple(flat.any(0).nonzero().reshape(-1)[:8].tolist()),
            batch=int(tensor.shape[0]),
            training=call.grad,
        )
        self.session.emit(found)

    # -- saying it

    def _say(self, everything: bool) -> None:
        step, emit = self.session.step, self.session.emit
        for model in self.models.values():
            if model.train is not None:
                emit(fed_of(model, model.train, step))
                if model.order.steps and not model.ambiguous:
                    emit(labels_of(model, step, everything))
            for group in model.evaluations.values():
                emit(fed_of(model, group, step))
        for (number, what), found in self._bad.items():
            fed = self.models.get(number)
            if what == "input" and fed is not None and fed.left_out:
                emit(replace(found, skipped=fed.left_out, batches=fed.left_out + (fed.train.batches if fed.train else 0)))
        for number, maps in self._maps.items():
            if maps.seen:
                emit(maps.said(number, step, written_in(maps.delivered)))
        for key, first in self._firsts.items():
            if (seen := first_of(key, first, step)) is not None:
                emit(seen)


def _breaks_before(site: Site | None) -> tuple[Site, ...]:
    file = sites.file_of(site) if site else None
    return source.breaks_before(file, site.line) if site and file else ()


def caller() -> Site | None:
    """The user's line that called the function which called the model."""
    frame: FrameType | None = sys._getframe(4)
    found = 0
    while frame is not None:
        if sites.is_user(frame.f_code.co_filename):
            found += 1
            if found == 2:
                return sites.of_frame(frame, frame.f_code.co_filename)
        frame = frame.f_back
    return None
