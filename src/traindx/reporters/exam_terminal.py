"""The exam on a terminal: one part per step, with curves drawn in characters where they say something."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from traindx import messages
from traindx.core.exams import ExamReport, Points, StepResult
from traindx.core.findings import Report
from traindx.core.text import Language, Text, joined, number
from traindx.reporters import exam_words, words
from traindx.reporters.layout import cut, printable, width, wrap
from traindx.reporters.style import COLUMNS, PLAIN, Style
from traindx.reporters.terminal import Page

LEAD = f"── {messages.NAME} exam ── "
PLOTTED = (0, 3, 7)  # steps whose curves are drawn
ROWS = 11
MARKERS = (("braille", "⣀⠤"), ("dot", "••"), ("x", "xx"))  # as many curves as one plot can hold and still be read
COLOURS = {"passed": (1, 32), "failed": (1, 31)}


def render(report: ExamReport, language: Language, style: Style = PLAIN, columns: int = COLUMNS) -> str:
    return "\n".join(_Exam(report, Page(_findings_of(report), language, style, columns)).lines()) + "\n"


def _findings_of(report: ExamReport) -> Report:
    """The exam's findings as a report on a run would hold them."""
    proved = [*(proved for step in report.steps for proved in step.findings), *report.refuted]
    return Report([one.judged for one in proved if one not in report.refuted], refuted=[one.judged for one in report.refuted],
                  proofs={one.judged.rule: one.proof for one in proved if one.proof})


@dataclass(frozen=True)
class _Exam:
    report: ExamReport
    page: Page

    def say(self, text: Text) -> str:
        return self.page.say(text)

    def lines(self) -> Iterator[str]:
        columns = self.page.columns
        line = cut(LEAD + printable(self.report.script), columns - 1) + " "
        yield self.page.style.strong(line + "─" * (columns - width(line)))
        yield from wrap(self.say(joined(exam_words.how_it_ran(self.report), messages.SEMICOLON)), columns)
        if self.report.interrupted:
            yield from wrap(self.say(exam_words.INTERRUPTED), columns)
        for remark in self.report.remarks:
            yield from wrap(self.say(remark), columns)
        for step in self.report.steps:
            if step.verdict != "not-checked":
                yield from self._step(step)
        yield ""
        for skipped in exam_words.not_checked(self.report):
            yield from wrap(self.say(skipped), columns, "", "  ")
        if self.report.seeds is not None:
            yield ""
            yield from wrap(self.say(exam_words.seeds_of(self.report)), columns)
        yield from self.page.withdrawn()

    def _step(self, step: StepResult) -> Iterator[str]:
        yield ""
        style = self.page.style
        verdict = self.say(exam_words.VERDICTS[step.verdict])
        head = self.say(exam_words.STEP_HEAD.fill(step=step.step, name=exam_words.name_of(step), verdict=verdict))
        first, *rest = wrap(self.say(step.why), self.page.columns, head + self.say(exam_words.STOP), "  ")
        painted = style.strong(head[:-len(verdict)]) + style.paint(verdict, *COLOURS[step.verdict])
        yield painted + first[len(head):]
        yield from rest
        yield from self._plot(step)
        yield from self.page.labelled(messages.EVIDENCE, [words.evidence_of(evidence) for evidence in step.evidence])
        for number_, proved in enumerate(step.findings, 1):
            yield ""
            yield from self.page.cause(proved.judged, number_)
        if step.next.en:
            yield from self.page.labelled(exam_words.NEXT, [step.next])

    def _plot(self, step: StepResult) -> Iterator[str]:
        curves = {self.say(exam_words.curve_name(name)): kept for name, points in step.curves.items() if len(kept := _positive(points)) > 1}
        if step.step in PLOTTED and curves:
            yield from plot(dict(list(curves.items())[:len(MARKERS)]), self.page.columns, step.log_x)


def _ticks(put: Callable[[list[float], list[str]], object], values: list[float], count: int = 5) -> None:
    """Round numbers at equal distances of a logarithmic axis."""
    low, high = math.log10(min(values)), math.log10(max(values))
    ticks = [10 ** (low + (high - low) * k / (count - 1)) for k in range(count)]
    put(ticks, [number(tick, 2) for tick in ticks])


def _positive(points: Points) -> Points:
    return [(x, y) for x, y in points if math.isfinite(y) and y > 0]


def plot(curves: dict[str, Points], columns: int, log_x: bool = False) -> list[str]:
    """Curves of positive values on a logarithmic axis, in characters."""
    import plotext
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(columns - 2, ROWS)
    plotext.yscale("log")
    if log_x:
        plotext.xscale("log")
    for (marker, _), points in zip(MARKERS, curves.values()):
        plotext.plot([x for x, _ in points], [y for _, y in points], marker=marker)
    _ticks(plotext.yticks, [y for points in curves.values() for _, y in points])
    if log_x:
        _ticks(plotext.xticks, [x for points in curves.values() for x, _ in points])
    drawn = plotext.uncolorize(plotext.build())
    # the legend is ours: plotext takes a Chinese character for one column
    legend = "   ".join(f"{sign} {name}" for (_, sign), name in zip(MARKERS, curves))
    return ["  " + line.rstrip() for line in (*drawn.splitlines(), legend) if line.strip()]
