"""Where in a source file a variable is carried from one turn of a loop to the next."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from traindx.core.observed import Site


def carried_at(file: str, name: str, shown: str | None = None) -> Site | None:
    """The line inside a loop that gives ``name`` (``total``, ``self.hidden``) a value made from its old one, else any value there."""
    try:
        text = Path(file).read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return None
    last = name.rpartition(".")[2]
    lines = [(node, _uses(node, last)) for node in _assignments(tree, "." in name) if last in _targets(node)]
    if not lines:
        return None
    node = next((node for node, uses in lines if uses), lines[-1][0])
    return Site(shown or file, node.lineno, "", text.splitlines()[node.lineno - 1].strip())


def _assignments(tree: ast.AST, anywhere: bool) -> Iterator[ast.Assign | ast.AugAssign | ast.AnnAssign]:
    """Those inside loops; of an attribute also elsewhere, for a forward is called from a loop that is not its own."""
    for node in ast.walk(tree):
        inside = isinstance(node, (ast.For, ast.While)) or (anywhere and isinstance(node, ast.FunctionDef) and node.name != "__init__")
        for child in ast.walk(node) if inside else ():
            if isinstance(child, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                yield child


def _targets(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return {_name(inner) for target in targets for inner in ast.walk(target)}


def _uses(node: ast.Assign | ast.AugAssign | ast.AnnAssign, name: str) -> bool:
    return isinstance(node, ast.AugAssign) or (node.value is not None and name in {_name(inner) for inner in ast.walk(node.value)})


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
