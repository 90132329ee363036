"""``traindx explain RULE``: the rule's page in the terminal."""
from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from traindx import messages
from traindx.core.text import EMPTY, Language, language_from
from traindx.errors import UsageError

if TYPE_CHECKING:
    from traindx.core.rules import Rule
    from traindx.reporters.style import Style

ABOUT = messages.EXPLAIN_ABOUT
MARK = "# expect:"
AROUND = 4  # lines of the faulty program shown before and after the guilty one


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option
    add_language_option(parser, language)
    parser.add_argument("rule", metavar="RULE", help=messages.OPT_RULE.say(language))


def run(options: argparse.Namespace) -> int:
    from traindx.reporters.style import columns_of, style_for
    language = language_from(options.lang)
    rule = rule_named(options.rule)
    print("\n".join(page(rule, language, style_for(sys.stdout), columns_of(sys.stdout))))
    return 0


def rule_named(name: str) -> Rule:
    """A rule by its name, or by its slug where only one has it. Raises UsageError, with the nearest names."""
    from traindx.core.rules import all_pages
    rules = all_pages()
    if name in rules:
        return rules[name]
    same_slug = [full for full in rules if full.split("/")[1] == name]
    if len(same_slug) == 1:
        return rules[same_slug[0]]
    if same_slug:
        raise UsageError(messages.RULE_AMBIGUOUS.fill(pattern=name, names=", ".join(same_slug)))
    import difflib
    near = difflib.get_close_matches(name, rules, n=3, cutoff=0.4)
    hint = messages.HINT_NEAR.fill(near=", ".join(near)) if near else EMPTY
    raise UsageError(messages.UNKNOWN_RULE.fill(pattern=name, near=hint))


def page(rule: Rule, language: Language, style: Style, columns: int) -> Iterator[str]:
    """The page's lines: title, sections, and the guilty lines of the small faulty program."""
    from traindx.reporters.layout import reflow, wrap
    text = rule.page(language)
    yield from (style.strong(line) for line in wrap(text.title, columns, f"{rule.name}  "))
    yield style.level(head(rule, language), rule.level)
    for heading, body in text.sections.items():
        yield ""
        yield style.strong(heading)
        for line in reflow(body.replace("``", "`")):
            yield from [f"  {line}".rstrip()] if not line or line.startswith(" ") else wrap(line, columns, "  ")
    if rule.explains:
        yield ""
        yield style.strong(messages.EXPLAIN_EXPLAINS.say(language))
        yield from wrap(", ".join(rule.explains), columns, "  ")
    yield ""
    yield style.strong(messages.EXPLAIN_BAD.say(language))
    yield from guilty_lines(rule.source_of("bad"), style)


def head(rule: Rule, language: Language) -> str:
    """Level and step, and the command where that is not ``run``."""
    from traindx.core.rules import RUN
    said = messages.EXPLAIN_HEAD.fill(level=messages.LEVEL[rule.level].say(language), step=rule.step)
    return (said if rule.judged_by == RUN else said + messages.EXPLAIN_BY.fill(command=rule.judged_by)).say(language)


def guilty_lines(source: str, style: Style) -> Iterator[str]:
    """The marked line of ``bad.py`` with those around it."""
    lines = source.splitlines()
    marked = next((at for at, line in enumerate(lines) if MARK in line), 0)
    for at in range(max(0, marked - AROUND), min(len(lines), marked + AROUND + 1)):
        code = lines[at].split(MARK)[0].rstrip()
        line = f"{'>' if at == marked else ' '} {at + 1:3}  {code}".rstrip()
        yield style.level(line, "error") if at == marked else line
