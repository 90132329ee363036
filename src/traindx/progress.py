"""What is being run, on a terminal: one line per experiment with a bar and the time left; plain lines elsewhere."""
from __future__ import annotations

from typing import IO, Any

from traindx import messages
from traindx.core.text import Language, Text
from traindx.experiments.bench import Progress, Silent


def progress_on(stream: IO[str], language: Language) -> Progress:
    """Bars on a terminal, one line per experiment in a log."""
    return Bars(stream, language) if stream.isatty() else Lines(stream, language)


class Lines:
    """One line as each experiment begins."""

    def __init__(self, stream: IO[str], language: Language) -> None:
        self.stream, self.language = stream, language

    def begin(self, title: Text, trials: int) -> None:
        self.stream.write(f"{messages.SAYS.fill(what=title).say(self.language)} ({trials})\n")
        self.stream.flush()

    def advance(self) -> None: ...

    def end(self) -> None: ...


class Bars:
    """rich's progress bar; a finished line stays."""

    def __init__(self, stream: IO[str], language: Language) -> None:
        self.stream, self.language = stream, language
        self._bar: Any = None
        self._task: Any = None

    def begin(self, title: Text, trials: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        self._bar = Progress(TextColumn("{task.description}", markup=False), BarColumn(bar_width=16), MofNCompleteColumn(),
                             TimeElapsedColumn(), TimeRemainingColumn(), console=Console(file=self.stream))
        self._bar.start()
        self._task = self._bar.add_task(title.say(self.language), total=trials)

    def advance(self) -> None:
        self._bar.advance(self._task)

    def end(self) -> None:
        self._bar.stop()


__all__ = ["Bars", "Lines", "Silent", "progress_on"]
