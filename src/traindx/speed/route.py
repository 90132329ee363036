"""By which lines a program without a DataLoader makes its batches: backwards from the calls that train, through the source.

Given are the stacks of a few calls (forward, loss, backward, step), seen while the program trained. In the frames that call them, names that
go into a forward or a loss are followed to the expressions that give them a value in each step. What depends on a model's output, or trains
itself, is no making of batches; where that leaves nothing, nothing is claimed.
"""
from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from traindx.core.speed import Making, Span

Kind = Literal["forward", "loss", "backward", "step"]
Function = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.While
SINKS = ("forward", "loss")
MOVES = frozenset(("to", "cuda", "cpu", "pin_memory"))
COUNTERS = frozenset(("range", "trange", "count"))
AROUND = frozenset(("enumerate", "tqdm"))  # what is made is their first argument
UNFIT = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr, ast.Lambda)  # expressions that mean something else inside a lambda
SELF = "self"


@dataclass(frozen=True)
class Frame:
    """``function`` begins at line ``first``; it is at ``line``, in the expression of ``span`` where that is known. ``lasting``: the same call
    of it was met in several steps."""

    file: str
    function: str
    first: int
    line: int
    span: Span | None
    lasting: bool


@dataclass(frozen=True)
class Call:
    """``frames``: the user's, innermost first."""

    kind: Kind
    frames: tuple[Frame, ...]


@dataclass
class Route:
    """``lines``: (file, first, last line) of statements that fill a batch in place: they can be timed, not held. ``constant``: what is trained
    on is not made in the loop at all. ``unclear``: something that goes into the model could not be followed. ``moving``: something of it
    changes from step to step."""

    makings: list[Making] = field(default_factory=list)
    lines: list[tuple[str, int, int]] = field(default_factory=list)
    constant: bool = False
    unclear: bool = False
    moving: bool = False

    @property
    def found(self) -> bool:
        return bool(self.lines) or any(making.holds for making in self.makings)


def route_of(calls: Sequence[Call], sources: dict[str, str]) -> Route:
    """``sources``: file -> text. Files that are not there, or are no Python, are passed over."""
    if not any(call.kind == "step" for call in calls):  # no optimizer: a backward is the step
        calls = [replace(call, kind="step") if call.kind == "backward" else call for call in calls]
    scopes = _scopes(calls, sources)
    found = Route()
    reached = False
    for call in (call for call in calls if call.kind in SINKS):
        reached |= _follow(call, scopes, found)
    for scope in scopes.values():
        scope.tell(found)
    found.constant = reached and not (found.found or found.unclear or found.moving)
    return found


def _follow(call: Call, scopes: dict[tuple[str, str, int], _Scope], found: Route) -> bool:
    """From the innermost function outwards, as far as what goes in comes from there; whether any of it could be read."""
    reached, given = False, True  # by the caller's arguments
    free: dict[str, _Scope] = {}  # names of inner functions that are none of theirs
    for frame in call.frames:
        scope = scopes.get(_key(frame))
        if scope is None:
            found.unclear |= not frame.function.startswith("<")
            continue
        reached = True
        if given:
            scope.follow(frame)
        scope.needed |= {name for name, inner in free.items() if scope.encloses(inner)}
        if frame.lasting:
            break
        given = scope.from_outside
        free |= dict.fromkeys(scope.free, scope)
    return reached


def _key(frame: Frame) -> tuple[str, str, int]:
    return frame.file, frame.function, frame.first


def _scopes(calls: Sequence[Call], sources: dict[str, str]) -> dict[tuple[str, str, int], _Scope]:
    trees: dict[str, ast.Module] = {}
    for file, text in sources.items():
        try:
            trees[file] = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
    scopes: dict[tuple[str, str, int], _Scope] = {}
    for call in calls:
        for frame in call.frames:
            if _key(frame) not in scopes and frame.file in trees and (node := _function(trees[frame.file], frame)) is not None:
                scopes[_key(frame)] = _Scope(frame.file, node, frame.lasting)
            if _key(frame) in scopes:
                scopes[_key(frame)].acts(frame, call.kind)
    return scopes


def _function(tree: ast.Module, frame: Frame) -> Function | None:
    if frame.function == "<module>":
        return tree
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == frame.function:
            first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
            if first == frame.first:
                return node
    return None


class _Scope:
    """The body of one function, or of the script."""

    def __init__(self, file: str, node: Function, lasting: bool) -> None:
        self.file, self.node, self.lasting = file, node, lasting
        self.needed: set[str] = set()
        self.acting: dict[ast.AST, set[str]] = {}  # expression (or statement) -> kinds of what it calls
        self.arguments: list[ast.expr] = []  # of the calls that train
        self.vague = False  # some of them are known by their statement only

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        return {child: node for node in ast.walk(self.node) for child in ast.iter_child_nodes(node)}

    @cached_property
    def inside(self) -> list[ast.stmt]:
        """Statements of this function itself."""
        return list(_statements(self.node.body))

    @cached_property
    def parameters(self) -> set[str]:
        if isinstance(self.node, ast.Module):
            return set()
        given = self.node.args
        every = (*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg)))
        return {arg.arg for arg in every} - {SELF}

    @property
    def from_outside(self) -> bool:
        """Whether something of what is needed is a parameter."""
        return bool(self._slice()[1] & self.parameters)

    @property
    def free(self) -> set[str]:
        """Names that are needed and belong to a function around this one, or to the file."""
        bound = {name for statement in self.inside for name in _targets(statement)}
        return {name for name in self._slice()[1] - bound - self.parameters if not name.startswith(f"{SELF}.")}

    def encloses(self, inner: _Scope) -> bool:
        """Whether names that are free there may be this one's."""
        return self.file == inner.file and (isinstance(self.node, ast.Module) or inner.node in ast.walk(self.node))

    # -- what trains --------------------------------------------------------------------------------------------------

    def acts(self, frame: Frame, kind: str) -> None:
        if (node := self._node_at(frame)) is not None:
            self.acting.setdefault(node, set()).add(kind)

    def _node_at(self, frame: Frame) -> ast.AST | None:
        """The expression that is running; where that is not known, the statement of its line."""
        around = [statement for statement in self.inside if statement.lineno <= frame.line <= (statement.end_lineno or 0)]
        if not around:
            return None
        statement = around[-1]
        exact = [node for one in around for node in _own_nodes(one) if isinstance(node, ast.expr) and span_of(node) == frame.span]
        return exact[0] if exact else statement

    def follow(self, frame: Frame) -> None:
        """Takes note of what goes into the call that this frame is in."""
        node = self._node_at(frame)
        if node is None:
            return
        if not isinstance(node, ast.Call):
            self.needed, self.vague = self.needed | _loaded([node]), True
            return
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        self.needed |= _loaded(given)
        for value in given:
            plain = value.value if isinstance(value, ast.Starred) else value
            if not self._acts(plain):
                self.arguments.append(plain)

    def _acts(self, node: ast.AST) -> bool:
        return any(inner in self.acting for inner in _own_nodes(node))

    # -- what makes ---------------------------------------------------------------------------------------------------

    @cached_property
    def region(self) -> list[ast.stmt]:
        """Statements that run in each step: of a call that lasts, those in its loop around what trains."""
        if not self.lasting:
            return self.inside
        loops = [loop for node in self.acting for loop in self._loops(node)[-1:]]
        found = [statement for loop in dict.fromkeys(loops) for statement in (loop, *_statements(loop.body))]
        return sorted(set(found), key=lambda statement: (statement.lineno, statement.col_offset))

    def _loops(self, node: ast.AST) -> list[Loop]:
        """Around a node, the innermost first."""
        found, at = [], self.parents.get(node)
        while at is not None and at is not self.node:
            if isinstance(at, (ast.For, ast.While)):
                found.append(at)
            at = self.parents.get(at)
        return found

    @cached_property
    def tainted(self) -> set[str]:
        """Names whose value comes out of what trains."""
        names: set[str] = set()
        while True:
            more = {name for statement in self.region if self._acts_itself(statement) or _given_to(statement) & names
                    for name in _targets(statement)} - names
            if not more:
                return names
            names |= more

    def _acts_itself(self, statement: ast.stmt) -> bool:
        return statement in self.acting or any(self._acts(part) for part in _parts(statement))

    def tell(self, found: Route) -> None:
        """Adds what makes batches here."""
        if not self.needed:
            return
        taken, _, unclear = self._slice()
        found.unclear |= unclear
        made = [statement.value for statement in taken if isinstance(statement, (ast.Assign, ast.AnnAssign)) and _targets(statement)]
        passed = [value for value in self.arguments if self._each_step(value) and not _loaded([value]) & self.tainted]
        spans = [span_of(value) for value in (*made, *passed) if value is not None and _worth(value) and not self._derived(value)]
        turning = {loop: loop in taken and _fetches(loop) for loop in self._turning()}
        found.makings += [Making(self.file, span) for span in dict.fromkeys(spans)]
        found.makings += [Making(self.file, span_of(_iterated(loop)), True, holds, True) for loop, holds in turning.items()]
        found.lines += [(self.file, *_lines(statement)) for statement in taken if statement not in turning and not _targets(statement)]
        found.lines += [(self.file, *_lines(loop)) for loop in taken if isinstance(loop, ast.For) and loop not in turning and _fetches(loop)]
        found.moving |= bool(taken) or self.vague
        found.unclear |= not self.lasting and any(name.startswith(f"{SELF}.") for name in self.needed - self.settled)

    def _each_step(self, node: ast.AST) -> bool:
        return not self.lasting or bool(self._loops(node))

    @cached_property
    def settled(self) -> set[str]:
        """Names that get a value here in each step."""
        loops = [loop for node, kinds in self.acting.items() if kinds & set(SINKS) for loop in self._loops(node)[:1]]
        inside = {statement for loop in loops for statement in (loop, *_statements(loop.body))} if self.lasting else set(self.region)
        return {name for statement in inside for name in _targets(statement)}

    def _derived(self, value: ast.expr) -> bool:
        """Whether it is a view or a copy of what was made before in the step: that is made anew from what is held."""
        if isinstance(value, (ast.Tuple, ast.List)):
            return bool(value.elts) and all(self._derived(part) for part in value.elts)
        root, called = _root(value), any(isinstance(node, ast.Call) for node in ast.walk(value))
        return root in self.settled or (root in self.parameters and not self.lasting and not called)

    def _slice(self) -> tuple[list[ast.stmt], set[str], bool]:
        """Statements that give a value to what is needed, to what they need, and so on; these names; whether some were passed over."""
        needed, taken, unclear = set(self.needed), dict[ast.stmt, None](), False
        while True:
            fresh = [statement for statement in self.region if statement not in taken and not isinstance(statement, ast.With)
                     and (_targets(statement) or _written(statement)) & needed and not self._acts_itself(statement)]
            clean = [statement for statement in fresh if not _given_to(statement) & self.tainted]
            unclear |= len(clean) < len(fresh)
            if not clean:
                return list(taken), needed, unclear
            taken |= dict.fromkeys(clean)
            needed |= {name for statement in clean for name in _given_to(statement)}

    def _turning(self) -> Iterator[ast.For]:
        """The innermost ``for`` around both a forward and the step."""
        if not self.lasting:
            return
        steps = {loop for node, kinds in self.acting.items() if "step" in kinds for loop in self._loops(node)}
        for node, kinds in self.acting.items():
            if kinds & set(SINKS):
                loop = next((loop for loop in self._loops(node) if loop in steps), None)
                if isinstance(loop, ast.For) and fits(loop.iter):
                    yield loop


# -- the source -------------------------------------------------------------------------------------------------------

def span_of(node: ast.expr) -> Span:
    return node.lineno, node.end_lineno or node.lineno, node.col_offset, node.end_col_offset or 0


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Outer before inner; of functions and classes defined there only themselves."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, ()))
        for handler in getattr(statement, "handlers", ()):
            yield from _statements(handler.body)


def _parts(statement: ast.stmt) -> Iterator[ast.AST]:
    """What a statement runs itself: the head of a compound one, all of a simple one."""
    if isinstance(statement, ast.For):
        yield statement.iter
    elif isinstance(statement, (ast.While, ast.If)):
        yield statement.test
    elif isinstance(statement, ast.With):
        yield from (item.context_expr for item in statement.items)
    elif not hasattr(statement, "body"):
        yield statement


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    parts = _parts(node) if isinstance(node, ast.stmt) else (node,)
    for part in parts:
        yield from ast.walk(part)


def _targets(statement: ast.stmt) -> set[str]:
    """Names (``x``, ``self.x``) that get a value."""
    if isinstance(statement, ast.Assign):
        given: Iterable[ast.AST] = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.For)):
        given = [statement.target]
    elif isinstance(statement, ast.With):
        given = [item.optional_vars for item in statement.items if item.optional_vars is not None]
    else:
        return set()
    return {name for target in given for name in _stored(target)}


def _stored(target: ast.AST) -> Iterator[str]:
    if isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _stored(part)
    elif isinstance(target, ast.Starred):
        yield from _stored(target.value)
    elif (name := _name(target)) is not None:
        yield name


def _written(statement: ast.stmt) -> set[str]:
    """Names whose value is changed in place: ``x[i] = ...``, ``x += ...``, ``x.append(...)``."""
    found: list[ast.AST] = []
    if isinstance(statement, ast.Assign):
        found = [target.value for target in statement.targets if isinstance(target, ast.Subscript)]
    elif isinstance(statement, ast.AugAssign):
        found = [statement.target.value if isinstance(statement.target, ast.Subscript) else statement.target]
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and isinstance(statement.value.func, ast.Attribute):
        found = [statement.value.func.value]
    return {name for node in found if (name := _name(node)) is not None}


def _given_to(statement: ast.stmt) -> set[str]:
    return _loaded(part for part in _parts(statement))


def _loaded(nodes: Iterable[ast.AST]) -> set[str]:
    found: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        name = _name(node)
        if name is not None:
            if isinstance(node.ctx, ast.Load):  # type: ignore[attr-defined]
                found.add(name)
            continue
        if isinstance(node, ast.Call):
            waiting += [*node.args, *(keyword.value for keyword in node.keywords)]
            if isinstance(node.func, ast.Attribute) and _name(node.func) is None:
                waiting.append(node.func.value)
            elif not isinstance(node.func, (ast.Name, ast.Attribute)):
                waiting.append(node.func)
            continue
        waiting += ast.iter_child_nodes(node)
    return found


def _name(node: Any) -> str | None:
    """``x`` or ``self.x``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == SELF:
        return f"{SELF}.{node.attr}"
    return None


def _root(value: Any) -> str | None:
    """``x`` of ``x[:, 1:].float()``."""
    while _name(value) is None and isinstance(value, (ast.Attribute, ast.Subscript, ast.Call)):
        value = value.func if isinstance(value, ast.Call) else value.value
    return _name(value)


def _iterated(loop: ast.For) -> ast.expr:
    value = loop.iter
    while isinstance(value, ast.Call) and _called(value) in AROUND and value.args and not isinstance(value.args[0], ast.Starred):
        value = value.args[0]
    return value


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _lines(statement: ast.stmt) -> tuple[int, int]:
    """First and last; of a loop, of its head."""
    last = statement.iter if isinstance(statement, ast.For) else statement
    return statement.lineno, last.end_lineno or statement.lineno


def _fetches(loop: ast.For) -> bool:
    """Whether a turn of it can cost anything."""
    value = _iterated(loop)
    return not (isinstance(value, ast.Call) and _called(value) in COUNTERS) and fits(value)


def _worth(value: ast.expr) -> bool:
    """Whether it can cost anything more than a copy to a device, and can be asked for from elsewhere."""
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    if calls and all(_called(call) in MOVES for call in calls):
        return False
    return fits(value) and (bool(calls) or any(isinstance(node, (ast.Subscript, ast.ListComp)) for node in ast.walk(value)))


def fits(value: ast.expr) -> bool:
    """Whether it means the same inside a lambda."""
    return not any(isinstance(node, UNFIT) or (isinstance(node, ast.Name) and node.id == "super") for node in ast.walk(value))
