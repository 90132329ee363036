"""Settings: the command line wins over ``[tool.traindx]`` of the nearest pyproject.toml, and that over the defaults."""
from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from traindx.core.text import LANGUAGES, Text
from traindx.errors import UsageError, reason

FAIL_ON = ("error", "warning", "never")

_NOT_TOML = Text("{file} is not valid TOML: {problem}", "{file} 不是合法的 TOML：{problem}")
_NOT_READABLE = Text("{file} cannot be read: {problem}", "读不了 {file}：{problem}")
_NOT_A_TABLE = Text("{file}: [tool.traindx] must be a table, but is {value}",
                    "{file}：[tool.traindx] 应当是一个表，现在是 {value}")
_UNKNOWN_KEY = Text("{file}: [tool.traindx] has an unknown key {key!r}.{near} Known keys: {known}",
                    "{file}：[tool.traindx] 里有不认识的键 {key!r}。{near}可用的键：{known}")
_NEAR = Text(" Did you mean {near}?", "你要写的是不是 {near}？")
_BAD_VALUE = Text("{file}: [tool.traindx] {key} must be {wanted}, but is {value!r}",
                  "{file}：[tool.traindx] 的 {key} 应当是{wanted}，现在是 {value!r}")
_PATTERNS = Text("a list of rule names", "规则名的列表")
_MIRRORS = Text("a list of wandb, mlflow, tensorboard", "由 wandb、mlflow、tensorboard 组成的列表")
_WORDS = Text("a text", "字符串")
_YES_NO = Text("true or false", " true 或 false")
_COUNT = Text("a whole number above 0", "大于 0 的整数")


@dataclass(frozen=True)
class Settings:
    """What ``traindx run`` was asked for. Names are the command line's, with ``_`` for ``-``."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str = "never"
    max_steps: int | None = None
    name: str | None = None
    runs_dir: str = "runs"
    no_record: bool = False
    prove: bool = False
    no_ask: bool = False
    mirror: tuple[str, ...] = ()
    lang: str | None = None
    json: str | None = None
    html: str | None = None
    sarif: str | None = None
    given: frozenset[str] = field(default_factory=frozenset)  # keys that were set anywhere


KEYS = tuple(f.name for f in fields(Settings) if f.name != "given")
PATHS = ("runs_dir", "json", "html", "sarif")


def settings_from(options: Mapping[str, Any], folder: Path) -> Settings:
    """``options`` are the command line's; a value of None was not given."""
    given = {key: value for key, value in options.items() if key in KEYS and value is not None}
    table = read_table(folder)
    return replace(Settings(), **{**table, **given}, given=frozenset(table) | frozenset(given))


def read_table(folder: Path) -> dict[str, Any]:
    """``[tool.traindx]`` of the nearest pyproject.toml at or above ``folder`` that has one; checked."""
    for parent in (folder, *folder.parents):
        file = parent / "pyproject.toml"
        if file.is_file():
            table = _load(file).get("tool", {})
            if isinstance(table, dict) and "traindx" in table:
                return _checked(table["traindx"], file)
    return {}


def _load(file: Path) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise UsageError(_NOT_READABLE.fill(file=file, problem=reason(problem))) from None
    except ValueError as problem:  # not TOML, not UTF-8
        raise UsageError(_NOT_TOML.fill(file=file, problem=problem)) from None


def _checked(table: Any, file: Path) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise UsageError(_NOT_A_TABLE.fill(file=file, value=repr(table)))
    settings: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in KEYS:
            raise UsageError(_unknown(key, file))
        is_right, wanted = _WANTED.get(name, (_is_text, _WORDS))
        if not is_right(value):
            raise UsageError(_BAD_VALUE.fill(file=file, key=key, wanted=wanted, value=value))
        settings[name] = tuple(value) if isinstance(value, list) else value
    # a path in the file is meant from where the file lies, wherever the command was given
    paths = {key: settings[key] for key in PATHS if settings.get(key, "-") != "-"}
    return settings | {key: str(file.parent / path) for key, path in paths.items()}


def _unknown(key: str, file: Path) -> Text:
    known = [name.replace("_", "-") for name in KEYS]
    near = difflib.get_close_matches(key, known, n=1)
    hint = _NEAR.fill(near=near[0]) if near else Text("", "")
    return _UNKNOWN_KEY.fill(file=file, key=key, near=hint, known=", ".join(known))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _one_of(*words: str) -> tuple[Callable[[Any], bool], Text]:
    listed = ", ".join(words)
    return (lambda value: value in words), Text(f"one of {listed}", f"以下之一（{listed}）")


def _is_patterns(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_yes_no(value: Any) -> bool:
    return isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


_WANTED: dict[str, tuple[Callable[[Any], bool], Text]] = {
    "select": (_is_patterns, _PATTERNS), "ignore": (_is_patterns, _PATTERNS), "mirror": (_is_patterns, _MIRRORS),
    "max_steps": (_is_count, _COUNT),
    "no_record": (_is_yes_no, _YES_NO), "prove": (_is_yes_no, _YES_NO), "no_ask": (_is_yes_no, _YES_NO),
    "fail_on": _one_of(*FAIL_ON),
    "lang": _one_of(*LANGUAGES),
}
