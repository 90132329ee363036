"""``with traindx.watch() as dx: ...`` around any loop; ``dx.report()`` says what was seen.

The same probes, rules and report as ``traindx run``.
"""
from __future__ import annotations

import time
from html import escape
from pathlib import Path
from types import TracebackType
from typing import Any

from traindx import messages
from traindx.core.findings import Judged, Report
from traindx.core.recording import Recording
from traindx.core.text import Language, language_from
from traindx.diagnosis import diagnose, no_training
from traindx.probes import tracebacks
from traindx.probes.attach import attach
from traindx.probes.session import Session
from traindx.reporters import html, json, terminal


def watch(model: Any = None, optimizer: Any = None, *, lang: str | None = None) -> Watch:
    """Watches what happens inside the ``with`` block.

    Neither argument is needed: models and optimizers are found when they are used, also those made before the block.
    ``model`` names the report; an ``optimizer``, or several, is known from the start of the block instead of from its
    first step. ``lang`` is "en" or "zh", by default the locale's. Leaving the block takes everything off torch again;
    an exception passes through.
    """
    return Watch(type(model).__name__ if model is not None else "", optimizer, language_from(lang))


class Watch:
    """One watched block. Inside another one, or under ``traindx run``, it reports on what the outer one sees."""

    def __init__(self, name: str, optimizers: Any, language: Language) -> None:
        self._name = name
        self._optimizers = optimizers
        self._language = language
        self._session: Session | None = None
        self._own: Session | None = None  # the same, unless an outer block's is used
        self._began = self._seconds = 0.0

    def __enter__(self) -> Watch:
        self._began = time.perf_counter()
        outer = Session.current
        if outer is None or not outer.active:
            self._own = attach(self._optimizers)
        self._session = self._own or outer
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._seconds = time.perf_counter() - self._began
        if self._own is not None:
            error = None if problem is None else f"{type(problem).__name__}: {problem}"[:500]
            self._own.end("finished" if problem is None else "raised", error, problem)
            tracebacks.clean(problem)  # it is shown after we have left
            self._own.close()

    def report(self) -> Shown:
        """What can be said now; inside the block too."""
        recording = Recording() if self._session is None else _recording_of(self._session)
        report = diagnose(recording)
        if no_training(recording) is not None:
            report.remarks.insert(0, messages.NO_TRAINING.fill(why=messages.NOTHING_IN_BLOCK))
        report.script = self._name
        report.seconds = self._seconds or (time.perf_counter() - self._began if self._session else 0.0)
        return Shown(report, self._language)


def _recording_of(session: Session) -> Recording:
    recorder = session.recorder
    if recorder.memory is not None:
        return recorder.memory
    return Recording.read(recorder.folder) if recorder.folder else Recording()


class Shown:
    """A report that shows itself: as text where it is printed, as a page in a notebook."""

    def __init__(self, report: Report, language: Language) -> None:
        self.report = report
        self.language = language

    @property
    def findings(self) -> list[Judged]:
        """In order, the cause first."""
        return self.report.findings

    def __str__(self) -> str:
        return terminal.render(self.report, self.language).rstrip("\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        # in a frame of its own: the page's style stays out of the notebook's
        page = escape(html.render(self.report, self.language, Path.cwd()), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 42rem; border: 0"></iframe>'

    def to_json(self) -> str:
        """As ``traindx run --json`` writes it."""
        return json.render(self.report, self.language)
