"""The checklist on a terminal, as JSON (CONTRACTS "checklist"), Markdown and HTML."""
from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from traindx.checklist import words
from traindx.checklist.judging import Item, tally, titled
from traindx.core.text import Language
from traindx.reporters.layout import printable, wrap
from traindx.reporters.style import Style

MARKS = {"ticked": "[x]", "failed": "[!]", "not-done": "[ ]"}
COLOURS = {"failed": "error", "not-done": "warning"}
STYLE = """:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}body{max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse}td,th{padding:.3rem .6rem;text-align:left;vertical-align:top;border-bottom:1px solid #8884}
.failed{color:#d1495b}.ticked{color:#2e9e6b}code{font-size:.9em}"""


def document(items: list[Item], language: Language) -> list[dict[str, Any]]:
    return [{"item": item.item, "title": item.title.say(language), "state": item.state, "evidence": item.evidence.say(language),
             "settle": item.settle} for item in items]


def terminal(items: list[Item], name: str, language: Language, style: Style, columns: int) -> Iterator[str]:
    yield style.strong(printable(words.TITLE.fill(run=name).say(language)))
    for item in items:
        if item.item in words.GROUPS:
            yield ""
            yield style.strong(words.GROUPS[item.item].say(language))
        mark = MARKS[item.state]
        first, *rest = wrap(printable(titled(item).say(language)), columns, f"  {mark} ", " " * 6)
        yield style.level(first, COLOURS[item.state]) if item.state in COLOURS else style.paint(first, 32)
        yield from rest
        yield from (style.faint(line) for line in wrap(printable(item.evidence.say(language)), columns, " " * 6))
        if item.settle:
            yield from (style.faint(line) for line in wrap(f"-> {printable(item.settle)}", columns, " " * 6))
    yield ""
    yield from wrap(tally(items).say(language), columns)


def markdown(items: list[Item], name: str, language: Language) -> str:
    """GitHub's task list: a box that is not ticked says why."""
    lines = [f"### {_md(words.TITLE.fill(run=name).say(language))}", ""]
    for item in items:
        box = "[x]" if item.state == "ticked" else "[ ]"
        state = "" if item.state == "ticked" else f" **{words.STATES[item.state].say(language)}**"
        settle = f" `{printable(item.settle).replace('`', '')}`" if item.settle else ""
        lines.append(f"- {box} {_md(titled(item).say(language))}{state}: {_md(item.evidence.say(language))}{settle}")
    return "\n".join([*lines, "", _md(tally(items).say(language))]) + "\n"


def _md(text: str) -> str:
    """Text that stays text: no HTML, no links, no line of its own."""
    out = printable(text).replace("\n", " ")
    for letter in "\\`*_[]<>|":
        out = out.replace(letter, f"\\{letter}")
    return out


def _row(item: Item, language: Language) -> str:
    cells = (titled(item).say(language), words.STATES[item.state].say(language), item.evidence.say(language))
    shown = "".join(f"<td>{escape(printable(cell))}</td>" for cell in cells)
    return f'<tr class="{item.state}">{shown}<td><code>{escape(printable(item.settle))}</code></td></tr>'


def html(items: list[Item], name: str, language: Language) -> str:
    head = "".join(f"<th>{escape(text.say(language))}</th>" for text in words.HEADS)
    rows = "".join(_row(item, language) for item in items)
    title = escape(printable(words.TITLE.fill(run=name).say(language)))
    return (f'<!doctype html><html lang="{"zh-CN" if language == "zh" else "en"}"><meta charset="utf-8"><title>{title}</title>'
            f"<style>{STYLE}</style><h1>{title}</h1><p>{escape(tally(items).say(language))}</p><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></html>\n")

