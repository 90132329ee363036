"""The report on a terminal: causes first, each with place, evidence and fix; then the rest in few lines."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx import messages
from traindx.core.findings import Judged, Report
from traindx.core.observed import Site
from traindx.core.text import EMPTY, Language, Text, joined, number, same
from traindx.reporters import words
from traindx.reporters.layout import cut, pad, printable, width, wrap
from traindx.reporters.style import COLUMNS, PLAIN, Style
from traindx.signals.monitors import Monitor, Monitors

LEAD = f"── {messages.NAME} ── "
LABELS = (messages.CAUSE, messages.EVIDENCE, messages.FIX, messages.ALSO, messages.EXPLAINS, messages.RANKS, messages.CONFIDENCE_IS,
          messages.PROOF)
PLACES = 3  # that a finding shows beside its first
REASONS = 3
FLAT = 0.05  # relative change under which a curve is called flat
OUTSIDE = 0.05  # share of steps outside the band that is not worth saying


def render(report: Report, language: Language, style: Style = PLAIN, columns: int = COLUMNS) -> str:
    return "\n".join(Page(report, language, style, columns).lines()) + "\n"


@dataclass(frozen=True)
class Page:
    """The report's parts as lines; other reports borrow ``cause`` and ``labelled``."""

    report: Report
    language: Language
    style: Style
    columns: int

    def say(self, text: Text) -> str:
        return printable(text.say(self.language))

    def lines(self) -> Iterator[str]:
        yield from self._header()
        for number_, judged in enumerate(words.causes(self.report), 1):
            yield ""
            yield from self.cause(judged, number_)
        yield from self._notes()
        yield from self.withdrawn()
        yield from self._monitors()
        yield ""
        yield from self._last_words()

    def _header(self) -> Iterator[str]:
        """Name and end of the run on one ruled line, or the end below it where both are too long for one."""
        name = printable(self.report.script)
        ended = self.say(joined(words.how_it_ended(self.report), messages.LIST_COMMA))
        both = messages.LIST_COMMA.say(self.language).join(filter(None, (name, ended)))
        fits = width(both) <= self.columns - width(LEAD) - 2
        line = cut(LEAD + (both if fits else name), self.columns - 1) + " "
        yield self.style.strong(line + "─" * (self.columns - width(line)))
        if not fits:
            yield from wrap(ended, self.columns, "   ")

    # -- one finding ------------------------------------------------------------------------------------------------

    def cause(self, judged: Judged, number_: int) -> Iterator[str]:
        level = self.say(messages.LEVEL[judged.level])
        head = f"{number_} {level}  {judged.rule}  "
        first, *rest = wrap(self.say(judged.title), self.columns, head, "  ")
        tag = f"{number_} {level}"
        yield self.style.level(tag, judged.level) + self.style.strong(first[len(tag):])
        yield from (self.style.strong(line) for line in rest)
        yield from self._place(judged.finding.where)
        finding = judged.finding
        yield from self.labelled(messages.CAUSE, [finding.cause])
        yield from self.labelled(messages.EVIDENCE, [words.evidence_of(evidence) for evidence in finding.evidence])
        yield from self.labelled(messages.FIX, [finding.fix])
        yield from self.labelled(messages.ALSO, self._also(finding.also))
        folded = [same(other.rule) for other in words.folded_under(judged, self.report)]
        yield from self.labelled(messages.EXPLAINS, [joined(folded)] if folded else [])
        if judged.ranks:
            yield from self.labelled(messages.RANKS, [words.ranks_of(judged.ranks, len(self.report.ranks))])
        if finding.confidence != "certain":
            yield from self.labelled(messages.CONFIDENCE_IS, [words.confidence_of(judged)])
        if (proof := self.report.proofs.get(judged.rule)) is not None:
            yield from self.labelled(messages.PROOF, [words.proof_of(proof)])

    def _place(self, site: Site | None) -> Iterator[str]:
        if site is None:
            yield self.style.faint("  " + self.say(messages.NO_PLACE))
            return
        named = bool(site.function) and not site.function.startswith("<")
        inside = f" {self.say(messages.IN_FUNCTION.fill(function=site.function))}" if named else ""
        yield f"  {self.style.paint(f'{printable(site.file)}:{site.line}', 4)}{inside}"
        if site.code:
            yield self.style.paint(cut("      " + site.code, self.columns), 35)

    def _also(self, places: tuple[Site, ...]) -> list[Text]:
        room = self.columns - self._margin() - 2
        shown = [cut(f"{site.file}:{site.line}  {site.code}", room) for site in places[:PLACES]]
        lines = [same(line) for line in shown]
        more = len(places) - PLACES
        return [*lines, messages.MORE_PLACES.fill(count=more)] if more > 0 else lines

    def _margin(self) -> int:
        return max(width(self.say(label)) for label in LABELS) + 4

    def labelled(self, label: Text, entries: list[Text]) -> Iterator[str]:
        margin = self._margin()
        lead = pad("  " + self.say(label), margin)
        for entry in entries:
            first, *rest = wrap(self.say(entry), self.columns, lead, " " * margin)
            yield self.style.faint(first[:len(lead)]) + first[len(lead):]
            yield from rest
            lead = " " * margin

    # -- the rest ---------------------------------------------------------------------------------------------------

    def _notes(self) -> Iterator[str]:
        notes = words.notes(self.report)
        if notes:
            yield ""
            yield self.style.level(self.say(messages.NOTES_TITLE), "note")
        for judged in notes:
            place = f" ({printable(judged.finding.where.short)})" if judged.finding.where else ""
            yield from wrap(f"{judged.rule}{place}{self.say(messages.COLON)}{self.say(judged.title)}", self.columns, "  ", "      ")

    def withdrawn(self) -> Iterator[str]:
        """Findings that an experiment has refuted: told, not hidden."""
        if self.report.refuted:
            yield ""
            yield self.say(messages.REFUTED)
        for judged in self.report.refuted:
            said = f"{judged.rule}{self.say(messages.COLON)}{self.say(words.proof_of(self.report.proofs[judged.rule]))}"
            yield from wrap(said, self.columns, "  ", "    ")

    def _monitors(self) -> Iterator[str]:
        monitors = Monitors.in_series(self.report.signals).monitors
        if not monitors:
            return
        yield ""
        origin = messages.IN_BRACKETS.fill(inner=messages.ORIGIN["rule of thumb"])
        band = self.say(messages.MONITOR_BAND + origin)
        head = [self.say(text) for text in (messages.MONITORS, messages.MONITOR_LAST, messages.MONITOR_RANGE)]
        rows = [[*head, band, self.say(messages.MONITOR_STATE)], *(self._monitor(monitor) for monitor in monitors)]
        for index, line in enumerate(table(rows, self.columns)):
            yield self.style.strong(line) if index == 0 else line

    def _monitor(self, monitor: Monitor) -> list[str]:
        quantity = monitor.quantity
        band = f"{number(quantity.band.low)} .. {number(quantity.band.high)}" if quantity.band else ""
        span = f"{number(monitor.range[0])} .. {number(monitor.range[1])}" if monitor.range else ""
        return ["  " + self.say(quantity.title), number(monitor.last), span, band, self.say(state_of(monitor))]

    def _last_words(self) -> Iterator[str]:
        report = self.report
        trained = bool(report.steps or report.findings or report.signals)
        if trained and not words.causes(report):
            yield self.style.paint(self.say(messages.NOTHING_FOUND), 1, 32)
        for remark in report.remarks:
            yield from wrap(self.say(remark), self.columns)
        if not trained:
            return
        if report.suppressed:
            rules = ", ".join(sorted({judged.rule for judged in report.suppressed}))
            yield from wrap(self.say(messages.SUPPRESSED.fill(count=len(report.suppressed), rules=rules)), self.columns)
        yield self.say(words.tally(report))
        reasons = words.reasons_not_checked(report.verdicts, REASONS)
        if reasons:
            yield self.style.faint("  " + self.say(messages.NOT_CHECKED))
            for reason in reasons:
                yield from (self.style.faint(line) for line in wrap(self.say(reason), self.columns, "    ", "      "))
        commands = [f"traindx explain {judged.rule}" for judged in words.causes(report)[:1]]
        if report.status is not None:
            commands.append("traindx run --html FILE ...")
        if commands:
            yield from wrap(self.say(messages.MORE.fill(commands=joined(map(same, commands), messages.LIST_COMMA))), self.columns)
        if report.run:
            yield self.say(messages.RUN_FOLDER.fill(folder=report.run))


def table(rows: list[list[str]], columns: int) -> list[str]:
    """Rows in columns; the third, then the fourth of them is left out where they do not fit."""
    for left_out in ((), (2,), (2, 3)):
        kept = [[cell for at, cell in enumerate(row) if at not in left_out] for row in rows]
        widths = [max(width(row[at]) for row in kept) + 2 for at in range(len(kept[0]))]
        lines = ["".join(pad(cell, room) for cell, room in zip(row, widths)).rstrip() for row in kept]
        if max(map(width, lines)) <= columns:
            break
    return [cut(line, columns) for line in lines]


def state_of(monitor: Monitor) -> Text:
    """Where the values lie against the band, or where the curve goes."""
    if monitor.nonfinite:
        return messages.NONFINITE.fill(count=monitor.nonfinite)
    if monitor.quantity.kind == "curve":
        change = monitor.change()
        if change is None:
            return EMPTY
        return messages.FLAT if abs(change) < FLAT else messages.FALLS if change < 0 else messages.RISES
    if monitor.quantity.band is None:
        return EMPTY
    below, above = monitor.shares()
    if max(below, above) < OUTSIDE:
        return messages.INSIDE
    side, share = (messages.BELOW, below) if below >= above else (messages.ABOVE, above)
    return side.fill(share=round(100 * share))
