"""One run as an HTML page that opens from disk: what ran, its findings, the six monitors, its settings, what was concluded."""
from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from traindx import __version__, messages
from traindx.core.text import Language, Text, same
from traindx.figures import Chart
from traindx.figures.run import Noted, readings
from traindx.figures.svg import svg
from traindx.reporters.exam_words import VERDICTS
from traindx.reporters.html import both, curve_as_html, page_of
from traindx.reporters.layout import printable
from traindx.reporters.overlay import HEIGHT, WIDTH
from traindx.runs import exams, words
from traindx.runs.comparing import mapping, rows_of
from traindx.runs.reading import Run, as_count
from traindx.runs.showing import conclusion, config, facts, named

Rows = Iterable[tuple[Text, Text]]


def render(run: Run, report: dict[str, Any], language: Language, runs_dir: Path) -> str:
    """``report`` is the run's ``report.json``, {} where there is none. Texts of a record are escaped, nothing in them is trusted."""
    exam = exams.exam_of(run, runs_dir)
    title = same(f"{messages.NAME} {printable(run.name)}")
    said = "".join(f'<p class="remark">{both(remark)}</p>' for remark in run.remarks())
    parts = (f"<header><h1><b>{messages.NAME}</b> {escape(printable(run.name))}</h1></header>", said, _list(facts(run, report)),
             _findings(report, exams.proved(report, exam)), _withdrawn(exams.withdrawn(report, exam)), _curves(run, report),
             _exam(exam, report), _section(words.CONFIG, named(config(run))), _section(words.CONCLUSION, conclusion(run)),
             f"<footer>{messages.NAME} {__version__}</footer>")
    return page_of(title, "\n".join(parts), language)


def numbered(report: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """The findings that are causes, by the numbers they have on the page and in the curves."""
    return list(enumerate((finding for finding in rows_of(report.get("findings")) if not finding.get("explained_by")), 1))


def noted(report: dict[str, Any]) -> list[Noted]:
    """The same as marks on the time axis."""
    return [Noted(number, as_count(finding.get("first_step")), str(finding.get("rule")), str(finding.get("level")))
            for number, finding in numbered(report)]


def _curves(run: Run, report: dict[str, Any]) -> str:
    series = {printable(name): points for name, points in run.measured.series.items()}
    pictures = "".join(map(curve_as_html, readings(series, noted(report))))
    shown = f'<div class="curves">{pictures}</div>' if pictures else f"<p>{both(messages.HTML_NO_CURVES)}</p>"
    return f"<h2>{both(messages.HTML_CURVES)}</h2>{shown}"


def _findings(report: dict[str, Any], proved: Mapping[str, exams.Tried]) -> str:
    found = "".join(_finding(number, finding, proved.get(str(finding.get("rule")))) for number, finding in numbered(report))
    return f"<h2>{both(messages.HTML_FINDINGS)}</h2>{found}" if found else ""


def _finding(number: int, finding: dict[str, Any], tried: exams.Tried | None) -> str:
    """In the language in which the report was written."""
    level = str(finding.get("level"))
    level = level if level in messages.LEVEL else "note"
    where = mapping(finding.get("where"))
    place = f'<p class="place">{_clean(where.get("file"))}:{_clean(where.get("line"))} {_clean(where.get("code"))}</p>' if where else ""
    said = f'<span class="level">{both(messages.LEVEL[level])}</span> <code>{_clean(finding.get("rule"))}</code>'
    head = f"<h3>{number} {said} {_clean(finding.get('title'))}</h3>"
    rows = "".join(f"<dt>{both(name)}</dt><dd>{_clean(finding[key])}</dd>" for key, name in (("cause", messages.CAUSE), ("fix", messages.FIX))
                   if finding.get(key))
    return f'<article class="{level}">{head}{place}<dl>{rows}</dl>{_tried(tried) if tried else ""}</article>'


# -- what experiments said ------------------------------------------------------------------------------------------------

def _tried(tried: exams.Tried) -> str:
    """Outcome, reason and the curves before and after the change."""
    return f"<p><b>{both(messages.PROOF)}</b> {both(_printable(exams.said_of(tried)))}</p>{_picture(tried.chart)}"


def _picture(chart: Chart | None) -> str:
    return f"<figure>{svg(chart, WIDTH, HEIGHT)}</figure>" if chart is not None else ""


def _withdrawn(refuted: Iterable[exams.Tried]) -> str:
    shown = "".join(f"<article><h3><code>{_clean(tried.rule)}</code></h3>{_tried(tried)}</article>" for tried in refuted)
    return f"<h2>{both(messages.REFUTED)}</h2>{shown}" if shown else ""


def _exam(exam: exams.Exam | None, report: dict[str, Any]) -> str:
    if exam is None or not exam.steps:
        return ""
    above = {str(finding.get("rule")) for _, finding in numbered(report)}
    return f"<h2>{both(words.EXAM)} <small>{_clean(exam.date)}</small></h2>" + "".join(_step(step, above) for step in exam.steps)


def _step(step: exams.Step, above: Container[str]) -> str:
    """Experiments on the findings that stand ``above`` are told there."""
    tried = "".join(f"<p><code>{_clean(one.rule)}</code></p>{_tried(one)}" for one in step.tried if one.rule not in above)
    head = f"<h3>{both(step.title)} · {both(VERDICTS[step.verdict])}</h3><p>{both(_printable(step.why))}</p>"
    return f"<section>{head}{_picture(step.chart)}{tried}</section>"


def _clean(value: Any) -> str:
    return escape(printable("" if value is None else str(value)))


def _section(title: Text, rows: Rows) -> str:
    shown = _list(rows)
    return f"<h2>{both(title)}</h2>{shown}" if shown else ""


def _list(rows: Rows) -> str:
    items = "".join(f"<dt>{both(_printable(name))}</dt><dd>{both(_printable(text))}</dd>" for name, text in rows)
    return f"<dl>{items}</dl>" if items else ""


def _printable(text: Text) -> Text:
    return Text(printable(text.en), printable(text.zh))
