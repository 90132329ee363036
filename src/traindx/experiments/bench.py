"""Where experiments ask for trials: each different trial is run once, however many experiments want it."""
from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from traindx.core.codec import decode, encode
from traindx.core.text import Text
from traindx.core.trials import Budget, Program, Trace, Trial, to_json

Done = Callable[[int, Trace], None]


class Engine(Protocol):
    """Runs trials, several at a time; ``on_done`` hears of each as it ends. The traces come in the order asked."""

    def run(self, trials: Sequence[Trial], on_done: Done) -> list[Trace]: ...


class Progress(Protocol):
    """Hears what is being run: one line per experiment."""

    def begin(self, title: Text, trials: int) -> None: ...

    def advance(self) -> None: ...

    def end(self) -> None: ...


class Silent:
    """No progress shown."""

    def begin(self, title: Text, trials: int) -> None: ...

    def advance(self) -> None: ...

    def end(self) -> None: ...


class OutOfTime(Exception):
    """The exam's own budget of seconds is used up."""


class Bench:
    """Trials of one program. With ``folder``, every trace is kept there and found again by a later exam (--resume)."""

    def __init__(self, engine: Engine, program: Program, budget: Budget | None = None, progress: Progress | None = None,
                 seconds: float | None = None, network: bool = False, folder: Path | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.engine = engine
        self.plain = Trial(program, budget=budget or Budget(), network=network)
        self.progress = progress or Silent()
        self.folder = folder
        self.run_count = 0
        self._clock = clock
        self._until = None if seconds is None else clock() + seconds
        self._known: dict[str, Trace] = {}

    def run(self, title: Text, trials: Iterable[Trial]) -> list[Trace]:
        """Raises OutOfTime before trials are begun for which no time is left."""
        asked = list(trials)
        new = list({key(trial): trial for trial in asked if self._recall(trial) is None}.values())
        if new:
            if self._until is not None and self._clock() > self._until:
                raise OutOfTime
            self._run(title, new)
        return [self._known[key(trial)] for trial in asked]

    def one(self, title: Text, trial: Trial) -> Trace:
        return self.run(title, [trial])[0]

    def _run(self, title: Text, trials: list[Trial]) -> None:
        def done(index: int, trace: Trace) -> None:
            self.run_count += 1
            self._keep(trials[index], trace)
            self.progress.advance()
        self.progress.begin(title, len(trials))
        try:
            self.engine.run(trials, done)
        finally:
            self.progress.end()

    def _keep(self, trial: Trial, trace: Trace) -> None:
        self._known[key(trial)] = trace
        if self.folder is not None and trace.ended in ("steps", "script", "raised"):
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / f"{key(trial)}.json").write_text(json.dumps(encode(trace)), encoding="utf-8")

    def _recall(self, trial: Trial) -> Trace | None:
        name = key(trial)
        if name not in self._known and self.folder is not None:
            try:
                found: Trace = decode(Trace, json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8")))
            except (OSError, ValueError):
                return None
            if found.recording is None or Path(found.recording).exists():
                self._known[name] = found
        return self._known.get(name)


def key(trial: Trial) -> str:
    """A name for the trial's content."""
    return hashlib.sha256(json.dumps(to_json(trial), sort_keys=True).encode()).hexdigest()[:24]
