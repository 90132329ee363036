"""The sections of the report as sentences, for the terminal and the page alike."""
from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx.core.observed import Site
from traindx.core.text import Language, Text, number, same
from traindx.reporters.layout import cut, pad, printable, width, wrap
from traindx.reporters.style import Style
from traindx.samples import words
from traindx.samples.compare import MOST as MOST_COMPARED
from traindx.samples.compare import Copies
from traindx.samples.labels import NEIGHBOURS, counts_of, tail_of
from traindx.samples.load import Split
from traindx.samples.report import DataReport
from traindx.samples.shift import FAR

MOST = 8  # of a list


def sections(report: DataReport) -> Iterator[tuple[Text, list[Text]]]:
    """Title and lines, in the order of the report."""
    yield words.COPIES, [*_copies(report, report.exact, words.EXACT), *_copies(report, report.near, words.NEAR)]
    yield words.CONFLICTS, _conflicts(report) or [words.NONE]
    yield words.SUSPECTS, _suspects(report)
    yield words.SHIFTS, _shifts(report)
    yield words.STATISTICS, _statistics(report)
    yield words.GROUPS, _groups(report)


def _copies(report: DataReport, found: list[Copies], what: Text) -> Iterator[Text]:
    for copies in found:
        i, j = copies.where
        names = {"first": words.split_name(report.splits[i].name), "second": words.split_name(report.splits[j].name)}
        where = words.WITHIN.fill(split=names["first"]) if i == j else words.ACROSS.fill(**names)
        total = len(report.splits[j].hashes) if what is words.EXACT else min(MOST_COMPARED, len(report.splits[j].features))
        said = words.NOT_TOLD.fill(why=words.why(copies.why)) if copies.why else words.OF.fill(count=copies.count, total=total)
        named = ((report.splits[a].row(x), report.splits[b].row(y)) for (a, x), (b, y) in ((p.first, p.second) for p in copies.pairs[:3]))
        pairs = ", ".join(f"{first} = {second}" for first, second in named)
        yield what + same(" ") + where + Text(": ", "：") + said + same(f" {pairs}" if pairs else "")


def _conflicts(report: DataReport) -> list[Text]:
    def line(place: int) -> Text:
        pair, a, b = report.conflicts[place]
        (i, x), (j, y) = pair.first, pair.second
        split = report.splits[i]
        return words.CONFLICT.fill(first=split.row(x), second=report.splits[j].row(y), a=split.class_name(a), b=split.class_name(b))
    return [line(place) for place in range(min(MOST, len(report.conflicts)))]


def _suspects(report: DataReport) -> list[Text]:
    suspects = report.suspects
    if suspects is None or suspects.why:
        return [words.NOT_TOLD.fill(why=words.why(suspects.why if suspects else "the labels are no class ids"))]
    split = report.splits[0]
    way = words.BY_CLEANLAB if suspects.way == "cleanlab" else words.BY_NEIGHBOURS
    head = words.SUSPECTS_OF.fill(count=len(suspects.found), total=suspects.looked_at, accuracy=f"{100 * suspects.accuracy:.0f}")
    return [head, way.fill(k=NEIGHBOURS), *(
        words.SUSPECT.fill(where=split.row(s.place), label=split.class_name(s.label), said=split.class_name(s.said),
                           share=f"{100 * s.share:.0f}")
        for s in suspects.found[:MOST])]


def _shifts(report: DataReport) -> list[Text]:
    found = [words.SHIFT.fill(
        feature=shift.feature, first=words.split_name(report.splits[0].name), second=words.split_name(report.splits[shift.split].name),
        a=number(shift.means[0]), b=number(shift.means[1]), s=number(shift.scales[0]), t=number(shift.scales[1])) for shift in report.shifts]
    return found[:MOST] or [words.NO_SHIFT.fill(far=FAR)]


def _statistics(report: DataReport) -> list[Text]:
    found = [words.FITTED.fill(kind=fitted.class_name, rows=fitted.rows, place=_at(fitted.site)) for fitted in report.fitted]
    found += [words.LINES.fill(place=_at(site)) for site in report.lines]
    return found[:MOST] or [words.NO_STATISTICS]


def _groups(report: DataReport) -> list[Text]:
    found = [words.GROUP.fill(share=f"{100 * group.share:.0f}", first=words.split_name(report.splits[group.first].name),
                              second=words.split_name(report.splits[group.second].name), example=" / ".join(group.examples[0]))
             for group in report.groups]
    return found or [words.NO_GROUPS if any(split.seen.files for split in report.splits) else words.NO_FILES]


def _at(site: Site | None) -> str:
    return f"{site.file}:{site.line}" if site else "?"


def values_of(split: Split) -> Text:
    """Labels that are no classes."""
    labels = split.labels[~np.isnan(split.labels)]
    if split.seen.label_kind != "values" or not len(labels):
        return words.LABEL_KINDS[split.seen.label_kind]
    return words.VALUES.fill(count=len(labels), low=number(float(labels.min())), high=number(float(labels.max())),
                             mean=number(float(labels.mean())), std=number(float(labels.std())))


# -- terminal --


def render(report: DataReport, page: str | None, language: Language, style: Style, columns: int) -> str:
    title = f"── traindx data ── {report.script} "
    lines = [style.strong(title + "─" * max(0, columns - width(title))), ""]
    for split in report.splits:
        lines += wrap(printable(_split(split).say(language)), columns, pad(words.split_name(split.name).say(language), 14))
        lines += wrap(_classes(split).say(language), columns, " " * 14)
    for heading, texts in sections(report):
        lines += ["", style.strong(heading.say(language))]
        for text in texts:
            lines += wrap(printable(text.say(language)), columns, "  ", "    ")
    lines += ["", style.strong(words.FINDINGS.say(language))]
    for judged in report.rules.findings:
        where = f"  ({_at(judged.finding.where)})" if judged.finding.where else ""
        lines += [style.level(line, judged.level) for line in wrap(f"{judged.rule}  {judged.title.say(language)}{where}", columns, "  ", "    ")]
    if not report.rules.findings:
        lines.append(f"  {words.NO_FINDING.say(language)}")
    if page:
        lines += ["", cut(words.PAGE.fill(page=page).say(language), columns)]
    return "\n".join(lines) + "\n"


def _split(split: Split) -> Text:
    seen = split.seen
    parts = Text("{n} sample{n:|s} in {b} batch{b:|es}, {shape} {dtype}, {kind}, labels: {labels}",
                 "{n} 个样本，{b} 个 batch，{shape} {dtype}，{kind}，标签：{labels}")
    said = parts.fill(n=seen.samples, b=seen.batches, shape=list(seen.row_shape), dtype=seen.dtype, kind=words.KINDS[seen.feature],
                      labels=words.LABEL_KINDS[seen.label_kind])
    return said if seen.whole_pass else said + Text("; ", "；") + words.PASS_CUT


def _classes(split: Split) -> Text:
    counts = counts_of(split)
    if not counts:
        return values_of(split)
    tail = tail_of(counts)
    shown = ", ".join(f"{split.class_name(label)}: {count}" for label, count in list(counts.items())[:12])
    rest = Text(" and {n} more", " 等，另有 {n} 类").fill(n=len(counts) - 12) if len(counts) > 12 else same("")
    long = Text("; tail: {names}", "；长尾：{names}").fill(names=", ".join(split.class_name(label) for label in tail[:8])) if tail else same("")
    return same(shown) + rest + long
