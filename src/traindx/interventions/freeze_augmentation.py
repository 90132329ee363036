"""No new augmentation: each sample of a data set is always made with the same random numbers."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils.data import _utils

from traindx.core.text import Text
from traindx.interventions.tools import generators
from traindx.interventions.tools.base import Intervention
from traindx.probes import patching

IN_WORKERS = Text("The samples are made in other processes: whether they draw random numbers is not seen.",
                  "样本在别的进程里生成：看不到它们有没有抽随机数。")


class FreezeAugmentation(Intervention):
    """Python's, numpy's and torch's shared generators are seeded by the sample's number while it is made, then put back. A
    generator of the data set's own, and augmentation in the training loop, stay as they are.
    """

    NOTHING = Text("No sample of a map-style data set is made with random numbers.", "没有哪个按下标取样的数据集在生成样本时抽随机数。")

    def install(self) -> None:
        patching.replace(self.stack, _utils.fetch._MapDatasetFetcher, "fetch", self._seeded)

    def on_batch(self, loader: Any, iterator: Any, batch: Any) -> Any:
        if getattr(iterator, "_num_workers", 0):
            self.doubt = IN_WORKERS
            self.touch()
        return batch

    def _seeded(self, original: Any) -> Any:
        def fetch(fetcher: Any, index: Any) -> Any:
            if not torch.is_grad_enabled():
                return original(fetcher, index)
            if not fetcher.auto_collation or hasattr(fetcher.dataset, "__getitems__"):
                with self._as_sample(index[0] if isinstance(index, list) else index):
                    return original(fetcher, index)
            samples = []
            for one in index:
                with self._as_sample(one):
                    samples.append(fetcher.dataset[one])
            with self._as_sample(index[0]):
                return fetcher.collate_fn(samples)
        return patching.dressed(fetch, original)

    @contextmanager
    def _as_sample(self, index: Any) -> Iterator[None]:
        before = generators.shared()
        number = int(index) if hasattr(index, "__index__") else hash(str(index)) % 2 ** 31
        generators.seed_shared(number)
        begun = generators.shared()
        try:
            yield
        finally:
            if generators.moved(begun, generators.shared()):
                self.touch()
            generators.restore(before)

