"""Rules: one folder each under ``traindx/rules/<family>/<slug>/``, discovered, nothing to register.

``rule.py`` holds, in this order: a docstring (title line, then the sections of :data:`SECTIONS`), ``ZH`` (the same page in
Chinese), ``LEVEL``, ``STEP`` (0-6, where the tree asks for it), optionally ``EXPLAINS`` (patterns of rules whose finding is only
a symptom of this one), ``EXPERIMENT`` (what ``traindx exam`` would change) and ``check``. The annotations of ``check`` are its
needs: ``list[SomeObservation]`` or a signal; a need that is absent makes the verdict "not checked".

What no recording of ``traindx run`` shows, and another command names, has ``page.py`` in the place of ``rule.py``: the same without
``check``, and with ``JUDGED_BY``, that command's name.
"""
from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import typing
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from traindx.core.findings import Finding, Level
from traindx.core.text import Language, Text

FAMILIES = ("shape", "loss", "optim", "mode", "data", "init", "numeric", "curve", "memory", "record", "repro", "speed", "rank")
RULE, PAGE, PAIR = "rule.py", "page.py", ("bad.py", "good.py")
RUN = "run"
SECTIONS = ("What it is", "Why it is silent", "What you see", "Look-alikes", "Fix", "Experiment", "Source")
CONSTANTS = ("ZH", "LEVEL", "STEP", "EXPLAINS", "EXPERIMENT", "JUDGED_BY")
SECTIONS_ZH = ("是什么", "为什么不报错", "你会看到", "容易混淆的情况", "怎么改", "对照实验", "来源")


class UnknownRule(ValueError):
    """A name or pattern that matches no rule."""


@dataclass(frozen=True)
class Page:
    """A rule's page in one language."""

    title: str
    sections: dict[str, str]


class RuleFile:
    # A rule.py seen from outside: its docstring and constants are read from the text, and the code is executed only when
    # ``check`` is asked for. Executing all rules would take longer than `traindx explain` may.

    def __init__(self, path: Path, module: str) -> None:
        self.__file__ = str(path)
        self._module = module

    @cached_property
    def __doc__(self) -> str:  # type: ignore[override]
        return ast.get_docstring(self._head, clean=False) or ""

    @cached_property
    def _head(self) -> ast.Module:
        text = Path(self.__file__).read_text(encoding="utf-8")
        try:
            return ast.parse(text.partition("\ndef ")[0])
        except SyntaxError:  # cut in the middle of something
            return ast.parse(text)

    @cached_property
    def _constants(self) -> dict[str, ast.expr]:
        return {target.id: node.value for node in self._head.body if isinstance(node, ast.Assign)
                for target in node.targets if isinstance(target, ast.Name)}

    def __getattr__(self, name: str) -> Any:
        if name in CONSTANTS:
            try:
                return ast.literal_eval(self._constants[name])
            except KeyError:
                raise AttributeError(name) from None
            except ValueError:  # computed
                pass
        return getattr(importlib.import_module(self._module), name)


@dataclass(frozen=True)
class Rule:
    name: str
    module: ModuleType | RuleFile

    @property
    def family(self) -> str:
        return self.name.split("/")[0]

    @property
    def level(self) -> Level:
        level: Level = self.module.LEVEL
        return level

    @property
    def step(self) -> int:
        step: int = self.module.STEP
        return step

    @property
    def explains(self) -> tuple[str, ...]:
        return tuple(getattr(self.module, "EXPLAINS", ()))

    @property
    def experiment(self) -> str | None:
        return getattr(self.module, "EXPERIMENT", None)

    @property
    def judged_by(self) -> str:
        """The command that finds it."""
        judged_by: str = RUN if Path(str(self.module.__file__)).name == RULE else self.module.JUDGED_BY
        return judged_by

    @property
    def folder(self) -> Path:
        return Path(str(self.module.__file__)).parent

    @cached_property
    def needs(self) -> dict[str, Any]:
        hints = typing.get_type_hints(self.module.check)
        return {name: hints[name] for name in inspect.signature(self.module.check).parameters}

    @property
    def check(self) -> Callable[..., Iterator[Finding]]:
        check: Callable[..., Iterator[Finding]] = self.module.check
        return check

    @property
    def title(self) -> Text:
        return Text(title_of(self.module.__doc__ or ""), title_of(self.module.ZH))

    def page(self, language: Language) -> Page:
        text = self.module.ZH if language == "zh" else self.module.__doc__
        return parse_page(text or "", SECTIONS_ZH if language == "zh" else SECTIONS)

    def source_of(self, which: str) -> str:
        """The text of ``bad.py`` or ``good.py``."""
        return (self.folder / f"{which}.py").read_text(encoding="utf-8")


def title_of(text: str) -> str:
    return text.strip().partition("\n")[0].strip().rstrip(".。")


def parse_page(text: str, headings: tuple[str, ...]) -> Page:
    """A title line, then ``Heading:`` at the start of a line opens each section."""
    body = inspect.cleandoc(text).partition("\n")[2]
    pattern = re.compile(rf"^({'|'.join(map(re.escape, headings))})[:：][ \t]*", re.MULTILINE)
    parts = pattern.split(body)
    return Page(title_of(text), {name: part.strip() for name, part in zip(parts[1::2], parts[2::2])})


class IncompleteRule(UserWarning):
    """A rule's folder lacks one of its three files."""


@cache
def all_rules() -> dict[str, Rule]:
    """Every rule of ``traindx run`` by name, in the order of families."""
    return {name: rule for name, rule in _found().items() if rule.judged_by == RUN}


@cache
def all_pages() -> dict[str, Rule]:
    """Every name that has a page: those rules, and what another command judges."""
    return _found()


def _found() -> dict[str, Rule]:
    import traindx.rules as root
    return discover(root.__path__, root.__name__)


def discover(paths: Iterable[str], package: str) -> dict[str, Rule]:
    """The rules in the folders of families. One that lacks a file is left out, with a warning: the others still judge."""
    found = {}
    for family in pkgutil.iter_modules(paths):
        if not family.ispkg:
            continue
        inner = importlib.import_module(f"{package}.{family.name}")
        for slug in pkgutil.iter_modules(inner.__path__):
            folder = Path(str(slug.module_finder.path), slug.name)  # type: ignore[union-attr]
            if not slug.ispkg:
                continue
            name = f"{family.name}/{slug.name.replace('_', '-')}"
            page = PAGE if (folder / PAGE).is_file() else RULE
            if missing := [file for file in (page, *PAIR) if not (folder / file).is_file()]:
                warnings.warn(IncompleteRule(f"rule {name} is left out: {folder} has no {', '.join(missing)}"), stacklevel=2)
                continue
            found[name] = Rule(name, RuleFile(folder / page, f"{package}.{family.name}.{slug.name}.{page.removesuffix('.py')}"))
    return dict(sorted(found.items(), key=lambda item: (_family_order(item[0]), item[0])))


def _family_order(name: str) -> int:
    family = name.split("/")[0]
    return FAMILIES.index(family) if family in FAMILIES else len(FAMILIES)


def matching(patterns: Iterable[str], names: Iterable[str]) -> set[str]:
    """Names chosen by patterns: ``family/slug``, ``family`` or ``family/*``. Raises UnknownRule for one that matches none."""
    import difflib
    import fnmatch
    names = list(names)
    chosen: set[str] = set()
    for pattern in patterns:
        glob = pattern if "/" in pattern else f"{pattern}/*"
        hits = fnmatch.filter(names, glob)
        if not hits:
            families = sorted({name.split("/")[0] for name in names})
            near = difflib.get_close_matches(pattern, [*names, *families], n=3, cutoff=0.4)
            raise UnknownRule(pattern, near)
        chosen.update(hits)
    return chosen
