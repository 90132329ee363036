"""``traindx env``: is this machine, and its lock file, sound?"""
from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from traindx import messages
from traindx.core.text import Language, language_from
from traindx.env import words
from traindx.errors import UsageError, reason

ABOUT = words.ABOUT
DETAILS = words.DETAILS
BROKEN = 1


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option
    parser.add_argument("--json", metavar="FILE", help=words.OPT_JSON.say(language))
    parser.add_argument("--snapshot", metavar="FILE", help=words.OPT_SNAPSHOT.say(language))
    parser.add_argument("--lock", metavar="FILE", help=words.OPT_LOCK.say(language))
    add_language_option(parser, language)


def run(options: argparse.Namespace) -> int:
    from traindx.core.codec import encode
    from traindx.env.gather import gather
    from traindx.env.judging import is_sound, problems
    from traindx.env.report import document, render
    from traindx.reporters.style import columns_of, style_for
    if options.lock and not Path(options.lock).is_file():
        raise UsageError(words.NO_SUCH_LOCK.fill(file=options.lock))
    language = language_from(options.lang)
    facts = gather(Path.cwd(), Path(options.lock) if options.lock else None)
    found = problems(facts)
    if options.snapshot:
        _write(options.snapshot, json.dumps(encode(facts), ensure_ascii=False, indent=1) + "\n", "--snapshot")
    text = json.dumps(document(facts, found, language), ensure_ascii=False, indent=1) + "\n"
    if options.json == "-":
        sys.stdout.write(text)
        return 0 if is_sound(found) else BROKEN
    if options.json:
        _write(options.json, text, "--json")
    sys.stdout.write(render(facts, found, language, style_for(sys.stdout), columns_of(sys.stdout)))
    return 0 if is_sound(found) else BROKEN


def _write(file: str, text: str, option: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise UsageError(messages.CANNOT_WRITE.fill(option=option, file=file, problem=reason(problem))) from None
