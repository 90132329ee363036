"""notes.md: three named lines (best, failed hypothesis, next) and, below them, whatever the user likes."""
from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Callable, Mapping
from errno import EINVAL
from pathlib import Path

from traindx.core.text import Language
from traindx.runs import words

LINES = tuple(words.LINES)
FILE = "notes.md"
NOT_DONE = "not done"
PATIENCE = 60.0  # seconds that a question at the end of a run waits for
_HEAD = re.compile(rf"^({'|'.join(LINES)}):[ \t]*(.*)$")


def read(folder: Path) -> dict[str, str]:
    """The three lines, "" where one is empty."""
    try:
        text = _text(folder / FILE)
    except OSError:
        text = ""
    found = dict.fromkeys(LINES, "")
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head:
            found[head[1]] = head[2].strip()
    return found


def _text(file: Path) -> str:
    """Raises OSError for what is there and is no file: a pipe would never end."""
    if not file.exists():
        return ""
    if not file.is_file():
        raise OSError(EINVAL, os.strerror(EINVAL), str(file))
    return file.read_text(encoding="utf-8", errors="replace")


def is_concluded(lines: Mapping[str, str]) -> bool:
    return all(lines.get(name) for name in LINES)


def write(folder: Path, new: Mapping[str, str]) -> None:
    """Replaces the named lines; everything else in the file stays as it is. Raises OSError."""
    from traindx.runs.folder import write_text
    file = folder / FILE
    old = _text(file).splitlines()
    kept = [line for line in old if not ((head := _HEAD.match(line)) and head[1] in LINES)]
    lines = read(folder) | {name: " ".join(text.split()) for name, text in new.items()}
    write_text(file, "".join(f"{line}\n" for line in [*(f"{name}: {lines[name]}".rstrip() for name in LINES), *kept]))


def add_not_done(folder: Path, items: list[str]) -> None:
    """What the checklist could not tick, below the conclusion: “not done” is safer than pretended. Raises OSError."""
    from traindx.runs.folder import write_text
    file = folder / FILE
    text = _text(file)
    text = text.split(f"\n{NOT_DONE}:\n")[0].rstrip("\n") + "\n"
    write_text(file, text + (f"\n{NOT_DONE}:\n" + "".join(f"- {item}\n" for item in items) if items else ""))


def can_ask() -> bool:
    """Whether somebody sits at a terminal, and the terminal is ours."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def patiently(seconds: float = PATIENCE) -> str:
    """A line from the terminal; EOFError where nobody begins to type within ``seconds``: a chain of runs must not wait all night."""
    if os.name == "posix" and not select.select([sys.stdin], [], [], seconds)[0]:
        raise EOFError
    return input()


def ask(language: Language, answer: Callable[[], str] = input) -> dict[str, str]:
    """Three questions on stderr; what was left out is not in the answer."""
    said = {}
    print(words.ASK.say(language), file=sys.stderr)
    try:
        for name, text in words.LINES.items():
            print(f"  {text.say(language)}: ", end="", file=sys.stderr, flush=True)
            reply = answer().strip()
            if reply:
                said[name] = reply
    except (KeyboardInterrupt, EOFError):
        print(file=sys.stderr)
    return said
