"""Shape assertions to paste: every variable of the user's functions whose shape was seen, right after it is set."""
from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from traindx.core.observed.ops import OpTrace
from traindx.core.observed.shapes import OtherBatch, Shape, StepShapes, Variable
from traindx.core.recording import Recording
from traindx.signals.shapes import comparable

Style = Literal["plain", "jaxtyping"]
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_KINDS = (("float", "Float"), ("bfloat", "Float"), ("uint", "UInt"), ("int", "Int"), ("bool", "Bool"), ("complex", "Complex"))


@dataclass(frozen=True)
class Size:
    """A dimension: ``factor`` times the samples, else the constant ``size``; neither where it varies."""

    factor: int = 0
    size: int | None = None


@dataclass(frozen=True)
class Setting:
    """Where a variable is set: lines to paste go after ``after``, indented by ``indent``."""

    file: str
    function: str
    first: int
    after: int
    indent: int
    name: str


@dataclass(frozen=True)
class Assertion:
    """One line to paste after line ``after`` of ``file``."""

    file: str
    after: int
    indent: int
    text: str


@dataclass(frozen=True)
class _Fact:
    setting: Setting
    sizes: tuple[Size, ...]
    dtype: str


def assertions_of(recording: Recording, folder: Path, style: Style = "plain") -> list[Assertion]:
    """In the order of the files' lines. ``folder`` is where the script ran."""
    facts = list(_facts(recording, folder))
    return _plain(facts) if style == "plain" else _jaxtyping(facts, folder)


def text_of(assertions: Iterable[Assertion], folder: Path) -> str:
    """What is printed: each line to paste under a comment that says where."""
    out: list[str] = []
    last: tuple[str, int] | None = None
    for each in assertions:
        if (each.file, each.after) != last:
            last = (each.file, each.after)
            code = _lines(folder / each.file)[each.after - 1].strip() if each.after else ""
            out.append(f"# {each.file}:{each.after}  {code}".rstrip())
        out.append(" " * each.indent + each.text)
    return "\n".join(out) + "\n" if out else ""


def pasted(source: str, assertions: Iterable[Assertion]) -> str:
    """The source of one file with its assertions in it."""
    lines = source.splitlines()
    by_line: dict[int, list[str]] = {}
    for each in assertions:
        by_line.setdefault(each.after, []).append(" " * each.indent + each.text)
    out = by_line.get(0, [])
    for number, line in enumerate(lines, 1):
        out += [line, *by_line.get(number, [])]
    return "\n".join(out) + "\n"


# -- what is known --


def _facts(recording: Recording, folder: Path) -> Iterator[_Fact]:
    loose = _maybe_samples(recording)
    found: dict[Setting, tuple[list[tuple[int | None, Shape]], set[str]]] = {}
    for samples, variable in _seen(recording):
        setting = setting_of(folder, variable)
        if setting is not None:
            shapes, dtypes = found.setdefault(setting, ([], set()))
            shapes.append((samples, variable.shape))
            dtypes.add(variable.dtype)
    for setting, (shapes, dtypes) in sorted(found.items(), key=lambda item: (item[0].file, item[0].after, item[0].first)):
        if len({len(shape) for _, shape in shapes}) == 1:
            sizes = tuple(Size() if size.size is not None and size.size == loose else size for size in sizes_of(shapes))
            yield _Fact(setting, sizes, dtypes.pop() if len(dtypes) == 1 else "")


def _maybe_samples(recording: Recording) -> int | None:
    """Where only picked rows were made fewer, what kept this very size (the indices of the rows) may be the samples all the same."""
    return next((other.full for other in recording.of(OtherBatch) if other.how == "rows"), None)


def _seen(recording: Recording) -> Iterator[tuple[int | None, Variable]]:
    """Variables with the number of samples of their step, None where it is not known."""
    traces = {trace.step: trace for trace in recording.of(OpTrace) if trace.phase == "train"}
    twin = comparable(traces.values(), recording.of(OtherBatch))
    repeated = twin.trace.step if twin and twin.trace else 0
    leads = twin is not None and traces[repeated].batch == twin.full
    for seen in recording.of(StepShapes):
        batch = traces[seen.step].batch if leads and seen.step in traces else None
        samples = twin.full if twin is not None and seen.step == repeated else batch
        yield from ((samples, variable) for variable in seen.variables)
    if twin is not None and twin.shapes is not None:
        yield from ((twin.samples, variable) for variable in twin.shapes.variables)


def sizes_of(shapes: Sequence[tuple[int | None, Shape]]) -> tuple[Size, ...]:
    """What all sightings of a variable agree on, dimension by dimension.

    >>> sizes_of([(4, (4, 8, 3)), (3, (3, 6, 3)), (None, (4, 8, 3))])
    (Size(factor=1, size=None), Size(factor=2, size=None), Size(factor=0, size=3))
    """
    return tuple(_size([(samples, shape[dim]) for samples, shape in shapes]) for dim in range(len(shapes[0][1])))


def _size(seen: list[tuple[int | None, int]]) -> Size:
    if len({n for _, n in seen}) == 1:
        return Size(size=seen[0][1])
    factors = {n / samples for samples, n in seen if samples}
    factor = factors.pop() if len(factors) == 1 else 0.0
    return Size(factor=int(factor)) if factor >= 1 and factor == int(factor) else Size()


# -- where it is set --


@cache
def _lines(file: Path) -> tuple[str, ...]:
    try:
        return tuple(file.read_text(encoding="utf-8").splitlines())
    except (OSError, UnicodeDecodeError):
        return ()


@cache
def _tree(file: Path) -> ast.Module | None:
    try:
        return ast.parse("\n".join(_lines(file)))
    except (SyntaxError, ValueError):
        return None


def setting_of(folder: Path, variable: Variable) -> Setting | None:
    """The one place from which the variable can have come to its line; None where several may."""
    file = folder / variable.file
    tree = _tree(file)
    scope = _scope(tree, variable) if tree is not None else None
    if scope is None:
        return None
    path = _path(scope, variable.line)
    if isinstance(path[-1], ast.For) and path[-1].lineno == variable.line:
        return None  # the loop's own line: its targets are still those of the turn before
    made = [each for each in _makers(scope, variable.name) if each is not None]
    before = [node for node in made if _end(node) < variable.line or (isinstance(node, (ast.For, *_Function)) and node in path)]
    if not before or any(_carried(node, variable.line, path) for node in made):
        return None
    last = max(before, key=lambda node: node.lineno)
    if not (last in path or _parent_of(scope, last) in path) or not _in_loop(scope, last):
        return None
    return _setting(file, variable, last)


def _scope(tree: ast.Module, variable: Variable) -> ast.AST | None:
    if variable.function == "<module>":
        return tree
    inside = [node for node in ast.walk(tree) if isinstance(node, _Function) and node.name == variable.function
              and node.lineno <= variable.line <= (node.end_lineno or node.lineno)]
    return max(inside, key=lambda node: node.lineno, default=None)


def _inner(node: ast.AST) -> Iterator[ast.stmt]:
    """Statements of a scope, those of functions and classes in it left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, (*_Function, ast.ClassDef, ast.Lambda, ast.expr)):
            yield from _inner(child)


def _path(scope: ast.AST, line: int) -> list[ast.AST]:
    """The scope and the statements around a line, outermost first."""
    return [scope, *(node for node in _inner(scope) if node.lineno <= line <= _end(node))]


def _parent_of(scope: ast.AST, statement: ast.AST) -> ast.AST | None:
    return next((node for node in (scope, *_inner(scope)) if statement in ast.iter_child_nodes(node)), None)


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _makers(scope: ast.AST, name: str) -> Iterator[ast.stmt]:
    """Statements that set a name: the function itself for an argument, loops for their targets."""
    if isinstance(scope, _Function):
        arguments = scope.args
        if name in {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}:
            yield scope
    for statement in _inner(scope):
        parts = [child for child in ast.iter_child_nodes(statement) if isinstance(child, (ast.expr, ast.withitem))]
        if any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, (ast.Store, ast.Del))
               for part in parts for node in ast.walk(part)):
            yield statement


def _carried(node: ast.stmt, line: int, path: list[ast.AST]) -> bool:
    """Set below the line, in a loop around both: the next turn brings it back up."""
    loops = [each for each in path if isinstance(each, (ast.For, ast.While))]
    return node.lineno >= line and node not in path[:-1] and any(each.lineno <= node.lineno <= _end(each) for each in loops) \
        and not _set_above(node, line, loops)


def _set_above(node: ast.stmt, line: int, loops: list[ast.For | ast.While]) -> bool:
    """The innermost loop sets all that the node sets, above the line: what comes back up is gone by then."""
    inner = loops[-1]
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if isinstance(inner, ast.For) and names & {n.id for n in ast.walk(inner.target) if isinstance(n, ast.Name)}:
        return True
    return any(isinstance(each, ast.Assign) and _end(each) < line
               and names & {n.id for t in each.targets for n in ast.walk(t) if isinstance(n, ast.Name)} for each in inner.body)


def _in_loop(scope: ast.AST, statement: ast.AST) -> bool:
    """At the top level of a script only what a loop sets belongs to a step."""
    if not isinstance(scope, ast.Module):
        return True
    return any(isinstance(node, (ast.For, ast.While)) and node.lineno <= getattr(statement, "lineno", 0) <= _end(node) for node in _inner(scope))


def _setting(file: Path, variable: Variable, node: ast.stmt) -> Setting | None:
    lines = _lines(file)
    if isinstance(node, (ast.For, *_Function)):
        body = node.body
        first = body[1] if isinstance(node, _Function) and _is_docstring(body[0]) and len(body) > 1 else body[0]
        if not _alone(lines, first, ends=False):
            return None
        start = first.lineno - (len(first.decorator_list) if isinstance(first, (*_Function, ast.ClassDef)) else 0)
        return Setting(variable.file, variable.function, node.lineno, start - 1, first.col_offset, variable.name)
    if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or not _alone(lines, node):
        return None
    return Setting(variable.file, variable.function, node.lineno, _end(node), node.col_offset, variable.name)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _alone(lines: Sequence[str], node: ast.stmt, ends: bool = True) -> bool:
    """No other statement shares its first line, nor (``ends``) its last."""
    if lines[node.lineno - 1][:node.col_offset].strip():
        return False
    return not ends or ";" not in lines[_end(node) - 1].encode()[node.end_col_offset or 0:].decode(errors="replace").partition("#")[0]


# -- how it is written --


def _plain(facts: Sequence[_Fact]) -> list[Assertion]:
    out = []
    for fact in facts:
        name = fact.setting.name
        base = _reference(fact, facts)
        sizes = [_word(fact, dim, size, base) for dim, size in enumerate(fact.sizes)]
        shape = f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"
        out.append(Assertion(fact.setting.file, fact.setting.after, fact.setting.indent, f"assert {name}.shape == {shape}, {name}.shape"))
    return out


def _word(fact: _Fact, dim: int, size: Size, base: str) -> str:
    if size.size is not None:
        return str(size.size)
    if size.factor and base:
        return base if size.factor == 1 else f"{size.factor} * {base}"
    return f"{fact.setting.name}.shape[{dim}]"


def _reference(fact: _Fact, facts: Sequence[_Fact]) -> str:
    """``x.shape[0]``: where an earlier variable of the function, set once, tells the number of samples."""
    here = fact.setting
    scope = [other for other in facts if (other.setting.file, other.setting.function) == (here.file, here.function)]
    for other in scope:
        set_once = sum(each.setting.name == other.setting.name for each in scope) == 1
        dim = next((d for d, size in enumerate(other.sizes) if size.factor == 1), None)
        if set_once and dim is not None and other.setting.after <= here.after and other.setting.indent <= here.indent:
            return f"{other.setting.name}.shape[{dim}]"
    dim = next((d for d, size in enumerate(fact.sizes) if size.factor == 1), None)
    return "" if dim is None else f"{here.name}.shape[{dim}]"


def _jaxtyping(facts: Sequence[_Fact], folder: Path) -> list[Assertion]:
    out: list[Assertion] = []
    kinds: dict[str, set[str]] = {}
    for fact in facts:
        setting = fact.setting
        bound = _binds(folder, setting)
        kind = next((word for start, word in _KINDS if fact.dtype.startswith(start)), "Shaped")
        kinds.setdefault(setting.file, set()).add(kind)
        words = " ".join(_symbol(size, bound is not None and _is_bound(fact, facts)) for size in fact.sizes)
        out.append(Assertion(setting.file, setting.after, setting.indent,
                             f'assert isinstance({setting.name}, {kind}[Tensor, "{words}"]), {setting.name}.shape'))
        if bound is not None:
            kinds[setting.file].add("jaxtyped")
            out.append(bound)
    for file, names in kinds.items():
        after = _after_imports(folder / file)
        listed = ", ".join(sorted(names, key=str.lower))
        out += [Assertion(file, after, 0, f"from jaxtyping import {listed}"), Assertion(file, after, 0, "from torch import Tensor")]
    return sorted(dict.fromkeys(out), key=lambda each: (each.file, each.after))


def _symbol(size: Size, bound: bool) -> str:
    if size.size is not None:
        return str(size.size)
    if size.factor == 1:
        return "B"
    return f"{size.factor}*B" if size.factor and bound else "_"


def _is_bound(fact: _Fact, facts: Sequence[_Fact]) -> bool:
    """An assertion above this one has told what B is."""
    here = fact.setting
    return any(size.factor == 1 for other in facts for size in other.sizes
               if (other.setting.file, other.setting.function) == (here.file, here.function)
               and other.setting.after < here.after and other.setting.indent <= here.indent)


def _binds(folder: Path, setting: Setting) -> Assertion | None:
    """The decorator that makes B one number throughout a call of the function; a script's top level has none."""
    tree = _tree(folder / setting.file)
    inside = [node for node in ast.walk(tree or ast.Module([], [])) if isinstance(node, _Function)
              and node.name == setting.function and node.lineno <= setting.after <= _end(node)]
    node = max(inside, key=lambda each: each.lineno, default=None)
    if node is None or isinstance(node, ast.AsyncFunctionDef) or any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node)):
        return None
    return Assertion(setting.file, node.lineno - 1, node.col_offset, "@jaxtyped(typechecker=None)")


def _after_imports(file: Path) -> int:
    """Past a docstring, `from __future__` and the imports at the head of a file."""
    last = 0
    for node in (_tree(file) or ast.Module([], [])).body:
        if not isinstance(node, (ast.Import, ast.ImportFrom)) and not _is_docstring(node):
            break
        last = _end(node)
    return last
