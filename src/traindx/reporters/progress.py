"""A line on stderr that is written over while something takes long, on a terminal only."""
from __future__ import annotations

import sys
from collections.abc import Callable

from traindx.core.text import Language, Text

READING = Text("reading the curves: {percent} %", "正在读取曲线：{percent} %")
CLEAR = "\r\x1b[K"


def line(language: Language) -> Callable[[Text], None]:
    def show(text: Text) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"{CLEAR}traindx: {text.say(language)}")
            sys.stderr.flush()
    return show


def reading(language: Language) -> Callable[[float], None]:
    """Told the share that has been read; the line is gone when all has."""
    tell = line(language)

    def show(share: float) -> None:
        if share < 1:
            tell(READING.fill(percent=int(100 * share)))
        elif sys.stderr.isatty():
            sys.stderr.write(CLEAR)
            sys.stderr.flush()
    return show
