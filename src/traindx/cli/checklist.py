"""``traindx checklist [RUN]``: the twenty items, ticked by evidence, the rest admitted."""
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindx.checklist import words
from traindx.core.text import Language, language_from
from traindx.errors import UsageError, reason

if TYPE_CHECKING:
    from traindx.checklist.judging import Item

ABOUT = words.ABOUT
DETAILS = words.DETAILS
NOT_ALL_TICKED = 1


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option
    from traindx.runs.words import OPT_DIR
    for option, text in (("--json", words.OPT_JSON), ("--html", words.OPT_HTML), ("--markdown", words.OPT_MARKDOWN), ("--exam", words.OPT_EXAM)):
        parser.add_argument(option, metavar="FILE", help=text.say(language))
    parser.add_argument("--strict", action="store_true", help=words.OPT_STRICT.say(language))
    parser.add_argument("--answer", metavar="N=TEXT", action="append", default=[], help=words.OPT_ANSWER.say(language))
    parser.add_argument("--no-ask", action="store_true", help=words.OPT_NO_ASK.say(language))
    parser.add_argument("--runs-dir", metavar="DIR", help=OPT_DIR.say(language))
    add_language_option(parser, language)
    parser.add_argument("run", metavar="RUN", nargs="?", default="last", help=words.OPT_RUN.say(language))


def run(options: argparse.Namespace) -> int:
    from traindx.checklist.evidence import gather, keep_answers, keep_exam
    from traindx.checklist.judging import judge, not_done
    from traindx.config import settings_from
    from traindx.reporters.progress import reading
    from traindx.runs import notes
    from traindx.runs.reading import find
    settings = settings_from({"runs_dir": options.runs_dir, "lang": options.lang}, Path.cwd())
    language, folder = language_from(settings.lang), Path(settings.runs_dir)
    answers = answers_in(options.answer)
    found = find(folder, options.run, reading(language))
    exam = _exam(options.exam, str(found.fields.get("script")))
    if not answers and not options.no_ask and options.json != "-" and notes.can_ask():
        answers = ask(judge(gather(found, folder, exam)), language)
    try:
        if answers:
            keep_answers(found, answers, date.today().isoformat())
        if exam is not None:
            keep_exam(found, exam)
        items = judge(gather(found, folder, exam))
        notes.add_not_done(found.path, not_done(items))
    except OSError:
        items = judge(gather(found, folder, exam))  # a record that may only be read
    _say(items, found.name, options, language)
    return NOT_ALL_TICKED if options.strict and any(item.state != "ticked" for item in items) else 0


def _say(items: list[Item], name: str, options: argparse.Namespace, language: Language) -> None:
    from traindx.checklist import report
    from traindx.reporters.style import columns_of, style_for
    text = json.dumps(report.document(items, language), ensure_ascii=False, indent=1) + "\n"
    if options.json == "-":
        sys.stdout.write(text)
    else:
        print("\n".join(report.terminal(items, name, language, style_for(sys.stdout), columns_of(sys.stdout))))
        _write(options.json, lambda: text)
    _write(options.html, lambda: report.html(items, name, language))
    _write(options.markdown, lambda: report.markdown(items, name, language))


def _write(file: str | None, text: Callable[[], str]) -> None:
    from traindx.runs.words import CANNOT_WRITE
    if file is None:
        return
    try:
        Path(file).write_text(text(), encoding="utf-8", errors="backslashreplace")
    except OSError as problem:
        raise UsageError(CANNOT_WRITE.fill(file=file, problem=reason(problem))) from None


def answers_in(given: Sequence[str]) -> dict[int, str]:
    """``["17=as in the paper"]`` -> {17: "as in the paper"}. Raises UsageError."""
    found = {}
    for word in given:
        number, equals, text = word.partition("=")
        if not equals or not number.strip().isdigit() or not 1 <= int(number) <= 20 or not text.strip():
            raise UsageError(words.BAD_ANSWER.fill(word=word))
        found[int(number)] = text.strip().strip("'\"")
    return found


def ask(items: Sequence[Item], language: Language, answer: Callable[[], str] = input) -> dict[int, str]:
    """The items that only a person can know and that are still open; on stderr."""
    from traindx.checklist.judging import ASKED, titled
    still_open = [item for item in items if item.item in ASKED and item.state == "not-done"]
    found: dict[int, str] = {}
    if not still_open:
        return found
    print(words.ASK.say(language), file=sys.stderr)
    try:
        for item in still_open:
            print(f"  {titled(item).say(language)}: ", end="", file=sys.stderr, flush=True)
            if reply := answer().strip():
                found[item.item] = reply
    except (KeyboardInterrupt, EOFError):
        print(file=sys.stderr)
    return found


def _exam(file: str | None, script: str) -> Mapping[str, Any] | None:
    """Raises UsageError for what is no exam of this script."""
    from traindx.runs.reading import read_json
    if file is None:
        return None
    found = read_json(Path(file))
    if "steps" not in found:
        raise UsageError(words.BAD_EXAM.fill(file=file))
    if found.get("script") != script:
        raise UsageError(words.OTHER_EXAM.fill(file=file, other=found.get("script"), script=script))
    return found
