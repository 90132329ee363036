"""Do the workers of a loader draw the same random numbers? Asked by acting two workers and two epochs in a forked child.

There everything is done as torch's worker does it: the global generators are seeded by the base seed and the worker's number,
then ``worker_init_fn`` is called. A generator counts only where another state of it gives another sample.
"""
from __future__ import annotations

import hashlib
import pickle
import random
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data import _utils as data_utils

from traindx.core.observed import Site
from traindx.core.observed.workers import WorkerDraws
from traindx.probes import replay, sites, source
from traindx.probes.loaders import made_at, written
from traindx.probes.session import BackwardRun, Probe, Session

DEEP = 3  # attributes of attributes in which generators are looked for
MOST = 32  # generators
GLOBALS = ("random", "numpy.random", "torch")
BASES = (101, 90_001)  # of two epochs; the loader draws a new one for each


def install(session: Session) -> None:
    session.add(Workers)


class Workers(Probe):
    """Asks once for each loader with workers whose batches are trained on."""

    areas = ("data",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._latest: weakref.ref[Any] | None = None
        self._settled: set[int] = set()

    def on_batch(self, loader: Any, batch: Any, seconds: float) -> None:
        asked = loader is None or loader.num_workers == 0 or self.session.ids.of(loader) in self._settled
        self._latest = None if asked else weakref.ref(loader)

    def after_backward(self, run: BackwardRun) -> None:
        loader = self._latest() if self._latest is not None else None
        if loader is None or not self.session.detailed:
            return
        self._latest = None
        if type(loader) is DataLoader and not isinstance(loader.dataset, IterableDataset) and self._ask(loader):
            self._settled.add(self.session.ids.of(loader))

    def _ask(self, loader: Any) -> bool:
        code = next(written(loader), None)
        init = getattr(loader.worker_init_fn, "__code__", None)
        facts: dict[str, Any] = {
            "step": self.session.step, "key": f"workers-{self.session.ids.of(loader)}", "loader": self.session.ids.of(loader),
            "loader_site": made_at(loader), "workers": loader.num_workers, "persistent": loader.persistent_workers,
            "draw_at": _at(code), "init_at": source.line_with(init, "seed") if init is not None else None}
        dataset = loader.dataset

        def then(outcome: replay.Outcome) -> WorkerDraws:
            said = outcome.value or {"why": outcome.why}
            name = said.get("generator", "")
            return WorkerDraws(**facts, **said, made_at=_made(dataset, name) if name and name not in GLOBALS else None)

        return replay.ask(self.session, "workers", lambda: acted(loader), then)


def _at(code: Any) -> Site | None:
    return sites.at(code.co_filename, code.co_firstlineno, code.co_name) if code is not None and sites.is_user(code.co_filename) else None


def _made(dataset: Any, name: str) -> Site | None:
    """The line that assigns the generator."""
    attribute = name.rpartition(".")[2]
    if "." not in name:
        return source.first_line(rf"^{attribute}\s*=(?!=)")
    for owner in _owners(dataset):
        if attribute in getattr(owner, "__dict__", {}) and (site := source.assigned_at(type(owner), attribute)):
            return site
    return None


# -- in the child --


def acted(loader: Any) -> dict[str, Any]:
    """The first generator that samples depend on and that begins alike, in two workers or in two epochs."""
    found = generators(loader)
    started = {place: _started(loader, found, *place) for place in ((BASES[0], 0), (BASES[0], 1), (BASES[1], 0))}
    first, other, later = (started[place] for place in started)
    for name, handle in found.items():
        across_workers, across_epochs = first[name] == other[name], first[name] == later[name]
        if (across_workers or across_epochs) and matters(loader.dataset, handle):
            return {"generator": name, "across_workers": across_workers, "across_epochs": across_epochs}
    return {}


class Handle:
    """A generator's state, read and set, and moved on."""

    def __init__(self, get: Callable[[], Any], put: Callable[[Any], None], draw: Callable[[], Any]) -> None:
        self.get, self.put, self.draw = get, put, draw


def handle_of(thing: Any) -> Handle | None:
    if isinstance(thing, np.random.Generator):
        bits = thing.bit_generator
        return Handle(lambda: bits.state, lambda state: setattr(bits, "state", state), lambda: thing.random(7))
    if isinstance(thing, np.random.RandomState):
        return Handle(thing.get_state, thing.set_state, lambda: thing.random_sample(7))
    if isinstance(thing, random.Random):
        return Handle(thing.getstate, thing.setstate, thing.random)
    if isinstance(thing, torch.Generator):
        return Handle(thing.get_state, thing.set_state, lambda: torch.rand(7, generator=thing))
    return None


def generators(loader: Any) -> dict[str, Handle]:
    """Generators by name: the global ones, those that the dataset holds, and those its file holds."""
    found = {"random": Handle(random.getstate, random.setstate, random.random),
             "numpy.random": Handle(np.random.get_state, np.random.set_state, lambda: np.random.random(7)),
             "torch": Handle(torch.get_rng_state, torch.set_rng_state, lambda: torch.rand(7))}
    for owner in _owners(loader.dataset):
        for name, value in list(getattr(owner, "__dict__", {}).items()):
            if (handle := handle_of(value)) is not None and len(found) < MOST:
                found.setdefault(f"self.{name}", handle)
    function = getattr(type(loader.dataset), "__getitem__", None)
    for name, value in list(getattr(function, "__globals__", {}).items()):
        if not isinstance(value, type) and (handle := handle_of(value)) is not None and len(found) < MOST:
            found.setdefault(name, handle)
    return found


def _owners(dataset: Any) -> Iterator[Any]:
    """The dataset, those inside it (a Subset's), and objects of the user's that they hold (transforms)."""
    stack, seen = [(dataset, 0)], set()
    while stack:
        thing, depth = stack.pop()
        if id(thing) in seen or depth > DEEP:
            continue
        seen.add(id(thing))
        yield thing
        for value in list(getattr(thing, "__dict__", {}).values()):
            inner = value if isinstance(value, (list, tuple)) and len(value) < 32 else [value]
            stack += [(each, depth + 1) for each in inner if hasattr(each, "__dict__") and not isinstance(each, (type, torch.Tensor))]


def _started(loader: Any, found: dict[str, Handle], base: int, worker: int) -> dict[str, str]:
    """The state of every generator when this worker has begun; what the dataset holds is as in the main process."""
    before = {name: handle.get() for name, handle in found.items()}
    seed = base + worker
    random.seed(seed)
    torch.manual_seed(seed)
    np.random.seed(seed)
    info = data_utils.worker.WorkerInfo(id=worker, num_workers=loader.num_workers, seed=seed, dataset=loader.dataset)
    data_utils.worker._worker_info = info  # what get_worker_info() gives
    attributes = [(owner, dict(owner.__dict__)) for owner in _owners(loader.dataset) if hasattr(owner, "__dict__")]
    if loader.worker_init_fn is not None:
        loader.worker_init_fn(worker)
    states = {name: _digest(handle.get()) for name, handle in {**found, **generators(loader)}.items()}
    for owner, values in attributes:  # generators that the function replaced
        owner.__dict__.update(values)
    for name, state in before.items():
        found[name].put(state)
    return states


def matters(dataset: Any, handle: Handle) -> bool:
    """Whether a sample is another one where the generator is in another state."""
    state = handle.get()
    first = _digest(dataset[0])
    handle.put(state)
    again = _digest(dataset[0])
    handle.put(state)
    handle.draw()
    other = _digest(dataset[0])
    handle.put(state)
    return first == again != other


def _digest(value: Any) -> str:
    return hashlib.blake2b(pickle.dumps(_plain(value)), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().numpy().tobytes()
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, dict) else value
