"""Notebooks and IPython: ``%load_ext traindx``, then ``%%traindx`` as the first line of a cell that trains.

The cell runs as it would without; its report is shown below it. IPython is imported by nobody but itself.
"""
from __future__ import annotations

from typing import Any

from traindx.core.text import LANGUAGES
from traindx.probes import sites
from traindx.watching import watch

MAGIC = "traindx"


def load(shell: Any) -> None:
    """Gives the shell its ``%%traindx``, and its cells their names in reports."""
    cells = Cells(shell)

    def magic(line: str, cell: str) -> None:
        run_watched(shell, cells, line, cell)
    shell.register_magic_function(magic, "cell", MAGIC)
    sites.naming = cells.name


def unload(shell: Any) -> None:
    shell.magics_manager.magics["cell"].pop(MAGIC, None)
    sites.naming = None


class Cells:
    """Which cell a file name stands for, under which IPython compiled it."""

    def __init__(self, shell: Any) -> None:
        self._numbers: dict[str, int] = getattr(shell.compile, "_filename_map", {})
        self._before: dict[str, int] | None = None  # compiled before the watched cell, which is the last of them

    def begin(self) -> None:
        """A cell that watches has been compiled; its body will be once more, under a number of its own."""
        self._before = dict(self._numbers)

    def name(self, filename: str) -> str | None:
        """``Cell In[3]``; None for what is no cell."""
        if filename not in self._numbers:
            return None
        before = self._before or self._numbers
        return f"Cell In[{before.get(filename, [*before.values()][-1])}]"


def run_watched(shell: Any, cells: Cells, line: str, cell: str) -> None:
    """Runs the cell's body under watch and shows the report. ``line`` may name the report's language.

    A cell that raised shows its traceback, then its report, and counts as failed: "run all" stops there.
    """
    from IPython.display import display
    language = _language(line)
    cells.begin()
    # a first line stands for the magic's own, so that lines are those that are read in the cell; other magics must come first
    body = cell if cell.startswith("%%") else f"# %%{MAGIC}\n{cell}"
    with watch(lang=language) as watched:
        result = shell.run_cell(body, store_history=False)
    display(watched.report())  # type: ignore[no-untyped-call]
    if not result.success:
        raise CellFailed


class CellFailed(Exception):
    """The cell raised, which its traceback above has said."""

    def _render_traceback_(self) -> list[str]:
        return []


def _language(line: str) -> str | None:
    words = line.replace("--lang", "").replace("=", " ").split()
    if not words:
        return None
    if len(words) == 1 and words[0] in LANGUAGES:
        return words[0]
    from IPython.core.error import UsageError  # IPython shows it as one line
    raise UsageError(f"%%{MAGIC} {line.strip()}: unknown. What follows %%{MAGIC} is nothing, or the report's language: "
                     f"{' or '.join(LANGUAGES)}. What is to run stands below it.")
