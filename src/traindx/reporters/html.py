"""The report as one HTML page that opens from disk: both languages in it, curves as inline SVG, nothing fetched."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path

from traindx import __version__, messages
from traindx.core.findings import Evidence, Judged, Proof, Report
from traindx.core.observed import Site
from traindx.core.text import Language, Text, same
from traindx.figures.run import Noted, Reading, readings
from traindx.figures.svg import svg
from traindx.reporters import words
from traindx.reporters.overlay import overlay

AROUND = 3  # lines of code before and after the guilty one
PAGE = Path(__file__).with_name("page.html")


def render(report: Report, language: Language, folder: Path | None = None) -> str:
    """``folder`` is where the script ran: file names of the findings are relative to it."""
    title = messages.HTML_TITLE.fill(script=report.script)
    return page_of(title, body(report, folder or Path()), language)


def page_of(title: Text, content: str, language: Language) -> str:
    """A whole page around ``content``, which holds both languages."""
    fills = {"LANGUAGE": "zh-CN" if language == "zh" else "en", "WHICH": language, "TITLE": escape(title.say(language)),
             "SWITCH": both(messages.HTML_OTHER_LANGUAGE), "BODY": content}
    page = PAGE.read_text(encoding="utf-8")
    for name, value in fills.items():
        page = page.replace(f"@@{name}@@", value)
    return page


def body(report: Report, folder: Path) -> str:
    """The page's content, without head and script: also what a notebook shows."""
    return "\n".join((_head(report), *_findings(report, folder), *_remarks(report), _curves(report), _verdicts(report),
                      _foot(report)))


def both(text: Text) -> str:
    """A text in both languages, one of them shown."""
    if text.en == text.zh:
        return escape(text.en)
    return f'<span class="en" lang="en">{escape(text.en)}</span><span class="zh" lang="zh-CN">{escape(text.zh)}</span>'


def _head(report: Report) -> str:
    ended = " · ".join(both(part) for part in words.how_it_ended(report))
    return f'<header><h1><b>traindx</b> {escape(report.script)}</h1><p class="ended">{ended}</p></header>'


def _findings(report: Report, folder: Path) -> Iterator[str]:
    found = [*words.causes(report), *words.notes(report)]
    yield f"<h2>{both(messages.HTML_FINDINGS)}</h2>"
    if not words.causes(report):
        yield f'<p class="fine">{both(messages.NOTHING_FOUND)}</p>'
    for number, judged in enumerate(found, 1):
        yield finding_as_html(judged, number, report, folder, proof_as_html(report.proofs.get(judged.rule)))


def finding_as_html(judged: Judged, number: int, report: Report, folder: Path, after: str = "") -> str:
    """One finding as an ``<article>``; ``after`` is put at its end."""
    finding = judged.finding
    level = f'<span class="level">{both(messages.LEVEL[judged.level])}</span>'
    title = f"<h3>{number} {level} <code>{escape(judged.rule)}</code> {both(judged.title)}</h3>"
    facts = "".join(f"<dt>{both(label)}</dt><dd>{value}</dd>" for label, value in _facts(judged, report))
    return (f'<article class="{judged.level}" id="finding-{number}">{title}{_code(finding.where, folder)}'
            f"<dl>{facts}</dl>{evidence_table(finding.evidence)}{after}</article>")


def proof_as_html(proof: Proof | None) -> str:
    """Outcome, reason and the curves that decided."""
    if proof is None:
        return ""
    picture = overlay(proof.curves)
    return f"<p><b>{both(messages.PROOF)}</b> {both(words.proof_of(proof))}</p>" + (f"<figure>{picture}</figure>" if picture else "")


def _facts(judged: Judged, report: Report) -> Iterator[tuple[Text, str]]:
    finding = judged.finding
    yield messages.CAUSE, both(finding.cause)
    yield messages.FIX, both(finding.fix)
    if finding.also:
        places = (f'<code class="line">{escape(place(site))}  {escape(site.code)}</code>' for site in finding.also)
        yield messages.ALSO, "".join(places)
    if folded := words.folded_under(judged, report):
        yield messages.EXPLAINS, "<br>".join(f"<code>{escape(j.rule)}</code> {both(j.title)}" for j in folded)
    if judged.ranks:
        yield messages.RANKS, both(words.ranks_of(judged.ranks, len(report.ranks)))
    yield messages.CONFIDENCE_IS, both(words.confidence_of(judged))


def place(site: Site) -> str:
    return f"{site.file}:{site.line}"


def _code(site: Site | None, folder: Path) -> str:
    if site is None:
        return f'<p class="place">{both(messages.NO_PLACE)}</p>'
    lines = "".join(
        f'<span class="{"guilty" if number == site.line else "near"}"><i>{number}</i>{escape(text)}\n</span>'
        for number, text in context(site, folder))
    return f'<p class="place">{escape(place(site))}</p><pre>{lines}</pre>'


def context(site: Site, folder: Path) -> list[tuple[int, str]]:
    """Numbered lines around a place; only the line itself where the file cannot be read or has changed since."""
    try:
        lines = (folder / site.file).read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        lines = []
    at = site.line - 1
    if not 0 <= at < len(lines) or lines[at].strip() != site.code:
        return [(site.line, site.code)]
    first = max(0, at - AROUND)
    return [(first + offset + 1, line) for offset, line in enumerate(lines[first:at + AROUND + 1])]


def evidence_table(evidence: Iterable[Evidence]) -> str:
    rows = "".join(
        f"<tr><td>{both(e.what)}</td><td>{both(words.value_of(e.value, e.unit))}</td>"
        f"<td>{both(e.expected if isinstance(e.expected, Text) else same(str(e.expected)))}</td>"
        f"<td>{both(messages.ORIGIN[e.origin])}</td><td>{'' if e.step is None else e.step}</td></tr>" for e in evidence)
    heads = (messages.EVIDENCE, messages.HTML_VALUE, messages.HTML_EXPECTED, messages.HTML_ORIGIN, messages.HTML_STEP)
    return _table(heads, rows) if rows else ""


def _table(heads: Iterable[Text], rows: str) -> str:
    head = "".join(f"<th>{both(text)}</th>" for text in heads)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _curves(report: Report) -> str:
    """The six monitors, then every other series."""
    noted = [Noted(number, judged.finding.first_step, judged.rule, judged.level)
             for number, judged in enumerate([*words.causes(report), *words.notes(report)], 1)]
    pictures = "".join(map(curve_as_html, readings(report.signals, noted)))
    shown = pictures or f"<p>{both(messages.HTML_NO_CURVES)}</p>"
    return f'<h2>{both(messages.HTML_CURVES)}</h2><div class="curves">{shown}</div>'


def curve_as_html(reading: Reading) -> str:
    """One series as a ``<figure>``: name, usual band, what its alarms mean."""
    band = f" <small>{both(reading.chart.band.label)}</small>" if reading.chart.band else ""
    said = (messages.HTML_ALARM.fill(step=alarm.step, what=alarm.what, meaning=alarm.meaning) for alarm in reading.alarms)
    alarms = "".join(f'<br><small class="alarm">{both(text)}</small>' for text in said)
    return f"<figure><figcaption>{both(reading.title)}{band}{alarms}</figcaption>{svg(reading.chart)}</figure>"


def _remarks(report: Report) -> Iterator[str]:
    for remark in report.remarks:
        yield f'<p class="remark">{both(remark)}</p>'
    if report.suppressed:
        names = ", ".join(f"<code>{escape(judged.rule)}</code>" for judged in report.suppressed)
        yield f'<p class="remark">{both(messages.HTML_SUPPRESSED + messages.COLON)}{names}</p>'


def _verdicts(report: Report) -> str:
    rows = "".join(
        f'<tr class="{verdict.verdict}"><td><code>{escape(verdict.rule)}</code></td>'
        f"<td>{both(messages.VERDICT[verdict.verdict])}</td><td>{both(verdict.why)}</td></tr>"
        for verdict in report.verdicts)
    table = _table((messages.HTML_RULE, messages.HTML_VERDICT, messages.HTML_WHY), rows)
    head = f"<h2>{both(messages.HTML_VERDICTS)}</h2> {both(words.tally(report))}"
    return f"<details><summary>{head}</summary>{table}</details>"


def _foot(report: Report) -> str:
    run = f" · {both(messages.RUN_FOLDER.fill(folder=report.run))}" if report.run else ""
    return f"<footer>traindx {__version__}{run}</footer>"
