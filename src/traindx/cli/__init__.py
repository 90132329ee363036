"""The command line: one file per command, each with ``ABOUT``, ``prepare_parser`` and ``run``.

Errors are caught once, here.
"""
from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from traindx import __version__, messages, usage
from traindx.core.text import LANGUAGES, Language, language_from
from traindx.errors import UsageError

COMMANDS = (
    "run",
    "exam",
    "memory",
    "speed",
    "shapes",
    "data",
    "env",
    "ask",
    "explain",
    "rules",
    "runs",
    "checklist",
    "new",
    "studio",
)
BAD_USAGE = 2
ALONE = ("exam", "memory", "shapes", "data", "speed")  # run the script as one process


class Parser(argparse.ArgumentParser):
    """argparse whose complaints end in our own words.

    Options are never abbreviated, for a new option must not change the meaning of old commands.
    """

    def __init__(self, language: Language = "en", **settings: Any) -> None:
        super().__init__(**{"formatter_class": usage.formatter(language), **settings, "allow_abbrev": False, "add_help": False})
        self._positionals.title, self._optionals.title = usage.POSITIONALS.say(language), usage.OPTIONS.say(language)
        self.language = language
        self.add_argument("-h", "--help", action="help", help=messages.OPT_HELP.say(language))

    def format_help(self) -> str:
        return usage.with_full_width_colons(super().format_help(), self.language)

    def error(self, message: str) -> NoReturn:
        raise UsageError(messages.BAD_USAGE.fill(problem=usage.complaint(message), command=self.prog))


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    language = language_asked(words)
    _survive_narrow_encodings()
    try:
        return _run(words, language)
    except UsageError as problem:
        sys.stderr.write(f"{messages.SAYS.fill(what=problem.text).say(language)}\n")
        return BAD_USAGE
    except BrokenPipeError:  # `traindx rules | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _run(words: list[str], language: Language) -> int:
    parser = build_parser(language, words[:1])
    if not words:
        parser.print_help(sys.stderr)
        return BAD_USAGE
    options = parser.parse_args(words)
    _refuse_ranks(words[0])
    status: int = options.command_run(options)
    sys.stdout.flush()
    return status


def _refuse_ranks(command: str) -> None:
    """Raises UsageError where a launcher starts several of what can only be one."""
    if command in ALONE and "RANK" in os.environ:
        from traindx.ranks import place_from
        if (place := place_from(os.environ)) is not None:
            raise UsageError(messages.ONE_PROCESS_ONLY.fill(command=command, world=place.world))


def build_parser(language: Language, asked: Sequence[str] = ()) -> Parser:
    """The parser of the command asked for, else of every one: importing all of them takes longer than a short answer may.

    The commands import what they need when they run.
    """
    parser = Parser(prog=messages.NAME, language=language, description=messages.ABOUT.say(language))
    version = f"{messages.NAME} {__version__}"
    parser.add_argument("--version", action="version", version=version, help=messages.OPT_VERSION.say(language))
    commands = parser.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for name in [name for name in COMMANDS if name in asked] or COMMANDS:
        module = importlib.import_module(f"{__name__}.{name}")
        details = getattr(module, "DETAILS", module.ABOUT).say(language)
        sub = commands.add_parser(name, language=language, help=module.ABOUT.say(language), description=details)
        module.prepare_parser(sub, language)
        sub.set_defaults(command_run=module.run)
    return parser


def add_language_option(parser: argparse.ArgumentParser, language: Language) -> None:
    parser.add_argument("--lang", choices=LANGUAGES, help=messages.OPT_LANG.say(language))


def language_asked(words: Sequence[str]) -> Language:
    """The language of our own messages, before the arguments are parsed: ``--lang``, else the locale's."""
    for word, following in zip(words, [*words[1:], ""]):
        if word == "-m" or word.endswith(".py"):
            break  # what follows is the script's
        if word == "--lang":
            return language_from(following)
        if word.startswith("--lang="):
            return language_from(word.removeprefix("--lang="))
    return language_from()


def _survive_narrow_encodings() -> None:
    """A terminal that cannot show a letter gets a substitute, never an exception."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")

if __name__ == "__main__":
    sys.exit(main())
