"""The user's source, read to say *where*: which statement keeps a value, which keys of a file are read. Never to say *whether*."""
from __future__ import annotations

import ast
import linecache
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType
from typing import TypeGuard

from traindx.core.observed import Site
from traindx.probes import sites

_KEEPING = frozenset(("append", "appendleft", "add", "insert", "extend", "put", "update", "setdefault"))
_READING = frozenset(("item", "tolist", "shape", "size", "numel", "mean", "sum", "std"))  # a new, small value
_CUTTING = frozenset(("item", "tolist", "shape", "size", "numel", "detach", "detach_", "numpy", "data", "argmax"))  # no graph
_PLAIN_CALLS = frozenset(("float", "int", "len", "str", "print", "bool", "round", "format"))
_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
_Function = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)
HOPS = 3  # functions that a value is followed out of


@cache
def tree(file: str) -> ast.Module | None:
    try:
        with open(file, encoding="utf-8") as source:
            return ast.parse(source.read())
    except (OSError, SyntaxError, ValueError):
        return None


@cache
def keys_read(file: str) -> frozenset[str]:
    """String keys that the file reads: ``x["key"]``, ``x.get("key")``, ``x.pop("key")``."""
    found = set()
    for node in ast.walk(tree(file) or ast.Module([], [])):
        key: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            key = node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop") and node.args:
            key = node.args[0]
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            found.add(key.value)
    return frozenset(found)


def line_with(code: CodeType, word: str) -> Site | None:
    """The first line of a user's function, after its head, that has the word; else its head. None for functions of libraries."""
    if not sites.is_user(code.co_filename):
        return None
    lines = sorted({line for _, _, line in code.co_lines() if line})
    line = next((line for line in lines if word in linecache.getline(code.co_filename, line).partition("def ")[0]), code.co_firstlineno)
    return sites.at(code.co_filename, line, code.co_name)


def assigned_at(kind: type, name: str) -> Site | None:
    """The line of a class's source that assigns ``self.<name>``."""
    written = {value.__code__.co_filename for value in vars(kind).values() if isinstance(value, FunctionType)} - {"<string>"}
    file = next(filter(sites.is_user, written), None) or getattr(sys.modules.get(kind.__module__), "__file__", None)
    return first_line(rf"self\.{re.escape(name)}\s*(:[^=]+)?=(?!=)", file)


def first_line(pattern: str, file: str | None = None) -> Site | None:
    """The first line of the user's files that matches; of one file where it is given."""
    search = re.compile(pattern)
    files = [file] if file else sites.user_files()
    for path in files:
        for line, text in enumerate(linecache.getlines(path), 1):
            if search.search(text) and not text.lstrip().startswith("#"):
                return Site(sites.shown(path), line, "", text.strip())
    return None


_BREAKING = frozenset(("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "div", "divide", "true_divide"))


@cache
def breaks(code: CodeType) -> tuple[Site, ...]:
    """Lines of a function that divide by what may be zero, or take a root or a logarithm."""
    module = tree(code.co_filename)
    owner = next((each for each in _functions(module) if getattr(each, "lineno", 0) == code.co_firstlineno), None) if module else None
    lines = {node.lineno for node in ast.walk(owner) if _breaks(node)} if owner is not None else set()
    return tuple(sites.at(code.co_filename, line, code.co_name) for line in sorted(lines))


def _breaks(node: ast.AST) -> TypeGuard[ast.expr]:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div) and not isinstance(node.right, ast.Constant)
    return isinstance(node, ast.Call) and called(node) in _BREAKING


@cache
def breaks_before(file: str, line: int) -> tuple[Site, ...]:
    """Such lines among what leads to the operands of the statement at ``line``, the nearest first: assignments above it in its function, then
    in the module, and the functions of this file that they call. What is computed from a call of anything else (a model) is left out.
    """
    module = tree(file)
    found = _statement_at(module, line) if module else None
    if module is None or found is None:
        return ()
    function, statement = found
    named = {each.name: each for each in _functions(module) if isinstance(each, ast.FunctionDef)}
    earlier = [each for each in _statements(function) if each.lineno < line][::-1]
    if function is not module:
        earlier += list(_statements(module))[::-1]
    return tuple(sites.at(file, number) for number in dict.fromkeys(_feeding(statement, earlier, named)))


def _feeding(statement: ast.stmt, earlier: list[ast.stmt], named: dict[str, ast.FunctionDef]) -> Iterator[int]:
    names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
    yield from _breaking_lines([value for call in calls for value in (*call.args, *(each.value for each in call.keywords))], named)
    for other in earlier:
        value = getattr(other, "value", None)
        if value is not None and _targets(other) & names:
            yield from _breaking_lines([value], named)
            names |= {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}


def _breaking_lines(values: list[ast.expr], named: dict[str, ast.FunctionDef]) -> Iterator[int]:
    for value in values:
        for node in ast.walk(value):
            if not isinstance(node, ast.expr) or _calls_others(node, named):
                continue
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in named:
                yield from (inner.lineno for inner in ast.walk(named[node.func.id]) if _breaks(inner))
            elif _breaks(node):
                yield node.lineno


def _calls_others(value: ast.expr, named: dict[str, ast.FunctionDef]) -> bool:
    """Calls something that is neither of this file's functions nor a method of a tensor or a library: a model."""
    return any(isinstance(node, ast.Call) and node is not value and isinstance(node.func, ast.Name) and node.func.id not in named
               for node in ast.walk(value))


@cache
def keeper(file: str, line: int, graph: bool = True) -> Site | None:
    """The statement that keeps what ``line`` computed: ``x.append(loss)``, ``total += loss``, ``d[k] = loss``.

    ``graph``: with its graph, so ``loss.detach()`` does not count; else its memory, so it does.
    """
    return _keeper(file, line, HOPS, _CUTTING if graph else _READING)


def _keeper(file: str, line: int, hops: int, ends: frozenset[str]) -> Site | None:
    module = tree(file)
    found = _statement_at(module, line) if module else None
    if module is None or found is None:
        return None
    function, statement = found
    names = _targets(statement) or _run_backward(statement)
    later = [s for s in _statements(function) if s.lineno > statement.lineno]
    earlier = [s for s in _statements(function) if s.lineno < statement.lineno]
    found_here: Site | None = None
    for other in (statement, *later, *earlier):  # a loop comes back to the lines above
        value = getattr(other, "value", None)
        if value is None or (other is not statement and not _live(value, names, ends)):
            continue
        if _accumulates(other, ends):
            found_here = sites.at(file, other.lineno, getattr(function, "name", "<module>"))
            if isinstance(function, ast.Module) or not _local_sum(other):
                return found_here
        if other is not statement and (given := _kept_by_callee(file, module, value, names, ends)) is not None:
            return given
        if isinstance(other, (ast.Assign, ast.AugAssign)):
            names |= _targets(other)
    returned = isinstance(statement, ast.Return) or any(
        isinstance(s, ast.Return) and s.value is not None and _live(s.value, names, ends) for s in later)
    by_caller = _kept_by_caller(file, module, getattr(function, "name", ""), hops, ends) if hops and returned else None
    return by_caller or found_here


def _local_sum(statement: ast.stmt) -> bool:
    """A name of the function is added to: it is gone with the call, unless the caller keeps what is returned."""
    targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
    return all(isinstance(target, ast.Name) for target in targets)


def _kept_by_callee(file: str, module: ast.Module, value: ast.expr, names: set[str], ends: frozenset[str]) -> Site | None:
    """A function of the file is given the value and keeps it in something that outlives the call."""
    for call in (node for node in ast.walk(value) if isinstance(node, ast.Call)):
        owner = next((f for f in _functions(module) if isinstance(f, ast.FunctionDef) and f.name == called(call)), None)
        if owner is None:
            continue
        heads = [argument.arg for argument in owner.args.args][1 if isinstance(call.func, ast.Attribute) else 0:]
        bound = [*zip(heads, call.args), *((each.arg, each.value) for each in call.keywords if each.arg)]
        inside = {head for head, argument in bound if _live(argument, names, ends)}
        for statement in _statements(owner) if inside else ():
            kept = getattr(statement, "value", None)
            if kept is not None and _live(kept, inside, ends) and _accumulates(statement, ends) and not _local_sum(statement):
                return sites.at(file, statement.lineno, owner.name)
            if kept is not None and isinstance(statement, ast.Assign) and _live(kept, inside, ends):
                inside |= _targets(statement)
    return None


def _kept_by_caller(file: str, module: ast.Module, name: str, hops: int, ends: frozenset[str]) -> Site | None:
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and name and called(node) == name and (site := _keeper(file, node.lineno, hops - 1, ends)):
            return site
    return None


def called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _statement_at(module: ast.Module, line: int) -> tuple[ast.AST, ast.stmt] | None:
    """The innermost simple statement over a line, and its function."""
    for function in _functions(module):
        for statement in _statements(function):
            if statement.lineno <= line <= (statement.end_lineno or statement.lineno):
                return function, statement
    return None


def _functions(module: ast.Module) -> Iterator[ast.AST]:
    inner = [node for node in ast.walk(module) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    yield from sorted(inner, key=lambda node: -node.lineno)
    yield module


def _statements(function: ast.AST) -> Iterator[ast.stmt]:
    """Simple statements of a function, those of functions and classes inside it left out, in order."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, _STATEMENTS):
            yield node
        elif not isinstance(node, (*_Function, ast.ClassDef, ast.Lambda)):
            yield from _statements(node)


def _accumulates(statement: ast.stmt, ends: frozenset[str]) -> bool:
    if isinstance(statement, ast.AugAssign):
        return True
    call = getattr(statement, "value", None)
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _KEEPING:
        # a tensor's own add gives a result, too
        return isinstance(statement, ast.Expr) or call.func.attr != "add"
    if isinstance(statement, ast.Assign):
        if any(isinstance(target, ast.Subscript) for target in statement.targets):
            return True
        return _live(statement.value, _targets(statement), ends) and isinstance(
            statement.value, (ast.BinOp, ast.List, ast.Tuple, ast.Call, ast.Subscript))
    return False


def _targets(statement: ast.stmt) -> set[str]:
    targets: Iterable[ast.expr] = getattr(statement, "targets", None) or [t for t in (getattr(statement, "target", None),) if t is not None]
    return {ast.unparse(node) for target in targets for node in ast.walk(target) if isinstance(node, (ast.Name, ast.Attribute))}


def _run_backward(statement: ast.stmt) -> set[str]:
    """Names in a call of ``backward``: the loss is among them."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and called(statement.value) == "backward":
        return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return set()


def _live(expression: ast.expr, names: set[str], ends: frozenset[str]) -> bool:
    """Whether one of the names goes into the expression without being read out or cut off first."""
    if isinstance(expression, (ast.Name, ast.Attribute)) and ast.unparse(expression) in names:
        return True
    if isinstance(expression, ast.Attribute) and expression.attr in ends:
        return False
    if isinstance(expression, ast.Call):
        if isinstance(expression.func, ast.Name) and expression.func.id in _PLAIN_CALLS:
            return False
        if isinstance(expression.func, ast.Attribute) and expression.func.attr in ends:
            return False
    return any(_live(child, names, ends) for child in _child_expressions(expression))


def _child_expressions(node: ast.AST) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, (ast.keyword, ast.comprehension)):
            yield from _child_expressions(child)


@dataclass(frozen=True)
class BestName:
    """``name = other`` in a branch taken when a score improves."""

    name: str
    other: str
    line: int
    used: int


@cache
def best_names(file: str) -> tuple[BestName, ...]:
    """Plain assignments next to the update of the score that their branch compares, where the name is read elsewhere."""
    module = tree(file)
    found = []
    for node in ast.walk(module) if module else ():
        if isinstance(node, ast.If) and (compared := _compared(node.test)):
            inside = [s for s in node.body if isinstance(s, ast.Assign)]
            if any(_written(s) & compared for s in inside):
                found += [best for s in inside for best in _plain(module, s, compared)]
    return tuple(found)


def _compared(test: ast.expr) -> set[str]:
    return {ast.unparse(part) for node in ast.walk(test) if isinstance(node, ast.Compare)
            for part in (node.left, *node.comparators) if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript))}


def _pairs(statement: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in statement.targets:
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            yield from zip(target.elts, statement.value.elts)
        else:
            yield target, statement.value


def _written(statement: ast.Assign) -> set[str]:
    return {ast.unparse(target) for target, _ in _pairs(statement)}


def _plain(module: ast.Module | None, statement: ast.Assign, compared: set[str]) -> Iterator[BestName]:
    for target, value in _pairs(statement):
        if not isinstance(target, (ast.Name, ast.Attribute)) or not isinstance(value, (ast.Name, ast.Attribute)):
            continue
        name, other = ast.unparse(target), ast.unparse(value)
        short = name.rsplit(".", 1)[-1]
        used = next((n.lineno for n in ast.walk(module or statement) if isinstance(n, (ast.Name, ast.Attribute))
                     and isinstance(n.ctx, ast.Load) and (n.id if isinstance(n, ast.Name) else n.attr) == short), 0)
        if name not in compared and other not in compared and used:
            yield BestName(name, other, statement.lineno, used)
