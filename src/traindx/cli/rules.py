"""``traindx rules``: every rule, by family."""
from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from traindx import messages
from traindx.core.text import Language, Text, language_from

if TYPE_CHECKING:
    from traindx.core.rules import Rule

ABOUT = messages.RULES_ABOUT


def prepare_parser(parser: argparse.ArgumentParser, language: Language) -> None:
    from traindx.cli import add_language_option
    parser.add_argument("--json", action="store_true", help=messages.OPT_RULES_JSON.say(language))
    add_language_option(parser, language)


def run(options: argparse.Namespace) -> int:
    language = language_from(options.lang)
    if options.json:
        print(json.dumps(rows(language), ensure_ascii=False, indent=1))
    else:
        print("\n".join(listing(language)))
    return 0


def rows(language: Language) -> list[dict[str, Any]]:
    from traindx.core.rules import all_pages
    return [{"rule": rule.name, "level": rule.level, "step": rule.step, "title": rule.title.say(language),
             "explains": list(rule.explains), "experiment": rule.experiment, "judged_by": rule.judged_by} for rule in all_pages().values()]


def listing(language: Language) -> list[str]:
    from traindx.core.rules import all_pages
    from traindx.reporters.layout import pad, width, wrap
    from traindx.reporters.style import columns_of, style_for
    style, columns = style_for(sys.stdout), columns_of(sys.stdout)
    rules = list(all_pages().values())
    names = max(width(rule.name) for rule in rules) + 4
    levels = max(width(text.say(language)) for text in messages.LEVEL.values()) + 2
    lines: list[str] = []
    for previous, rule in zip([None, *rules], rules):
        if previous is not None and previous.family != rule.family:
            lines.append("")
        level = messages.LEVEL[rule.level].say(language)
        lead = "  " + pad(rule.name, names - 2) + pad(level, levels)
        first, *rest = wrap(title(rule).say(language), columns, lead)
        lines += [first.replace(level, style.level(level, rule.level), 1), *rest]
    return [*lines, "", messages.RULES_FOOT.fill(count=len(rules)).say(language)]


def title(rule: Rule) -> Text:
    """With the command that judges it, where that is not ``run``."""
    from traindx.core.rules import RUN
    return rule.title if rule.judged_by == RUN else rule.title + messages.RULES_BY.fill(command=rule.judged_by)
