"""The training batches come from a loader over the same dataset with other settings: ``workers``, ``prefetch`` (batches ahead for each worker),
``pin`` (page-locked memory, for copies to a GPU). Its workers live from one switch to the next.
"""
from __future__ import annotations

import weakref
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from traindx.core.text import EMPTY, Text
from traindx.interventions.tools.stage import Stage
from traindx.interventions.tools.switched import Fetching

ITERABLE = Text("An IterableDataset decides itself what each worker reads; more workers could read the same twice.",
                "IterableDataset 自己决定每个 worker 读什么；增加 worker 可能会重复读。")
GONE = Text("The loader is made anew for every batch: settings have no meaning.", "每个 batch 都新建一个 loader：调它的设置没有意义。")
FAILED = Text("The loader with these settings failed: {error}", "用这些设置时 loader 出错：{error}")


class LoaderSettings(Fetching):
    """The program keeps its own loader and its iterator; while this is on, nothing is asked of them."""

    def __init__(self, stage: Stage, workers: int | None = None, prefetch: int | None = None, pin: bool | None = None) -> None:
        super().__init__(stage)
        if workers is not None and workers < 0:
            raise ValueError("workers: 0 or more")
        self.change(workers, prefetch, pin)
        self._loader: weakref.ref[Any] | None = None
        self._batches: Any = None

    def change(self, workers: int | None, prefetch: int | None = None, pin: bool | None = None) -> None:
        """Other settings, from the next switch on; None leaves one as the program has it."""
        self.workers, self.prefetch, self.pin = workers, prefetch, pin
        self.warm_up = (workers or 0) + 2
        self.problem = EMPTY

    def switch(self, on: bool) -> None:
        super().switch(on)
        self._batches = None  # its workers end

    def fetch(self, loader: Any, iterator: Any, original: Any) -> Any:
        if loader is None or isinstance(loader.dataset, IterableDataset):
            self.problem = GONE if loader is None else ITERABLE
        if self.problem != EMPTY:
            return original()
        try:
            batch = self._next_batch(loader)
        except Exception as problem:
            self.problem = FAILED.fill(error=f"{type(problem).__name__}: {problem}"[:200])
            return original()
        self.touch()
        return batch

    def _next_batch(self, loader: Any) -> Any:
        if self._batches is None or self._loader is None or self._loader() is not loader:
            self._loader, self._batches = weakref.ref(loader), _endless(self._twin(loader))
        with self.stage.quiet():  # the twin's own iterator is none of the program's
            return next(self._batches)

    def _twin(self, loader: Any) -> DataLoader[Any]:
        workers = loader.num_workers if self.workers is None else self.workers
        options: dict[str, Any] = {"batch_sampler": loader.batch_sampler} if loader.batch_sampler is not None else {
            "batch_size": None, "sampler": loader.sampler}
        if workers:
            options |= {"prefetch_factor": self.prefetch or loader.prefetch_factor or 2, "persistent_workers": True,
                        "multiprocessing_context": loader.multiprocessing_context, "timeout": loader.timeout}
        return DataLoader(loader.dataset, num_workers=workers, collate_fn=loader.collate_fn, worker_init_fn=loader.worker_init_fn,
                          pin_memory=loader.pin_memory if self.pin is None else self.pin, **options)


def _endless(loader: DataLoader[Any]) -> Any:
    while True:
        empty = True
        for batch in loader:
            empty = False
            yield batch
        if empty:
            raise RuntimeError("the loader is empty")
