"""Every sentence a user reads, in both languages, side by side where it is used."""
from __future__ import annotations

import locale
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import Any, Literal

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")


@dataclass(frozen=True)
class Text:
    """One message in English and Chinese; ``{name}`` fields are filled by :meth:`fill` in both at once.

    ``{count} step{count:|s}``: the word before the bar where the count is 1, else the one behind it.
    """

    en: str
    zh: str

    def fill(self, **values: Any) -> Text:
        """The message with its fields set; a value may itself be a Text."""
        return Text(_filled(self.en, "en", values), _filled(self.zh, "zh", values))

    def __add__(self, other: Text) -> Text:
        return Text(self.en + other.en, self.zh + other.zh)

    def say(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en


class _Filling(Formatter):
    """``str.format``, and one word or another by a count."""

    def format_field(self, value: Any, format_spec: str) -> str:
        one, bar, more = format_spec.partition("|")
        return (one if str(value) == "1" else more) if bar else str(format(value, format_spec))

    def check_unused_args(self, used_args: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """A text may leave values out."""


_FILLING = _Filling()


def _filled(said: str, language: Language, values: Mapping[str, Any]) -> str:
    filled = _FILLING.vformat(said, (), {key: _in(value, language) for key, value in values.items()})
    return _GAP.sub("", filled) if language == "zh" else filled


def _in(value: Any, language: Language) -> Any:
    if not isinstance(value, Text):
        return value
    return f"{_EDGE}{value.zh}{_EDGE}" if language == "zh" else value.en


# ``{layer} 的`` keeps its space behind code and loses it behind Chinese; what the user wrote himself is left alone
_EDGE = "\ue000"
_GAP = re.compile(f"(?<=[一-鿿])(?:{_EDGE} {_EDGE}?| {_EDGE})(?=[一-鿿])|{_EDGE}")


def same(words: str) -> Text:
    """A text that is alike in both languages: code, names, numbers."""
    return Text(words, words)


EMPTY = same("")
LIST = Text(", ", "、")  # between names; clauses have messages.LIST_COMMA


def joined(parts: Iterable[Text], between: Text = LIST) -> Text:
    parts = list(parts)
    return Text(between.en.join(part.en for part in parts), between.zh.join(part.zh for part in parts))


PLAIN = 1e6  # below it, nobody writes an exponent


def number(value: float, digits: int = 3) -> str:
    """A number as people write it: 0.00123 -> 0.00123, 12.0 -> 12, 6941.7 -> 6940, 1234567.8 -> 1.23e+06."""
    if value != value:
        return "NaN"
    if isinstance(value, int) or (abs(value) < PLAIN and float(value).is_integer()):
        return str(int(value))
    short = f"{value:.{digits}g}"
    return f"{float(short):.0f}" if "e+" in short and abs(value) < PLAIN else short


def language_from(setting: str | None = None) -> Language:
    """The language to speak: the setting if given, else the locale's, else English."""
    if setting in LANGUAGES:
        return setting  # type: ignore[return-value]
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return "zh" if value.lower().startswith("zh") else "en"
    return "zh" if (locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"
