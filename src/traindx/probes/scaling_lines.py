"""Where the program's own source computes statistics over rows: NumPy's methods cannot be watched, so their lines are
looked up.
"""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Collection
from typing import Any

from traindx.core.observed import Site
from traindx.core.observed.fed import ScalingLines
from traindx.probes import sites
from traindx.probes.session import ForwardRun, Probe, Session
from traindx.probes.source import called

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
        found, ranges = scaling_lines(source), range_lines(source)
        if found or ranges:
            self.session.emit(ScalingLines(sites=self._sites(source, found), ranges=self._sites(source, ranges)))

    def _sites(self, source: str, found: list[tuple[int, str]]) -> tuple[Site, ...]:
        assert self._site is not None
        file, lines = self._site.file, source.splitlines()
        return tuple(Site(file, line, function, lines[line - 1].strip()) for line, function in found)


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


def range_lines(source: str) -> list[tuple[int, str]]:
    """``(line, function)`` where both the minimum and the maximum of one array are taken, over all of it or its rows. Where that
    is the work of a function of its own, the calls of that function come first: they say of what.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return []
    owners = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    taken = {owner.name: lines for owner in owners if (lines := _ranges(owner))}
    inner = {id(node) for owner in owners for node in ast.walk(owner)}
    found = dict.fromkeys(_ranges(tree, inner), "<module>")
    for name in taken:
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and called(node) == name]
        found.update({call.lineno: _function_around(owners, call) for call in calls})
    found.update({line: name for name, lines in taken.items() for line in lines})
    return list(found.items())[:LINES]


def _ranges(owner: ast.AST, leave: Collection[int] = ()) -> list[int]:
    """Lines of the minima of arrays whose maximum is taken as well."""
    taken: dict[tuple[str, str], int] = {}
    for node in ast.walk(owner):
        if isinstance(node, ast.Call) and id(node) not in leave and isinstance(node.func, ast.Attribute):
            kind = {"amin": "min", "amax": "max", "nanmin": "min", "nanmax": "max"}.get(node.func.attr, node.func.attr)
            module = isinstance(node.func.value, ast.Name) and node.func.value.id in ("np", "numpy", "torch")
            array = node.args[0] if module and node.args else node.func.value
            if kind in ("min", "max"):
                taken.setdefault((kind, ast.unparse(array)), node.lineno)
    return sorted(line for (kind, array), line in taken.items() if kind == "min" and ("max", array) in taken)


def _function_around(owners: list[ast.FunctionDef], node: ast.Call) -> str:
    around = [owner for owner in owners if any(inner is node for inner in ast.walk(owner))]
    return max(around, key=lambda owner: owner.lineno).name if around else "<module>"
