"""What this rank is fed, and what it draws while its batches are made: small facts of the same steps on every rank."""
from __future__ import annotations

import hashlib
import pickle
import random
import sys
from typing import Any

import torch
from torch import Tensor
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter

from traindx.core.observed import Site
from traindx.core.observed.ranks import RankBatch, RankLoss, SampleDraws
from traindx.probes import loaders, patching, ranks, rows, sites
from traindx.probes.session import BackwardRun, ForwardRun, LossRun, Probe, Session
from traindx.probes.tensors import number, readable, tensors_in

ROWS = 64  # of a batch that are hashed
CLASSES = ("cross_entropy", "nll_loss")


def install(session: Session) -> None:
    if torch.distributed.is_available():
        session.add(Sharing)


class Sharing(Probe):
    """The first batch and the first loss of a step; random numbers drawn for batches that are made in this process."""

    areas = ("rank",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._batch: tuple[Any, Site | None] | None = None  # the loader's last: its tensors still lie on the CPU
        self._fed = self._lost = 0  # the step whose batch, whose loss is written down
        self._loss: tuple[LossRun, int] | None = None
        self._draws: SampleDraws | None = None
        patching.replace(session.stack, _SingleProcessDataLoaderIter, "_next_data", self._observed)

    @property
    def _looks(self) -> bool:
        return ranks.world() > 1 and ranks.power_of_two(self.session.step)

    # -- rows -------------------------------------------------------------------------------------------------------

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        self._batch = (batch, loaders.made_at(loader) if loader is not None else None) if self._looks else None

    def before_forward(self, run: ForwardRun) -> None:
        if not (run.grad and run.training) or self._fed == self.session.step or not self._looks:
            return
        batch, site = self._batch or (None, None)
        given = next((t for t in tensors_in((run.args, run.kwargs), 1) if t.dim()), None)
        first = given if given is not None and readable(given) else next((t for t in tensors_in(batch, 1) if t.dim()), None)
        if first is not None and readable(first):
            self._fed = self.session.step
            self.session.emit(RankBatch(step=self.session.step, key=f"batch-{self.session.step}", rows=hashes(first),
                                        size=int(first.shape[0]), site=run.site, loader_site=site))
        if self._draws is not None:
            self.session.emit(self._draws)
            self._draws = None

    def on_tick(self, step: int) -> None:
        self._batch = self._loss = None

    # -- losses -----------------------------------------------------------------------------------------------------

    def on_loss(self, run: LossRun) -> None:
        if run.grad and self._lost != self.session.step and self._loss is None and self._looks and run.arguments.get("reduction") == "mean":
            self._loss = run, items_of(run)

    def after_backward(self, run: BackwardRun) -> None:
        loss, self._loss = self._loss, None
        if loss is None:
            return
        self._lost = self.session.step
        value, root = loss[0].value, run.value
        self.session.emit(RankLoss(
            step=self.session.step, key=f"loss-{self.session.step}", function=loss[0].function, items=loss[1],
            scale=root / value if root is not None and value else None, site=loss[0].site))

    # -- random numbers ---------------------------------------------------------------------------------------------

    def _observed(self, original: Any) -> Any:
        def _next_data(iterator: Any) -> Any:
            if not self._looks or not self.session.watching:
                return original(iterator)
            before = states()
            batch = original(iterator)
            self.session.guard(self, self._drawn, before, iterator)
            return batch
        return patching.dressed(_next_data, original)

    def _drawn(self, before: dict[str, str], iterator: Any) -> None:
        after = states()
        owner = loaders.owner_of(iterator)
        loader = owner[0]() if owner is not None else None
        made_at = loaders.made_at(loader) if loader is not None else None
        moved = tuple(name for name in after if before.get(name) != after[name])
        self._draws = SampleDraws(
            step=self.session.step, key=f"draws-{self.session.step}", generators=moved, before=tuple(before.get(name, "") for name in moved),
            after=tuple(after[name] for name in moved), site=_made_in(iterator), loader_site=made_at)


def _made_in(iterator: Any) -> Site | None:
    """The user's function that makes a sample."""
    code = getattr(getattr(type(iterator._dataset_fetcher.dataset), "__getitem__", None), "__code__", None)
    return sites.at(code.co_filename, code.co_firstlineno, code.co_name) if code is not None and sites.is_user(code.co_filename) else None


def states() -> dict[str, str]:
    """Digests of the global generators' states."""
    found = {"torch": torch.get_rng_state().numpy().tobytes(), "random": pickle.dumps(random.getstate())}
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found["numpy"] = pickle.dumps(numpy.random.get_state())
    return {name: hashlib.blake2b(state, digest_size=8).hexdigest() for name, state in found.items()}


def hashes(batch: Tensor) -> tuple[str, ...]:
    """Content hashes of the first rows."""
    some = batch.detach()[:ROWS]
    flat = some.reshape(some.shape[0], -1)
    if flat.dtype in (torch.bfloat16, torch.float16):
        flat = flat.float()
    return tuple(f"{int(word):x}" for word in rows.fingerprints(flat.numpy())) if flat.shape[1] else ()


def items_of(run: LossRun) -> int:
    """Over how many targets the mean is taken: those not ignored of class losses, else the rows."""
    if run.function in CLASSES and isinstance(run.target, Tensor) and not run.target.is_floating_point() and readable(run.target):
        ignore = run.arguments.get("ignore_index", -100)
        counted = (run.target != ignore).sum()
        return int(number(counted) or 0)
    return int(run.input.shape[0]) if run.input.dim() else 1
