"""How a stream may be written to: in colour or not, and how wide."""
from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import Any

COLUMNS = 80
NARROWEST = 50


@dataclass(frozen=True)
class Style:
    """Colours, or none."""

    on: bool = False

    def paint(self, text: str, *codes: int) -> str:
        return f"\x1b[{';'.join(map(str, codes))}m{text}\x1b[0m" if self.on and text else text

    def level(self, text: str, level: str) -> str:
        return self.paint(text, 1, {"error": 31, "warning": 33, "note": 36}[level])

    def strong(self, text: str) -> str:
        return self.paint(text, 1)

    def faint(self, text: str) -> str:
        return self.paint(text, 2)


PLAIN = Style()


def style_for(stream: Any) -> Style:
    """Colour on a terminal only; NO_COLOR (https://no-color.org) and TERM=dumb turn it off."""
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Style(not plain and _is_terminal(stream))


def columns_of(stream: Any) -> int:
    """80, or less on a narrower terminal."""
    if not _is_terminal(stream):
        return COLUMNS
    return max(NARROWEST, min(COLUMNS, shutil.get_terminal_size((COLUMNS, 24)).columns))


def _is_terminal(stream: Any) -> bool:
    return bool(getattr(stream, "isatty", lambda: False)())
