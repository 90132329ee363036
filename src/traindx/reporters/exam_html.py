"""The exam as one HTML page that opens from disk: a part per step, with the curves that decided."""
from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from traindx import __version__, messages
from traindx.core.exams import ExamReport, StepResult
from traindx.core.findings import Report
from traindx.core.text import Language, Text
from traindx.reporters import exam_words, words
from traindx.reporters.html import both, evidence_table, finding_as_html, page_of, proof_as_html
from traindx.reporters.overlay import overlay

TITLE = Text("traindx exam: {script}", "traindx 检查：{script}")
TONES = {"passed": "note", "failed": "error", "not-checked": "plain"}


def render(report: ExamReport, language: Language, folder: Path | None = None) -> str:
    """``folder`` is where the program ran: file names of the findings are relative to it."""
    parts = [_head(report), *_remarks(report), *(_step(step, folder or Path()) for step in report.steps), _seeds(report),
             *_refuted(report), f"<footer>traindx {__version__}</footer>"]
    return page_of(TITLE.fill(script=report.script), "\n".join(parts), language)


def _head(report: ExamReport) -> str:
    ran = " · ".join(both(part) for part in exam_words.how_it_ran(report))
    return f'<header><h1><b>traindx exam</b> {escape(report.script)}</h1><p class="ended">{ran}</p></header>'


def _remarks(report: ExamReport) -> Iterator[str]:
    remarks = [*([exam_words.INTERRUPTED] if report.interrupted else []), *report.remarks]
    for remark in remarks:
        yield f'<p class="remark">{both(remark)}</p>'


def _step(step: StepResult, folder: Path) -> str:
    verdict = f'<span class="level {TONES[step.verdict]}">{both(exam_words.VERDICTS[step.verdict])}</span>'
    picture = overlay(step.curves, step.log_x)
    parts = [f"<h2>{step.step} {both(exam_words.name_of(step))} · {verdict}</h2>", f"<p>{both(step.why)}</p>",
             f"<figure>{picture}</figure>" if picture else "", evidence_table(step.evidence),
             *(finding_as_html(proved.judged, number, Report(), folder, proof_as_html(proved.proof))
               for number, proved in enumerate(step.findings, 1))]
    if step.next.en:
        parts.append(f'<p class="remark"><b>{both(exam_words.NEXT)}</b> {both(step.next)}</p>')
    return f"<section>{''.join(parts)}</section>"


def _seeds(report: ExamReport) -> str:
    said = exam_words.seeds_of(report)
    return f'<p class="remark">{both(said)}</p>' if said.en else ""


def _refuted(report: ExamReport) -> Iterator[str]:
    if report.refuted:
        yield f"<h2>{both(messages.REFUTED)}</h2>"
    for proved in report.refuted:
        yield (f"<p><code>{escape(proved.judged.rule)}</code> {both(proved.judged.title)}{both(messages.COLON)}"
               f"{both(words.proof_of(proved.proof)) if proved.proof else ''}</p>")
