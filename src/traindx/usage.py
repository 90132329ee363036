"""argparse in both languages: its headings, how it wraps, and what it says of bad arguments."""
from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from traindx.core.text import Language, Text
from traindx.reporters.layout import wrap

USAGE = Text("usage: ", "用法：")
POSITIONALS, OPTIONS = Text("positional arguments", "参数"), Text("options", "选项")
# what argparse says, word for word, and the same in Chinese
COMPLAINTS = (
    ("unrecognized arguments: (?P<words>.+)", "不认识的参数：{words}"),
    ("the following arguments are required: (?P<words>.+)", "缺少参数：{words}"),
    ("expected one argument", "要跟一个值"),
    ("expected at least one argument", "至少要跟一个值"),
    ("expected at most one argument", "最多跟一个值"),
    ("ignored explicit argument (?P<value>.+)", "它不带值，却给了 {value}"),
    (r"invalid choice: (?P<value>.+?) \(choose from (?P<choices>.+)\)", "没有 {value} 这个选择，可选的有：{choices}"),
    (r"invalid (?P<kind>\w+) value: (?P<value>.+)", "{value} 不是合法的值（{kind}）"),
    ("not allowed with argument (?P<other>.+)", "不能和 {other} 一起用"),
    ("one of the arguments (?P<words>.+) is required", "{words} 里要给出一个"),
)


def complaint(message: str) -> Text:
    """What argparse says, in both languages; as it is where argparse has found new words."""
    named = re.fullmatch("argument (?P<name>[^:]+): (?P<rest>.+)", message, re.DOTALL)
    if named:
        return Text(message, f"参数 {named['name']}：{complaint(named['rest']).zh}")
    found = ((said, match) for pattern, said in COMPLAINTS if (match := re.fullmatch(pattern, message, re.DOTALL)))
    return next((Text(message, said.format(**match.groupdict())) for said, match in found), Text(message, message))


def with_full_width_colons(said: str, language: Language) -> str:
    """A whole help; argparse writes the marks behind its headings itself."""
    return re.sub(f"^({POSITIONALS.zh}|{OPTIONS.zh}):$", r"\1：", said, flags=re.MULTILINE) if language == "zh" else said


def formatter(language: Language) -> Any:
    """The ``formatter_class`` of a parser that speaks this language."""
    return partial(_Formatter, language)


class _Formatter(argparse.HelpFormatter):
    """Chinese is as wide as it is shown, and may be broken between any two characters."""

    def __init__(self, language: Language, prog: str, **settings: Any) -> None:
        super().__init__(prog, **settings)
        self.language = language

    def add_usage(self, usage: str | None, actions: Iterable[argparse.Action], groups: Iterable[Any], prefix: str | None = None) -> None:
        if usage is not None and self.language == "zh":  # its word is a column narrower
            usage = usage.replace("\n       ", "\n      ")
        super().add_usage(usage, actions, groups, USAGE.say(self.language) if prefix is None else prefix)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return list(wrap(text, width)) if self.language == "zh" else super()._split_lines(text, width)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(wrap(text, width, indent, indent)) if self.language == "zh" else super()._fill_text(text, width, indent)
