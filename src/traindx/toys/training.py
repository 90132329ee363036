"""Trains a rule's two programs as they stand in its folder, as trials of the engine; what came of it is kept on disk."""
from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from traindx import __version__
from traindx.core.codec import decode, encode
from traindx.core.findings import Finding
from traindx.core.judge import ask
from traindx.core.recording import Recording
from traindx.core.rules import all_rules
from traindx.core.text import EMPTY, Text, same
from traindx.core.trials import Budget, Program, Trace, Trial
from traindx.engine.local import LocalEngine
from traindx.figures import Series
from traindx.figures.thinning import thinned
from traindx.reporters.words import value_of

Which = Literal["bad", "good"]
WHICH: tuple[Which, ...] = ("bad", "good")
Points = tuple[tuple[float, float], ...]
BUDGET = Budget(steps=2000, seconds=40.0)
POINTS = 60  # of a curve that is kept
DIGITS = 5
FORMAT = 2  # of what is kept


class Cancelled(Exception):
    """Nobody waits for the curves any more."""


@dataclass(frozen=True)
class Trained:
    """One program's run: ``(step, loss)``, thinned without losing spikes; ``ended`` and ``error`` as in a trace."""

    loss: Points = ()
    validation: Points = ()
    steps: int = 0
    ended: str = "lost"
    error: Text = EMPTY
    seconds: float = 0.0


@dataclass(frozen=True)
class Found:
    """What traindx says of the faulty program. ``evidence``: rows of what, value, expected, origin."""

    cause: Text
    line: int | None
    code: str
    step: int
    evidence: tuple[tuple[Text, Text, Text, str], ...]


@dataclass(frozen=True)
class Toy:
    """Both programs of a rule at one seed. ``found`` is None where traindx does not find the fault with this seed."""

    rule: str
    seed: int
    bad: Trained
    good: Trained
    found: Found | None = None

    def of(self, which: Which) -> Trained:
        return self.bad if which == "bad" else self.good


class Toys:
    """Trains toys, one after the other, from any thread. Close it after use (a context manager).

    The engine is started by the first toy that is not on disk. Raises UsageError there where processes cannot be forked.
    """

    def __init__(self, cache: Path | None = None, jobs: int = 2) -> None:
        self.cache = cache or default_cache()
        self._jobs = jobs
        self._engine: LocalEngine | None = None
        self._lock = threading.Lock()
        self._programs = Path(tempfile.mkdtemp(prefix="traindx-toys-"))

    def __enter__(self) -> Toys:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            if self._engine is not None:
                self._engine.close()
                self._engine = None
        shutil.rmtree(self._programs, ignore_errors=True)

    def toy(self, rule: str, seed: int = 0, cancelled: Callable[[], bool] = lambda: False) -> Toy:
        """Both programs of ``rule`` with ``seed`` added to the seeds they set. Raises KeyError for no rule, Cancelled."""
        place = self.cache / f"{key(rule, seed)}.json"
        if (kept := _read(place)) is not None:
            return kept
        with self._lock:
            made = _read(place) or self._train(rule, seed, cancelled)
        if made.bad.ended in ("script", "steps", "raised"):
            _write(place, made)
        return made

    def known(self, rule: str, seed: int = 0) -> Toy | None:
        """What is on disk already; trains nothing."""
        return _read(self.cache / f"{key(rule, seed)}.json")

    def all(self, rules: Iterable[str], seed: int = 0) -> Iterator[Toy]:
        """Of many rules, one after the other, as they are done."""
        for rule in rules:
            yield self.toy(rule, seed)

    def _train(self, rule: str, seed: int, cancelled: Callable[[], bool]) -> Toy:
        def heard(index: int, message: dict[str, object]) -> None:
            if cancelled():
                raise Cancelled
        heard(0, {})
        if self._engine is None:
            self._engine = LocalEngine(self._jobs)
        bad, good = self._engine.run(self._trials(rule, seed), None, heard)
        recording = Recording.read(Path(bad.recording)) if bad.recording else Recording()
        return Toy(rule, seed, trained(bad, recording), trained(good), found_in(rule, recording))

    def _trials(self, rule: str, seed: int) -> Sequence[Trial]:
        """In a folder of their own: a re-run in a copy copies the program's folder."""
        folder = self._programs / rule.replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        for which in WHICH:
            (folder / f"{which}.py").write_text(all_rules()[rule].source_of(which), encoding="utf-8")
        return [Trial(Program(f"{which}.py", None, (), str(folder)), budget=BUDGET, reseed=seed, observe=which == "bad")
                for which in WHICH]


def leaf_curve(rule: str, seed: int = 0, which: Which = "bad", toys: Toys | None = None) -> Series:
    """The training loss of one program of a rule; empty where it computes none. Without ``toys``, an engine is started for it."""
    from traindx.toys.drawing import series_of
    if toys is not None:
        return series_of(toys.toy(rule, seed), which)
    with Toys() as own:
        return series_of(own.toy(rule, seed), which)


def trained(trace: Trace, recording: Recording | None = None) -> Trained:
    """The loss by step; of a program that never steps, that of its backward passes, as recorded."""
    losses = [(float(step.step), step.loss) for step in trace.steps if step.loss is not None]
    if not losses and recording is not None:
        losses = [(float(step), loss) for step, loss in recording.series.get("loss", ())]
    validation = [(float(step), loss) for step, loss in trace.validation]
    return Trained(_short(losses), _short(validation), len(trace.steps), trace.ended, trace.why, round(trace.seconds, 3))


def _short(points: list[tuple[float, float]]) -> Points:
    return tuple((step, float(f"{value:.{DIGITS}g}")) for step, value in thinned(points, POINTS // 2 - 1))


def found_in(rule: str, recording: Recording) -> Found | None:
    """The rule's own finding in the recording of its faulty program."""
    said, _ = ask(all_rules()[rule], recording)
    return told(said[0].finding) if said else None


def told(finding: Finding) -> Found:
    where = finding.where
    rows = tuple((e.what, value_of(e.value, e.unit), e.expected if isinstance(e.expected, Text) else same(str(e.expected)), e.origin)
                 for e in finding.evidence)
    code = where.code.partition("  # expect:")[0] if where else ""  # the mark is for the tests
    return Found(finding.cause, where.line if where else None, code, finding.first_step, rows)


# -- on disk ----------------------------------------------------------------------------------------------------------

def default_cache() -> Path:
    """``$XDG_CACHE_HOME/traindx/toys``, else below ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base if base and os.path.isabs(base) else Path.home() / ".cache") / "traindx" / "toys"


def key(rule: str, seed: int) -> str:
    """A name for the toy's content: programs, rule, seed, and the versions that train and judge them."""
    known = all_rules()[rule]
    texts = [known.source_of("bad"), known.source_of("good"), known.source_of("rule")]
    parts = (FORMAT, rule, seed, *texts, __version__, _torch(), encode(BUDGET))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


def _torch() -> str:
    try:
        return version("torch")
    except PackageNotFoundError:
        return "none"


def _read(path: Path) -> Toy | None:
    try:
        found: Toy = decode(Toy, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return found


def _write(path: Path, toy: Toy) -> None:
    """Whole or not at all; a cache that cannot be written is no cache."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".json")
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(encode(toy), file, ensure_ascii=False)
        os.replace(name, path)
