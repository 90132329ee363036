"""Batches that the program makes by lines of its own, as a seam: they pass through :class:`HandMade`, where parts time or hold them.

The file is compiled from its source with ``V`` in ``x = V`` or ``model(V)`` written as ``made(key, lambda: V)``, and in ``for x in V`` as
``each(key, lambda: V)``; nothing is written to disk, and lines keep their numbers.
"""
from __future__ import annotations

import ast
import builtins
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from traindx.core.speed import Making, Span
from traindx.probes import patching

MADE, EACH = "__traindx_made__", "__traindx_each__"


class HandMade:
    """``endless``: the loop that holds a step begins anew where it would end, if that gives anything."""

    def __init__(self, makings: Sequence[Making]) -> None:
        self.makings = makings
        self.files = {os.path.realpath(making.file) for making in self.makings}
        self.endless = False

    def give(self, key: int, make: Callable[[], Any]) -> Any:
        """What making ``key`` gives; parts replace this."""
        return make()

    def each(self, key: int, values: Callable[[], Any]) -> Any:
        return _Each(self, key, values)

    def install(self, stack: ExitStack) -> None:
        """From now on these files are compiled so."""
        for name, value in ((MADE, self.give), (EACH, self.each)):
            setattr(builtins, name, value)
            stack.callback(delattr, builtins, name)
        patching.replace(stack, SourceFileLoader, "get_code", self._get_code)

    def _get_code(self, original: Any) -> Any:
        def get_code(loader: Any, fullname: str) -> Any:
            file = loader.get_filename(fullname)
            return self.compiled(loader.get_data(file), file) if os.path.realpath(file) in self.files else original(loader, fullname)
        return patching.dressed(get_code, original)

    def compiled(self, source: bytes, file: str) -> CodeType:
        """The code of a file, with what is made in it passing through here."""
        path = os.path.realpath(file)
        asked = {making.span: (key, making) for key, making in enumerate(self.makings) if os.path.realpath(making.file) == path}
        tree = _Through(asked).visit(ast.parse(source))
        code: CodeType = compile(tree, file, "exec", dont_inherit=True)
        return code


def span_of(node: ast.expr) -> Span:
    return node.lineno, node.end_lineno or node.lineno, node.col_offset, node.end_col_offset or 0


class _Through(ast.NodeTransformer):
    def __init__(self, asked: dict[Any, tuple[int, Making]]) -> None:
        self.asked = asked

    def visit(self, node: ast.AST) -> Any:
        found = self.asked.get(span_of(node)) if isinstance(node, ast.expr) else None
        made = super().visit(node)
        if found is None or not isinstance(made, ast.expr):
            return made
        key, making = found
        later = ast.Lambda(ast.arguments([], [], None, [], [], None, []), made)
        call = ast.Call(ast.Name(EACH if making.each else MADE, ast.Load()), [ast.Constant(key), later], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


class _Each:
    """What a ``for`` goes through; ``values`` gives its iterable, anew each time it is asked."""

    def __init__(self, hand: HandMade, key: int, values: Callable[[], Any]) -> None:
        self.hand, self.key, self.values = hand, key, values
        self.first = values()

    def __iter__(self) -> Iterator[Any]:
        making = self.hand.makings[self.key]
        yield from self._turn(self.first, making.holds)
        while making.turns and self.hand.endless:
            empty = True
            for value in self._turn(self.values(), making.holds):
                empty = False
                yield value
            if empty:
                return

    def _turn(self, values: Any, holds: bool) -> Iterator[Any]:
        iterator = iter(values)
        while True:
            try:
                value = self.hand.give(self.key, iterator.__next__) if holds else next(iterator)
            except StopIteration:
                return
            yield value

    def __len__(self) -> int:
        return len(self.first)
