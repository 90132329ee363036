"""Where the program's own source computes statistics over rows: NumPy's methods cannot be watched, so their lines are
looked up.
"""

from __future__ import annotations

import ast
import linecache
import os
from typing import Any

from traindx.core.observed import Site
from traindx.core.observed.fed import ScalingLines
from traindx.probes import sites
from traindx.probes.session import ForwardRun, Probe, Session

STATISTICS = frozenset(
    ("mean", "std", "var", "min", "max", "amin", "amax", "median", "quantile", "percentile", "nanmean", "nanstd")
)
LINES = 16


def install(session: Session) -> None:
    session.add(SourceOfScaling)


class SourceOfScaling(Probe):
    """Reads the file that calls the model, once, when the run is over."""

    areas = ("data",)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._site: Site | None = None

    def before_forward(self, run: ForwardRun) -> None:
        if self._site is None and run.grad:
            self._site = run.site

    def at_end(self) -> None:
        if self._site is None:
            return
        path = (
            self._site.file
            if os.path.isabs(self._site.file)
            else os.path.join(sites.main_folder or "", self._site.file)
        )
        source = "".join(linecache.getlines(path))
        found = scaling_lines(source)
        if found:
            self.session.emit(
                ScalingLines(
                    sites=tuple(
                        Site(self._site.file, line, function, source.splitlines()[line - 1].strip())
                        for line, function in found
                    )
                )
            )


def scaling_lines(source: str) -> list[tuple[int, str]]:
    """``(line, function)`` of calls such as ``x.mean(0)`` or ``np.std(x, axis=0)``; empty where the source cannot be
    read.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    found: dict[int, str] = {}
    for owner in [tree, *(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))]:
        name = owner.name if isinstance(owner, ast.FunctionDef) else "<module>"
        found.update({node.lineno: name for node in ast.walk(owner) if isinstance(node, ast.Call) and _over_rows(node)})
    return sorted(found.items())[:LINES]


def _over_rows(call: ast.Call) -> bool:
    """A statistic along dimension 0."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in STATISTICS:
        return False
    given: list[Any] = [*call.args, *(word.value for word in call.keywords if word.arg in ("axis", "dim"))]
    return any(
        isinstance(value, ast.Constant) and value.value == 0 and not isinstance(value.value, bool) for value in given
    )
