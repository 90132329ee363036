"""A few samples of what reaches ``model(x)`` and the loss, copied; of the others hashes and small features. On for ``traindx data`` only.

Training is what a backward follows, evaluation is the rest. No tensor is kept past its step, and no random number of
the program's is drawn.
"""
from __future__ import annotations

import random
import time
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data.dataloader import _BaseDataLoaderIter

from traindx.core.observed.data import LoaderMade
from traindx.core.observed.samples import HELD_OUT, TRAIN, Shown, SplitSeen
from traindx.probes import patching, rows
from traindx.probes.fewer import samples_in
from traindx.probes.loaders import Loaders, owner_of
from traindx.probes.rows import Array
from traindx.probes.sample_features import by_feature, features_of
from traindx.probes.sample_sources import class_names, decoded, files_of, tokenizer_of
from traindx.probes.sample_splits import Kept, Split, Waiting
from traindx.probes.session import BackwardRun, ForwardRun, LossRun, Probe, Session
from traindx.probes.tensors import plain, tensors_in

LOOK = "samples"
ROWS = 20_000  # of a split's first pass whose hashes and labels are kept
FEW = 5_000  # where no loader tells one pass from the next
FEATURED = 2_500  # of them with features
SHOWN_ELEMENTS = 250_000  # of a sample that is kept whole
SPLITS = 6
PARTS = 3  # tensors of one sample
SECONDS = 120.0
_UNIQUE = ("SequentialSampler", "RandomSampler", "SubsetRandomSampler", "DistributedSampler", "SeedableRandomSampler")


def install(session: Session) -> None:
    if LOOK in session.looks:
        patching.replace(session.stack, _BaseDataLoaderIter, "_next_index", lambda original: _observed_index(original, session))
        session.add(Samples)


def _observed_index(original: Any, session: Session) -> Any:
    def _next_index(self: Any) -> Any:
        index = original(self)
        probe = Samples.instance
        if probe is not None and session.watching:
            probe.ahead(self, index)
        return index
    return patching.dressed(_next_index, original)


class Samples(Probe):
    """One pass over the training data and what is evaluated meanwhile; then the program may end."""

    areas = ("data",)
    instance: Samples | None = None

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        Samples.instance = self
        self._replacing: set[int] = set()  # loaders whose sampler draws with replacement
        self._ahead: weakref.WeakKeyDictionary[Any, deque[Any]] = weakref.WeakKeyDictionary()
        self._queue: dict[int, deque[Any]] = {}
        self._indices: Array | None = None
        look = session.looks[LOOK]
        self.wanted = int(look.get("wanted", 5))
        self.random = random.Random(int(look.get("seed", 0)))
        self.splits: dict[tuple[Any, ...], Split] = {}
        self.pending: Waiting | None = None
        self.names: tuple[str, ...] = ()
        self.tokenizer: Any = None
        self._looked = False
        self._files: dict[int, tuple[str, ...]] = {}
        self._forwarded: list[Split] = []  # with gradients, since the last step
        self._delivered: tuple[LoaderMade | None, list[Tensor], Any] = (None, [], None)  # until the next forward
        self._began = time.monotonic()

    # -- what comes --

    def ahead(self, iterator: Any, index: Any) -> None:
        """A loader's iterator has drawn the indices of a batch, which comes later where workers fetch it."""
        queue = self._ahead.get(iterator)
        if queue is None:
            queue = self._ahead[iterator] = deque(maxlen=4096)
            ref = owner_of(iterator)  # none yet where workers are given work while it is made
            number = ref[1] if ref else -1
            self._queue[number] = queue
            self._look_at(number, iterator)
        queue.append(index if isinstance(index, list) and all(isinstance(i, int) for i in index) else None)

    def _look_at(self, number: int, iterator: Any) -> None:
        """What the dataset tells of its samples; the dataset itself is not kept."""
        dataset = getattr(iterator, "_dataset", None)
        if getattr(getattr(getattr(iterator, "_index_sampler", None), "sampler", None), "replacement", False):
            self._replacing.add(number)
        self.names = self.names or class_names(dataset)
        self._files[number] = tuple(files_of(dataset))
        if self.tokenizer is None:
            self.tokenizer = tokenizer_of(getattr(iterator, "_collate_fn", None), dataset)

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        self._settle()
        made = Loaders.instance.latest  # the loader itself may be gone: for ... in DataLoader(...)
        queue = self._queue.get(made.id if made is not None else 0) or self._queue.get(-1)
        drawn = queue.popleft() if queue else None
        self._indices = np.array(drawn) if drawn else None
        size = made.batch_size if made is not None else None
        self._delivered = (made, list(tensors_in(batch, 16)), samples_in(batch, size if isinstance(size, int) else None))

    def before_forward(self, run: ForwardRun) -> None:
        self._settle()
        found = [t for t in tensors_in((run.args, run.kwargs), 12) if plain(t) and t.dim() > 0 and t.grad_fn is None]
        loader, delivered, size = self._delivered
        if not found:
            self._note_odd(run)
            return
        count = size if size and any(size in t.shape[:2] for t in found) else int(found[0].shape[0])
        labels = _names_of_labels(run.kwargs)
        parts = [(t, 0 if t.shape[0] == count else 1) for t in found if count in t.shape[:2] and not any(t is each for each in labels)]
        split = self._split(run, loader, delivered, parts)
        if split is None or not parts or count == 0:
            return
        targets = [*labels, *_other_tensors(delivered, [t for t, _ in parts], count)]
        self._take(split, [(t.movedim(dim, 0) if dim else t) for t, dim in parts[:PARTS]], count, targets)

    def on_loss(self, run: LossRun) -> None:
        if self.pending is not None and isinstance(run.target, Tensor):
            self.pending.targets.insert(0, run.target)

    def before_backward(self, run: BackwardRun) -> None:
        for split in self._forwarded:
            split.trained = split.trained or split.training == self._forwarded[-1].training

    def after_forward(self, run: ForwardRun) -> None:
        if not run.grad:
            self._settle(keep=True)

    def on_tick(self, step: int) -> None:
        self._settle()
        self._forwarded.clear()
        if self._enough():
            self.session.max_steps = step  # the clock ends the program after this step

    def _enough(self) -> bool:
        train = [split for split in self.splits.values() if split.trained]
        again = any(split.ended for split in train)
        held_out = any(not split.trained for split in self.splits.values())
        many = any(split.seen > (ROWS if split.loader else FEW) for split in train)
        return ((again or many) and held_out) or time.monotonic() - self._began > SECONDS or any(s.seen > ROWS for s in train)

    # -- which split --

    def _split(self, run: ForwardRun, loader: LoaderMade | None, delivered: list[Tensor], parts: list[tuple[Tensor, int]]) -> Split | None:
        model = self.session.ids.of(run.module)
        place = (id(run.site), loader.id if loader is not None else 0)
        key = (model, run.training) if run.grad else (model, *place)
        split = self.splits.get(key)
        if split is None:
            if len(self.splits) >= SPLITS or not parts:
                return None
            split = self.splits[key] = Split(len(self.splits), model, type(run.module).__name__, run.site, run.training)
            if loader is not None and _from(delivered, [t for t, _ in parts]):
                self._describe(split, loader)
        if run.grad and split not in self._forwarded:
            self._forwarded.append(split)
        if loader is not None and split.loader:
            split.iteration = split.iteration or loader.iterations
            anew = loader.id != split.loader  # a loader that is made for each epoch
            split.ended = split.ended or anew or loader.iterations > split.iteration
        return None if split.ended else split

    def _describe(self, split: Split, loader: LoaderMade) -> None:
        split.loader, split.loader_site, split.dataset = loader.id, loader.site or loader.iter_site, loader.dataset_class
        split.unique = loader.sampler in _UNIQUE and loader.id not in self._replacing
        split.files = self._files.get(loader.id) or self._files.get(-1, ())

    def _note_odd(self, run: ForwardRun) -> None:
        """Inputs that cannot be shown are named, not passed over."""
        for split in self.splits.values():
            if split.model == self.session.ids.of(run.module):
                split.notes.add("inputs without plain tensors were not looked at")

    # -- taking --

    def _take(self, split: Split, parts: list[Tensor], count: int, targets: list[Tensor]) -> None:
        lead = parts[0].detach()
        if split.row_shape and tuple(lead.shape[1:]) != split.row_shape:
            split.notes.add("the shape of a sample varies")
        split.row_shape, split.dtype = split.row_shape or tuple(lead.shape[1:]), split.dtype or str(lead.dtype).removeprefix("torch.")
        numbers = _numbers(lead)
        if numbers is None:
            split.notes.add(f"tensors of {split.dtype} were not looked at")
            return
        first = split.seen
        split.seen, split.batches = split.seen + count, split.batches + 1
        if first < ROWS:
            flat = numbers.reshape(count, -1)
            drawn = self._indices
            split.indices.append(drawn if drawn is not None and len(drawn) == count else np.full(count, -1))
            split.hashes.append(rows.fingerprints(flat) if flat.shape[1] else np.zeros(count, np.uint64))
            self._measure(split, numbers)
        chosen = self._choose(split, parts, first, count)
        self.pending = Waiting(split, first, count, chosen, targets)

    def _measure(self, split: Split, numbers: Array) -> None:
        split.feature, features = features_of(numbers, split.feature)
        if split.featured < FEATURED and features is not None and (not split.features or split.features[0].shape[1] == features.shape[1]):
            split.features.append(features[: FEATURED - split.featured])
            split.featured += len(split.features[-1])
        by = by_feature(numbers)
        if by is not None and (split.total is None or len(split.total) == by.shape[1]):
            split.count += len(by)
            split.total = by.sum(axis=0) + (0 if split.total is None else split.total)
            split.squares = (by * by).sum(axis=0) + (0 if split.squares is None else split.squares)

    def _choose(self, split: Split, parts: list[Tensor], first: int, count: int) -> list[Kept]:
        """Reservoir sampling: each sample of the pass is kept with the same chance. A batch of one step gives its own rows in order."""
        made = []
        for row in range(count):
            index = first + row
            place = len(split.kept) if len(split.kept) < self.wanted else self.random.randrange(index + 1)
            if place >= self.wanted:
                continue
            whole, hidden = _whole(parts, row)
            kept = Kept(index, row, split.batches, whole, hidden=hidden)
            if kept.parts and kept.parts[0].ndim == 1 and kept.parts[0].dtype.kind in "iu":
                kept.text = self._decoded(kept.parts[0])
            if place == len(split.kept):
                split.kept.append(kept)
            else:
                split.kept[place] = kept
            made.append(kept)
        return made

    # -- labels --

    def _settle(self, keep: bool = False) -> None:
        """The labels of the last forward: its loss' targets, else what came with it in the loader's batch."""
        batch = self.pending
        if batch is None or (keep and not batch.targets):
            return
        self.pending = None
        self._delivered = (self._delivered[0], [], None)
        target = next((t for t in batch.targets if plain(t) and t.dim() > 0 and t.shape[0] == batch.count), None)
        if target is None:
            target = next((t.reshape(batch.count, -1) for t in batch.targets
                           if plain(t) and t.numel() and t.numel() % batch.count == 0 and t.numel() > batch.count), None)
        split = batch.split
        if batch.first < ROWS:
            split.labels.append(self._labels(split, target, batch.count))
        values = _numbers(target.detach()) if target is not None else None
        if values is None:
            return
        for kept in batch.shown:
            row = values[kept.row]
            kept.label = row.item() if row.size == 1 else row.reshape(-1).tolist() if row.size <= 24 else f"{list(row.shape)}"
            kept.target = np.array(row) if row.ndim >= 2 and row.size <= SHOWN_ELEMENTS else None

    def _labels(self, split: Split, target: Tensor | None, count: int) -> Array:
        values = _numbers(target.detach()) if target is not None else None
        kind, labels = "none", np.full(count, np.nan)
        if values is not None and values.size == count:
            kind, labels = ("classes" if values.dtype.kind in "iub" else "values"), values.reshape(count).astype(np.float64)
            if kind == "values" and len(np.unique(labels)) <= 2 and np.isin(labels, (0.0, 1.0)).all():
                kind = "classes"  # binary cross entropy takes its classes as floats
        elif values is not None:
            kind = "other"
        split.label_kind = kind if split.label_kind in ("none", kind) or kind == "values" else split.label_kind
        return labels

    # -- text --

    def _decoded(self, ids: Array) -> str | None:
        if self.tokenizer is None and not self._looked:
            self._looked, self.tokenizer = True, tokenizer_of(None, None)
        return decoded(self.tokenizer, ids.tolist()) if self.tokenizer is not None else None

    # -- the end --

    def at_end(self) -> None:
        self._settle()
        counts: Counter[tuple[int, str]] = Counter()
        for split in self.splits.values():
            if split.seen:
                name = TRAIN if split.trained else HELD_OUT
                counts[split.model, name] += 1
                many = counts[split.model, name]
                self._tell(split, name if many == 1 else f"{name}-{many}")

    def _tell(self, split: Split, name: str) -> None:
        folder = self.session.recorder.folder
        if folder is None:
            return
        arrays: dict[str, Array] = {
            "hashes": _joined(split.hashes, np.uint64), "indices": _joined(split.indices, np.int64), "labels": _joined(split.labels, np.float64),
            "features": np.concatenate(split.features) if split.features else np.zeros((0, 0), np.float32)}
        if split.count and split.total is not None and split.squares is not None:
            arrays["location"] = split.total / split.count
            arrays["scale"] = np.sqrt(np.maximum(split.squares / split.count - arrays["location"] ** 2, 0))
        shown = []
        for place, kept in enumerate(sorted(split.kept, key=lambda each: each.index)):
            names = tuple(f"shown-{place}-{part}" for part in range(len(kept.parts)))
            arrays |= dict(zip(names, kept.parts))
            if kept.target is not None:
                arrays[f"target-{place}"] = kept.target
            shown.append(Shown(kept.index, kept.row, kept.batch, kept.label, kept.text, names,
                               f"target-{place}" if kept.target is not None else None, kept.hidden))
        file = f"samples-{split.number}.npz"
        np.savez(folder / file, **arrays)  # type: ignore[arg-type]
        self.session.emit(SplitSeen(
            step=self.session.step, key=f"split-{split.number}", name=name, number=split.number, model=split.model,
            class_name=split.class_name, site=split.site, samples=split.seen, batches=split.batches, row_shape=split.row_shape,
            dtype=split.dtype, feature=split.feature, label_kind=split.label_kind, file=file, unique=split.unique,
            whole_pass=split.ended or not split.trained, loader_site=split.loader_site, dataset=split.dataset, shown=tuple(shown),
            notes=tuple(sorted(split.notes)), names=self.names, files=split.files,
            tokenizer=type(self.tokenizer).__name__ if self.tokenizer is not None else ""))


def _joined(parts: list[Array], kind: Any) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, kind)


def _numbers(tensor: Tensor) -> Array | None:
    """A copy as NumPy, half precisions widened; None for what has no numbers to show."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if not plain(tensor):
        return None
    tensor = tensor.detach().cpu()
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.float()
    try:
        return tensor.numpy().copy()
    except (TypeError, RuntimeError):
        return None


def _whole(parts: Iterable[Tensor], row: int) -> tuple[list[Array], str]:
    """The row of each part, copied; the shape of one that is too large to be shown."""
    made: list[Array] = []
    for part in parts:
        if part[row].numel() > SHOWN_ELEMENTS:
            return made, f"{list(part.shape[1:])}"
        numbers = _numbers(part[row])
        if numbers is not None:
            made.append(numbers)
    return made, ""


def _from(delivered: list[Tensor], parts: list[Tensor]) -> bool:
    """Whether the loader's last batch is what the model is given (moved or changed tensors are let pass by their number of rows)."""
    leads = {int(t.shape[0]) for t in delivered if t.dim() > 0}
    return any(any(t is each for each in delivered) or int(t.shape[0]) in leads for t in parts)


def _other_tensors(delivered: list[Tensor], used: list[Tensor], count: int) -> Iterator[Tensor]:
    """Of the loader's batch, what is no input: labels first, one for each sample."""
    others = [t for t in delivered if t.dim() > 0 and t.shape[0] == count and not any(_same(t, each) for each in used)]
    return iter(sorted(others, key=lambda t: t.numel()))


def _same(one: Tensor, other: Tensor) -> bool:
    """One tensor, or a copy of it."""
    if one is other:
        return True
    return one.shape == other.shape and one.dtype == other.dtype and plain(one) and torch.equal(one.cpu(), other.detach().cpu())


def _names_of_labels(kwargs: dict[str, Any]) -> list[Tensor]:
    """Labels that are handed to the model itself, as transformers does."""
    return [value for name, value in kwargs.items() if name in ("labels", "label", "targets", "target", "y") and isinstance(value, Tensor)]


# -- features --


# -- names, files, words --
