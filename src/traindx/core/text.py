"""Every sentence a user reads, in both languages, side by side where it is used."""
from __future__ import annotations

import locale
import os
from dataclasses import dataclass
from typing import Any, Literal

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")


@dataclass(frozen=True)
class Text:
    """One message in English and Chinese; ``{name}`` fields are filled by :meth:`fill` in both at once."""

    en: str
    zh: str

    def fill(self, **values: Any) -> Text:
        """The message with its fields set; a value may itself be a Text."""
        return Text(
            self.en.format(**{key: _in(value, "en") for key, value in values.items()}),
            self.zh.format(**{key: _in(value, "zh") for key, value in values.items()}),
        )

    def __add__(self, other: Text) -> Text:
        return Text(self.en + other.en, self.zh + other.zh)

    def say(self, language: Language) -> str:
        return self.zh if language == "zh" else self.en


def _in(value: Any, language: Language) -> Any:
    return value.say(language) if isinstance(value, Text) else value


def same(words: str) -> Text:
    """A text that is alike in both languages: code, names, numbers."""
    return Text(words, words)


EMPTY = same("")


def number(value: float, digits: int = 3) -> str:
    """A number as people write it: 0.00123 -> 0.00123, 1234567.0 -> 1.23e+06, 12.0 -> 12."""
    if isinstance(value, int) or (value == value and abs(value) < 1e5 and float(value).is_integer()):
        return str(int(value))
    return f"{value:.{digits}g}"


def language_from(setting: str | None = None) -> Language:
    """The language to speak: the setting if given, else the locale's, else English."""
    if setting in LANGUAGES:
        return setting  # type: ignore[return-value]
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := os.environ.get(name):
            return "zh" if value.lower().startswith("zh") else "en"
    return "zh" if (locale.getlocale()[0] or "").lower().startswith(("zh", "chinese")) else "en"
