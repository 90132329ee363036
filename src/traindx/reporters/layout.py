"""Plain text in columns: how wide it is, how it wraps. A Chinese character takes two columns, and may end a line."""
from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_CLOSING = "，。、；：！？）」』】》”’%…)]},.;:!?"  # never begins a line
_OPENING = "（「『【《“‘([{"  # never ends one
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def width(text: str) -> int:
    """Columns on a terminal; colour codes take none."""
    text = _ANSI.sub("", text)
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(letter: str) -> int:
    if letter.isascii():
        return 1
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def pad(text: str, columns: int) -> str:
    return text + " " * max(0, columns - width(text))


def printable(text: str) -> str:
    """Without control characters: a value from the user's program must not steer the terminal."""
    return _CONTROL.sub("�", text.replace("\t", "    "))


def cut(text: str, columns: int) -> str:
    """``text`` on one line of at most so many columns, "…" where something went."""
    text = printable(text.replace("\n", " "))
    if width(text) <= columns:
        return text
    taken = 0
    for at, letter in enumerate(text):
        taken += _columns(letter)
        if taken > columns - 1:
            return text[:at] + "…"
    return text


def wrap(text: str, columns: int, first: str = "", rest: str | None = None) -> list[str]:
    """Lines of at most ``columns`` columns, the first led by ``first``, the others by ``rest`` (else blanks)."""
    rest = " " * width(first) if rest is None else rest
    lines, line, empty = [], first, True
    for blank, unit in _units(text):
        space = " " if blank and not empty else ""
        if (not empty or first.strip()) and line != rest and width(line) + len(space) + width(unit) > columns:
            lines.append(line)
            line, space = rest, ""
        for part in _broken(unit, columns - width(line) - len(space), columns - width(rest)):
            if part is None:
                lines.append(line)
                line = rest
            else:
                line += space + part
            space = ""
        empty = False
    return [*lines, line]


def wrap_code(line: str, columns: int) -> list[str]:
    """A line of Python on several where it is too wide, broken behind commas inside its brackets: still one statement to paste."""
    first, *others = re.split(r"(?<=,) ", line)
    rest = " " * (first.find("(") + 1)
    lines = [first]
    for part in others if rest else ():
        if width(lines[-1]) + 1 + width(part) <= columns:
            lines[-1] += f" {part}"
        else:
            lines.append(rest + part)
    return lines if rest else [line]


def _broken(unit: str, room: int, columns: int) -> Iterable[str | None]:
    """A unit that is longer than a whole line, in pieces; None between them stands for a line break."""
    while width(unit) > max(room, 1):
        taken, at = 0, 0
        while at < len(unit) and taken + _columns(unit[at]) <= max(room, 2):
            taken += _columns(unit[at])
            at += 1
        yield unit[:at]
        yield None
        unit, room = unit[at:], columns
    yield unit


def _units(text: str) -> Iterable[tuple[bool, str]]:
    """What may not be broken (a word; a wide letter and what clings to it), and whether a blank came before."""
    for index, word in enumerate(text.split()):
        unit = ""
        blank = index > 0
        for letter in word:
            if unit and _may_break(unit[-1], letter):
                yield blank, unit
                unit, blank = "", False
            unit += letter
        yield blank, unit


def _may_break(before: str, after: str) -> bool:
    if after in _CLOSING or before in _OPENING:
        return False
    return _columns(before) == 2 or _columns(after) == 2


def reflow(text: str) -> list[str]:
    """Paragraphs of a docstring: lines joined, but indented lines (code) and blank lines left as they are."""
    out: list[str] = []
    for line in text.splitlines():
        code = line.startswith((" ", "\t"))
        after_words = out and out[-1] and not out[-1].startswith((" ", "\t"))
        if after_words and line.strip() and not code:
            tight = _columns(out[-1][-1]) == 2 or _columns(line.strip()[0]) == 2
            out[-1] += ("" if tight else " ") + line.strip()
        else:
            out.append(line.rstrip())
    return out
